"""Read each mail of `mail_cases` as the lab does: inspected, chosen from its thread, applied, or read from a list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.mails import mbox
from wqlab_contracts.mails.canonical_mails import canonical_mbox
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.mails.thread_series import Thread, select
from wqlab_contracts.messages.list_mails import ListMails
from wqlab_worker.apply.mailed_series import choose_mails, order_patches
from wqlab_worker.failures import UserError
from wqlab_worker.intake.read_commits import describe, is_command, parse_archived

CASES = Path(__file__).parent / "mail_cases"


@dataclass(frozen=True)
class Case:
    """Mails, and what is expected of them."""

    name: str

    @property
    def data(self) -> bytes:
        return (CASES / f"{self.name}.mbox").read_bytes()

    @property
    def text(self) -> str:
        return mbox.decode(self.data)

    @property
    def told(self) -> dict[str, Any]:
        return dict(json.loads((CASES / f"{self.name}.json").read_text()))

    @property
    def expected(self) -> dict[str, Any]:
        return dict(self.told["expected"])


def cases(*runs: str) -> pytest.MarkDecorator:
    found = [Case(path.stem) for path in sorted(CASES.glob("*.json"))]
    chosen = [each for each in found if each.told["run"] in runs]
    return pytest.mark.parametrize("case", chosen, ids=lambda each: each.name)


def apply_with_b4(text: str, folder: Path, revision: int | None = None) -> list[mbox.Mail]:
    """Return the patches that b4 prepares for git, in their order."""
    for name in ("in", "out"):
        (folder / name).mkdir()
    return mbox.parse_mails(order_patches(choose_mails(text, revision=revision), folder), escaped=True)


def ids(mails: Sequence[mbox.Mail]) -> list[str | None]:
    return [mail.message_id for mail in mails]


@cases("inspect")
def test_inspection_of_an_upload(case: Case) -> None:
    expected, found = case.expected, inspect(case.text)
    errors = [problem.detail for problem in found.problems if problem.severity == "error"]
    if "usable" in expected:
        assert found.usable is expected["usable"], errors
    if "errors" in expected:
        assert errors == expected["errors"]
    if "errors_mention" in expected:
        assert expected["errors_mention"] in " ".join(errors)
    if "patches" in expected:
        assert [patch.subject for patch in found.patches] == expected["patches"]
    if "authors" in expected:
        assert [patch.author for patch in found.patches] == expected["authors"]
    if "files" in expected:
        assert [
            [[change.path, change.insertions, change.deletions] for change in patch.files] for patch in found.patches
        ] == expected["files"]


@cases("thread")
def test_choice_from_a_thread_is_what_is_applied(case: Case, tmp_path: Path) -> None:
    thread = Thread(mbox.parse_mails(case.data.decode("utf-8", errors="surrogateescape"), escaped=True))
    chosen = select(thread, case.told["message_id"], None)
    assert ids(chosen.patches) == case.expected["patches"]
    text = canonical_mbox(chosen.chosen)
    shown = inspect(text)
    assert shown.usable and [patch.message_id for patch in shown.patches] == case.expected["patches"]
    assert ids(apply_with_b4(text, tmp_path, revision=chosen.revision)) == case.expected["patches"]


@cases("apply", "agree", "inspect", "server")
def test_what_is_applied_is_what_the_inspection_shows(case: Case, tmp_path: Path) -> None:
    expected, shown = case.expected, inspect(case.text)
    try:
        applied = apply_with_b4(case.text, tmp_path)
    except UserError as error:
        text = f"{error.failure.summary} {error.failure.excerpt}"
        assert not shown.usable and not expected.get("ok"), text
        assert "is incomplete" not in text or expected.get("problem_is_not") != "incomplete"
        assert expected.get("problem_mentions", "") in error.failure.summary
        return
    assert shown.usable and expected.get("ok", True) and "problem_mentions" not in expected
    titles = [mail.title for mail in applied]
    assert titles == [patch.subject for patch in shown.patches] == expected.get("titles", titles)
    assert [mail.author for mail in applied] == [patch.author for patch in shown.patches]
    assert ids(applied) == [patch.message_id for patch in shown.patches]


@cases("readcommit", "reply", "thread", "inspect")
def test_no_mail_stops_a_list(case: Case) -> None:
    for part in mbox.split(case.data.decode("utf-8", errors="surrogateescape")):
        data = part.encode("utf-8", errors="surrogateescape")
        mail = parse_archived(data)
        assert mail is not None
        now = datetime(2026, 1, 5, tzinfo=UTC)
        ListMails(position=None, mails=[describe(mail, now)]).model_dump_json()
        if case.expected.get("worker_takes"):
            assert is_command(mail, data)
