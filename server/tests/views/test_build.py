"""Views built from rows."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from wqlab_contracts.enums import JobState, Outcome, Verdict
from wqlab_contracts.messages import CompilerWarning
from wqlab_server.views.build import checkpatch_skipped, count_verdicts, is_reused, new_warnings

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def build(*warnings: tuple[str, str], reused: bool = False) -> Any:
    found = [CompilerWarning(where=where, text=text, option="-Wall") for where, text in warnings]
    return SimpleNamespace(created_at=NOW, result=SimpleNamespace(warnings=found, reused=reused))


def test_moved_warning_is_not_new_but_a_second_one_is() -> None:
    baseline = build(("a.c:1:2", "unused"))
    candidate = build(("a.c:9:2", "unused"), ("a.c:12:2", "unused"), ("b.c:1:1", "unused"))
    assert [warning.where for warning in new_warnings(candidate, baseline)] == ["a.c:12:2", "b.c:1:1"]
    assert new_warnings(candidate, None) == []


def test_older_or_cached_build_is_reused() -> None:
    assert not is_reused(build(), None)
    assert not is_reused(build(), NOW)
    assert is_reused(build(), NOW.replace(year=2027))
    assert is_reused(build(reused=True), None)


def test_verdicts_are_counted_in_the_order_of_the_enum() -> None:
    pairs = [(Verdict.REGRESSION, 1), (Verdict.IMPROVEMENT, 2), (Verdict.EQUIVALENT, 0)]
    found = count_verdicts(pairs)
    assert found == {Verdict.IMPROVEMENT: 2, Verdict.REGRESSION: 1}
    assert list(found) == [verdict for verdict in Verdict if verdict in found]


@pytest.mark.parametrize(
    ("state", "outcome", "result", "reason"),
    [
        (JobState.RUNNING, None, None, "the series is not applied yet"),
        (JobState.FINISHED, Outcome.FAILED, None, "the series was not applied"),
        (JobState.FINISHED, Outcome.CANCELED, None, "the submission was canceled"),
        (JobState.FINISHED, Outcome.PASSED, SimpleNamespace(checkpatch_skipped="no script"), "no script"),
        (JobState.FINISHED, Outcome.PASSED, SimpleNamespace(checkpatch_skipped=""), ""),
    ],
)
def test_series_counts_as_checked_only_if_checkpatch_saw_every_patch(
    state: JobState, outcome: Outcome | None, result: Any, reason: str
) -> None:
    apply: Any = SimpleNamespace(state=state, outcome=outcome, result=result)
    assert checkpatch_skipped(apply) == reason
