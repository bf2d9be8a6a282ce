"""`wqlab report`, `logs`, `console` and `compare`: output, requests and exit codes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from commandline import Wqlab
from example_views import APPLIED, VIEWS, boot, build, run, submission
from fakelab import FakeLab, Reply, Request

from wqlab_client.progress import checkpatch_counts
from wqlab_contracts.enums import Arm, ArtifactKind, JobState, SubmissionState
from wqlab_contracts.messages import Artifact, CompilerWarning

FINISHED = VIEWS[-1]


def test_report_is_printed_or_written_unchanged(wqlab: Wqlab, lab: FakeLab, tmp_path: Path) -> None:
    lab.answers[("GET", "/api/v1/submissions/12/report")] = lambda request: Reply(
        body=f"<{request.query['format']} ±>".encode(), content_type="text/plain"
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


def test_logs_print_apply_and_builds(wqlab: Wqlab, lab: FakeLab) -> None:
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


def test_console_prints_the_chosen_boot(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/runs/7", run(JobState.RUNNING, [boot(1, 0, 0, Arm.BASELINE), boot(2, 0, 1, Arm.CANDIDATE)]))
    lab.answers[("GET", "/api/v1/runs/7/console")] = lambda request: Reply(
        body=f"boot {request.query['boot']}\x1b[m\r\n".encode(), content_type="text/plain"
    )
    assert wqlab("console", "7").out == "boot 2\x1b[m\r\n", "output to a pipe is not escaped"
    assert wqlab("console", "7", "--boot", "1").out == "boot 1\x1b[m\r\n"
    ended = wqlab("console", "7", "--boot", "5")
    assert ended.code == 2
    assert "run 7 has no such boot\n  boots: 1 (block 1 baseline), 2 (block 1 candidate)" in ended.err
    assert [each["id"] for each in json.loads(wqlab("console", "7", "--json").out)] == [1, 2]


def test_console_follow_continues_with_the_next_boot(wqlab: Wqlab, lab: FakeLab) -> None:
    first, second = boot(1, 0, 0, Arm.BASELINE), boot(2, 0, 1, Arm.CANDIDATE)
    lab.serve("/runs/7", run(JobState.RUNNING, [first]))
    lab.show(submission(SubmissionState.RUNNING, runs=[run(JobState.RUNNING, [first])]))

    def console(request: Request) -> Reply:
        assert request.query["follow"] == "true"
        if request.query["boot"] == "1":
            lab.show(submission(SubmissionState.RUNNING, runs=[run(JobState.FINISHED, [first, second])]))
        return Reply(body=f"boot {request.query['boot']}\n".encode(), content_type="text/plain")

    lab.answers[("GET", "/api/v1/runs/7/console")] = console
    ended = wqlab("console", "7", "--follow")
    assert (ended.code, ended.out) == (0, "boot 1\nboot 2\n")
    assert "--- run 7, boot 2: block 1 candidate on xeon-2s-1 ---\n" in ended.err


def test_console_of_a_run_without_boots_is_an_error(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/runs/7", run(JobState.QUEUED))
    ended = wqlab("console", "7")
    assert (ended.code, ended.err) == (2, "wqlab: error: run 7 has no boot yet\n")


def test_samples_raw_prints_the_output_of_each_boot(wqlab: Wqlab, lab: FakeLab) -> None:
    outputs = {"block0-0-baseline.txt": b"value\tlocks\t34\n", "block0-1-candidate.txt": b"value\tlocks\t4\n"}
    kept = [_artifact(ArtifactKind.RAW_OUTPUT, name, content) for name, content in outputs.items()]
    lab.serve("/runs/7/artifacts", [*kept, _artifact(ArtifactKind.WORKQUEUE_SERIES, "series.csv", b"s")])
    for artifact, content in zip(kept, outputs.values(), strict=True):
        lab.serve(f"/runs/7/artifacts/{artifact.sha256}", content, content_type="text/plain")
    assert wqlab("samples", "7", "--raw").out == (
        "## block0-0-baseline.txt\nvalue\tlocks\t34\n## block0-1-candidate.txt\nvalue\tlocks\t4\n"
    )


def test_run_without_raw_output_is_an_error(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/runs/7/artifacts", [_artifact(ArtifactKind.WORKQUEUE_SERIES, "series.csv", b"s")])
    ended = wqlab("samples", "7", "--raw")
    assert (ended.code, ended.out) == (2, "")
    assert "run 7 has no output of its plan's script" in ended.err


def _artifact(kind: ArtifactKind, name: str, content: bytes) -> Artifact:
    return Artifact(sha256=hashlib.sha256(content).hexdigest(), size=len(content), kind=kind, name=name)


def samples_csv(candidate: int) -> str:
    rows = ["block,arm,boot,repetition,scenario,metric,unit,direction,value,role,evidence"]
    for block in range(4):
        for arm, value in (("baseline", 25), ("candidate", candidate)):
            tail = f"fsync,locks_per_flush,locks,lower_is_better,{value},primary,mechanism"
            rows += [f"{block},{arm},{2 * block + (arm == 'candidate')},{repetition},{tail}" for repetition in range(3)]
    return "\n".join(rows) + "\n"


def test_compare_needs_no_server(wqlab: Wqlab, lab: FakeLab, tmp_path: Path) -> None:
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
    assert lab.requests == []


def test_series_that_checkpatch_did_not_see_is_not_clean() -> None:
    reason = "the series was not applied"
    unchecked = APPLIED.model_copy(update={"checkpatch": [], "checkpatch_skipped": reason})
    assert checkpatch_counts(unchecked) == f"not run, because {reason}"
    partly = APPLIED.model_copy(update={"checkpatch_skipped": reason})
    assert checkpatch_counts(partly) == f"1 warning; incomplete, because {reason}"
    assert checkpatch_counts(APPLIED.model_copy(update={"checkpatch": []})) == "clean"
