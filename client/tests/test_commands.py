"""The commands about submissions: what they print, as whole texts, what they send, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Wqlab
from fakelab import APPLIED, FakeLab, Reply, Seen, at, boot, build, problem, run, submission
from test_progress import STORY

from wqlab_contracts.api.submissions import Page, SubmissionSummary
from wqlab_contracts.enums import Arm, ErrorKind, JobState, Outcome, SubmissionState, Verdict
from wqlab_contracts.messages import CompilerWarning, Failure

FINISHED = STORY[-1]


@pytest.fixture(autouse=True)
def _frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("submissions", "lab", "watch"):
        monkeypatch.setattr(f"wqlab_client.cli.{module}.utc_now", lambda: at(600))


def summary(number: int, **changes: object) -> SubmissionSummary:
    fields = {name: getattr(FINISHED, name) for name in SubmissionSummary.model_fields}
    return SubmissionSummary(**{**fields, "id": number, **changes})


# --- list, show -------------------------------------------------------------------------------------------------


def test_list(wqlab: Wqlab, lab: FakeLab) -> None:
    rows = [
        summary(120, state=SubmissionState.RUNNING, outcome=None, verdicts={}, title="wq: \x1b[31mred"),
        summary(12, verdicts={Verdict.REGRESSION: 1, Verdict.BELOW_THRESHOLD: 2}),
    ]
    lab.serve("/submissions", Page[SubmissionSummary](items=rows, total=7, next="c2"))
    ended = wqlab("list", "--state", "running", "--owner", "dev", "-q", "flush", "--limit", "2")
    assert ended.code == 0
    assert ended.out == (
        "ID   STATE    TREE        OWNER  AGE     PRIMARY VERDICTS                 TITLE\n"
        "120  running  linux-6.12  dev    10 min                                   wq: ^[[31mred\n"
        "12   passed   linux-6.12  dev    10 min  regression 1, below threshold 2  "
        "workqueue: Take each pool lock once per flush\n"
    )
    assert ended.err == "2 of 7; the next page: --cursor c2\n"
    assert lab.seen[0].query == {"state": "running", "owner": "dev", "q": "flush", "limit": "2"}
    assert [each["id"] for each in json.loads(wqlab("list", "--json").out)["items"]] == [120, 12]


def test_list_all_pages(wqlab: Wqlab, lab: FakeLab) -> None:
    def page(seen: Seen) -> Reply:
        first = "cursor" not in seen.query
        return Reply(body=Page(items=[summary(2 if first else 1)], total=2, next="c" if first else None))

    lab.answers[("GET", "/api/v1/submissions")] = page
    found = json.loads(wqlab("list", "--all", "--json").out)
    assert [each["id"] for each in found["items"]] == [2, 1]
    assert found["next"] is None


def test_list_of_nothing_prints_no_header(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/submissions", Page[SubmissionSummary](items=[], total=0))
    assert (wqlab("list").out, wqlab("list").err) == ("", "none yet\n")
    assert wqlab("list", "--tree", "x").err == "no submission matches\n"


def test_show(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/submissions/12", STORY[3])
    ended = wqlab("show", "12")
    assert ended.code == 0
    assert ended.out == (
        "Submission 12: workqueue: Take each pool lock once per flush\n"
        "  tree linux-6.12, owner dev, priority 50, 2026-01-02 10:00 UTC, for 10:00\n"
        "  running: measuring; 4/6 boots, about 2 min left\n"
        "  apply: passed, base 0123456789ab (6.12.48), 1 patch, checkpatch: 1 warning\n"
        "    [PATCH] workqueue: Take each pool lock once per flush\n"
        "  build 3 (baseline x86_64 measure): passed, reused\n"
        "  build 4 (candidate x86_64 measure): passed, in 1:35\n"
        "  run 7 (xfs-fsync on xeon-2s): running, on xeon-2s-1: block 2 of 3, attempt 2: measuring^[[2J"
        " repetition 2 of 3\n"
        "    1/3 blocks  A B  B a  . .\n"
        "    block 2 attempt 1, candidate, boot 3 on xeon-2s-1: panic: workqueue: pool lock held\n"
        "    block 2 attempt 1, candidate: panic: Kernel panic - not syncing: pool lock held\n"
        "      [   12.3] Kernel panic\n"
        "  A baseline, B candidate; lower case: now, x: failed, .: to do\n"
    )
    assert json.loads(wqlab("show", "12", "--json").out) == STORY[3].model_dump(mode="json")


def test_show_a_series_that_does_not_apply(wqlab: Wqlab, lab: FakeLab) -> None:
    failure = Failure(
        kind=ErrorKind.USER,
        summary="patch 2/3 does not apply",
        excerpt="\n".join(f"line {n}" for n in range(20)),
        advice="rebase it on 6.12.48, or name its base with --base",
    )
    lab.serve(
        "/submissions/12",
        submission(SubmissionState.FINISHED, outcome=Outcome.FAILED, failure=failure, exit_code=3),
    )
    text = wqlab("show", "12").out
    assert "  failed (the series or request: patch 2/3 does not apply)\n    line 0\n" in text
    assert "    line 11\n    ... 8 more lines\n    rebase it on 6.12.48, or name its base with --base\n" in text


def test_cancel_and_retry(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/submissions/12/cancel", submission(SubmissionState.FINISHED, outcome=Outcome.CANCELED), "POST")
    ended = wqlab("cancel", "12")
    assert (ended.code, ended.out, ended.err) == (0, "submission 12: canceled\n", "")
    lab.serve("/submissions/12/retry", STORY[2].model_copy(update={"id": 13}), "POST", status=201)
    ended = wqlab("retry", "12")
    assert (ended.code, ended.out) == (0, "submission 13: running\n"), "a retry is a submission of its own"
    assert ended.err == "watch it with `wqlab watch 13`\n"
    lab.answers[("POST", "/api/v1/submissions/12/retry")] = problem(409, "submission 12 still runs; cancel it first")
    ended = wqlab("retry", "12")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "wqlab: error: retry submission 12: submission 12 still runs; cancel it first\n"


# --- watch ------------------------------------------------------------------------------------------------------


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
def test_watch_ends_with_the_result(
    wqlab: Wqlab, lab: FakeLab, ending: dict[str, object], arguments: tuple[str, ...], code: int
) -> None:
    lab.serve("/submissions/12", FINISHED.model_copy(update=ending))
    assert wqlab("watch", "12", *arguments).code == code


def test_submit_wait_keeps_progress_and_report_apart(wqlab: Wqlab, lab: FakeLab) -> None:
    def create(_: Seen) -> Reply:
        lab.show(FINISHED)
        return Reply(201, STORY[0])

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


def test_a_report_that_cannot_be_fetched_does_not_hide_the_result(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/submissions/12", FINISHED.model_copy(update={"exit_code": 3}))
    ended = wqlab("watch", "12", "--report")
    assert ended.code == 3
    assert "wqlab: error: report of submission 12" in ended.err
    lab.serve("/submissions/12", FINISHED)
    assert wqlab("watch", "12", "--report").code == 4


def test_watch_json_prints_each_event_as_a_line(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.show(STORY[2])
    lab.show(FINISHED.model_copy(update={"exit_code": 1}))
    lab.cuts = [1]
    ended = wqlab("watch", "12", "--json")
    assert ended.code == 1
    assert [json.loads(line)["seq"] for line in ended.out.splitlines()] == [1, 2]
    assert [json.loads(line)["seq"] for line in wqlab("watch", "12", "--json", "--since", "1").out.splitlines()] == [2]


# --- report, logs, console --------------------------------------------------------------------------------------


def test_report_is_printed_or_written_as_the_server_renders_it(wqlab: Wqlab, lab: FakeLab, tmp_path: Path) -> None:
    lab.answers[("GET", "/api/v1/submissions/12/report")] = lambda seen: Reply(
        body=f"<{seen.query['format']} ±>".encode(), content_type="text/plain"
    )
    assert wqlab("report", "12").out == "<text ±>\n"
    assert wqlab("report", "12", "--json").out == "<json ±>\n"
    target = tmp_path / "junit.xml"
    ended = wqlab("report", "12", "--format", "junit", "-o", str(target))
    assert (ended.code, ended.out, target.read_text()) == (0, "", "<junit ±>\n")
    ended = wqlab("report", "12", "-o", str(tmp_path / "no" / "dir"))
    assert ended.code == 2
    assert "cannot write" in ended.err
    assert wqlab("report", "12", "--format", "pdf").code == 2


def test_logs(wqlab: Wqlab, lab: FakeLab) -> None:
    warning = CompilerWarning(where="kernel/workqueue.c:10:3", text="unused variable 'x'", option="-Wunused-variable")
    view = submission(
        SubmissionState.RUNNING,
        builds=[build(3, Arm.BASELINE, reused=True), build(4, Arm.CANDIDATE, new_warnings=[warning])],
    )
    lab.serve("/submissions/12", view)
    ended = wqlab("logs", "12")
    assert ended.out == (
        "apply: passed, base 0123456789ab (6.12.48), 1 patch, checkpatch: 1 warning\n"
        "  [PATCH] workqueue: Take each pool lock once per flush\n"
        "    A. Developer <dev@example.org>, +12 -4, kernel/workqueue.c\n"
        "checkpatch: 1 warning\n"
        "  WARNING: #42: line length of 104 exceeds 100 columns\n"
        "build 3 (baseline x86_64 measure): passed, reused\n"
        "  release: 6.12.48\n"
        "  build id: 0000000000000000000000000000000000000003\n"
        "  compiler: gcc 12.2.0\n"
        "  reproduce: tuxmake --target-arch x86_64\n"
        "build 4 (candidate x86_64 measure): passed, in 1:35, 1 new warnings\n"
        "  release: 6.12.48\n"
        "  build id: 0000000000000000000000000000000000000004\n"
        "  compiler: gcc 12.2.0\n"
        "  reproduce: tuxmake --target-arch x86_64\n"
        "  new warning: kernel/workqueue.c:10:3: unused variable 'x' [-Wunused-variable]\n"
    )
    lab.serve("/builds/4/log", b"  CC kernel/workqueue.o\n", content_type="text/plain")
    for name in ("candidate", "4"):
        assert wqlab("logs", "12", "--build", name).out == "  CC kernel/workqueue.o\n"
    lab.serve("/builds/3/config", b"CONFIG_SMP=y\n", content_type="text/plain")
    lab.serve("/builds/4/config", b"CONFIG_SMP=n\n", content_type="text/plain")
    assert wqlab("logs", "12", "--config").out == "CONFIG_SMP=y\n"
    assert wqlab("logs", "12", "--config", "--build", "4").out == "CONFIG_SMP=n\n"
    assert wqlab("logs", "12", "--config", "--json").code == 2
    ended = wqlab("logs", "12", "--build", "9")
    assert ended.code == 2
    assert "builds: 3 (baseline), 4 (candidate)" in ended.err
    found = json.loads(wqlab("logs", "12", "--json").out)
    assert found["apply"] == APPLIED.model_dump(mode="json")
    assert [each["id"] for each in found["builds"]] == [3, 4]


def test_console(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/runs/7", run(JobState.RUNNING, [boot(1, 0, 0, Arm.BASELINE), boot(2, 0, 1, Arm.CANDIDATE)]))
    lab.answers[("GET", "/api/v1/runs/7/console")] = lambda seen: Reply(
        body=f"boot {seen.query['boot']}\x1b[m\r\n".encode(), content_type="text/plain"
    )
    assert wqlab("console", "7").out == "boot 2\x1b[m\r\n", "into a pipe nothing is changed"
    assert wqlab("console", "7", "--boot", "1").out == "boot 1\x1b[m\r\n"
    ended = wqlab("console", "7", "--boot", "5")
    assert ended.code == 2
    assert "run 7 has no such boot\n  its boots: 1 (block 1 baseline), 2 (block 1 candidate)" in ended.err
    assert [each["id"] for each in json.loads(wqlab("console", "7", "--json").out)] == [1, 2]


def test_console_follows_from_boot_to_boot(wqlab: Wqlab, lab: FakeLab) -> None:
    first, second = boot(1, 0, 0, Arm.BASELINE), boot(2, 0, 1, Arm.CANDIDATE)
    lab.serve("/runs/7", run(JobState.RUNNING, [first]))
    lab.show(submission(SubmissionState.RUNNING, runs=[run(JobState.RUNNING, [first])]))

    def console(seen: Seen) -> Reply:
        assert seen.query["follow"] == "true"
        if seen.query["boot"] == "1":
            lab.show(submission(SubmissionState.RUNNING, runs=[run(JobState.FINISHED, [first, second])]))
        return Reply(body=f"boot {seen.query['boot']}\n".encode(), content_type="text/plain")

    lab.answers[("GET", "/api/v1/runs/7/console")] = console
    ended = wqlab("console", "7", "--follow")
    assert (ended.code, ended.out) == (0, "boot 1\nboot 2\n")
    assert "--- run 7, boot 2: block 1 candidate on xeon-2s-1 ---\n" in ended.err


def test_console_of_a_run_without_boots(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/runs/7", run(JobState.QUEUED))
    ended = wqlab("console", "7")
    assert (ended.code, ended.err) == (2, "wqlab: error: run 7 has no boot yet\n")


# --- compare ----------------------------------------------------------------------------------------------------


def samples_csv(candidate: int) -> str:
    rows = ["block,arm,boot,repetition,scenario,metric,unit,direction,value,role,evidence"]
    for block in range(4):
        for arm, value in (("baseline", 25), ("candidate", candidate)):
            tail = f"fsync,locks_per_flush,locks,lower_is_better,{value},primary,mechanism"
            rows += [f"{block},{arm},{2 * block + (arm == 'candidate')},{repetition},{tail}" for repetition in range(3)]
    return "\n".join(rows) + "\n"


def test_compare_works_without_a_lab(wqlab: Wqlab, lab: FakeLab, tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    for candidate, verdict, code in ((5, "improvement", 0), (25, "equivalent", 0), (75, "regression", 1)):
        file.write_text(samples_csv(candidate))
        ended = wqlab("compare", str(file))
        assert ended.code == code
        assert verdict in ended.out.lower()
        (found,) = json.loads(wqlab("compare", str(file), "--json").out)
        assert found["verdict"] == verdict
        assert (found["baseline"]["mean"], found["candidate"]["mean"]) == (25, candidate)
    ended = wqlab("compare", str(tmp_path / "none.csv"))
    assert (ended.code, ended.out) == (2, "")
    assert "none.csv: No such file" in ended.err
    assert lab.seen == []
