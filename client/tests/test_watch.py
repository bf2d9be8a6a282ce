"""`wqlab watch` and `submit --wait`."""

from __future__ import annotations

import json

import pytest
from commandline import Wqlab
from example_views import VIEWS
from fakelab import FakeLab, Reply, Request

from wqlab_contracts.enums import Outcome, Verdict

FINISHED = VIEWS[-1]

pytestmark = pytest.mark.usefixtures("frozen_clock")


@pytest.mark.parametrize(
    ("ending", "arguments", "code"),
    [
        ({"exit_code": 0}, (), 0),
        ({"exit_code": 1}, (), 1),
        ({"exit_code": 3, "outcome": Outcome.FAILED}, (), 3),
        ({"exit_code": 4, "outcome": Outcome.FAILED}, (), 4),
        ({"exit_code": 0, "verdicts": {Verdict.INCONCLUSIVE: 1}}, (), 0),
        ({"exit_code": 0, "verdicts": {Verdict.INCONCLUSIVE: 1}}, ("--fail-on", "inconclusive"), 1),
        ({"exit_code": 0, "verdicts": {Verdict.EQUIVALENT: 1}}, ("--fail-on", "inconclusive"), 0),
        ({"exit_code": 4, "verdicts": {Verdict.INCONCLUSIVE: 1}}, ("--fail-on", "inconclusive"), 4),
        ({"exit_code": None, "verdicts": {Verdict.REGRESSION: 1}}, (), 1),
        ({"exit_code": None, "outcome": Outcome.CANCELED}, (), 4),
    ],
)
def test_watch_exits_with_the_result(
    wqlab: Wqlab, lab: FakeLab, ending: dict[str, object], arguments: tuple[str, ...], code: int
) -> None:
    lab.serve("/submissions/12", FINISHED.model_copy(update=ending))
    assert wqlab("watch", "12", *arguments).code == code


def test_submit_wait_separates_progress_and_report(wqlab: Wqlab, lab: FakeLab) -> None:
    def create(_: Request) -> Reply:
        lab.show(FINISHED)
        return Reply(201, VIEWS[0])

    lab.answers[("POST", "/api/v1/submissions")] = create
    lab.serve("/submissions/12/report", b"VERDICT: improvement\n", content_type="text/plain")
    arguments = ("submit", "--settings-only", "--tree", "t", "--target", "xfs-fsync@xeon-2s", "--wait")
    ended = wqlab(*arguments)
    assert (ended.code, ended.out) == (0, "VERDICT: improvement\n")
    assert ended.err.startswith(f"submission 12 at {lab.url}\n[   0:00] submission 12: workqueue")
    assert ended.err.endswith("finished: passed; primary comparisons: improvement 1, equivalent 2\n")
    ended = wqlab(*arguments, "--json")
    assert json.loads(ended.out)["exit_code"] == 0
    assert "finished: passed" in ended.err


def test_unavailable_report_does_not_hide_the_result(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/submissions/12", FINISHED.model_copy(update={"exit_code": 3}))
    ended = wqlab("watch", "12", "--report")
    assert ended.code == 3
    assert "wqlab: error: report of submission 12" in ended.err
    lab.serve("/submissions/12", FINISHED)
    assert wqlab("watch", "12", "--report").code == 4


def test_watch_json_prints_one_line_per_event(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.show(VIEWS[2])
    lab.show(FINISHED.model_copy(update={"exit_code": 1}))
    lab.cuts = [1]
    ended = wqlab("watch", "12", "--json")
    assert ended.code == 1
    assert [json.loads(line)["seq"] for line in ended.out.splitlines()] == [1, 2]
    assert [json.loads(line)["seq"] for line in wqlab("watch", "12", "--json", "--since", "1").out.splitlines()] == [2]
