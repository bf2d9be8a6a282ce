"""Verdicts derived from a bundle agree with the server's, and a report that says something else is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundles import SaveBundle, read_files, resigned, write_files

from server.tests.support.lab import NOW, LabUnderTest, RunSession, ScriptedWorker, failed, passing_run
from server.tests.support.modelled import add_modelled_device
from wqlab_client.replay.archive import open_bundle
from wqlab_client.replay.checks import Check, Result
from wqlab_client.replay.derive import Replay, replay
from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, NotMeasuredCause, Outcome
from wqlab_contracts.messages import ApplyResult, BootKey, BuildJob, BuildResult, RunResult, Unsupported
from wqlab_server.submissions import service as submissions

pytestmark = pytest.mark.integration


def replayed(path: Path) -> Replay:
    with open_bundle(path) as bundle:
        return replay(bundle)


def differing(found: Replay) -> list[Check]:
    return [check for check in found.checks if check.result is Result.DIFFERS]


def improve(lab: LabUnderTest) -> int:
    return lab.submit("locks@device")


def compare_settings(lab: LabUnderTest) -> int:
    return lab.submit("affinity@device", series=None)


def two_targets(lab: LabUnderTest) -> int:
    return lab.submit("affinity@single", "locks@device", "locks@single", blocks=6)


def noisy(lab: LabUnderTest) -> int:
    lab.worker.value = lambda arm, setting, metric, block: (
        33.3 + (7 * block % 5) / 3 + (arm is Arm.CANDIDATE) * (0.7 + block % 3)
    )
    return lab.submit("locks@device", "affinity@single", blocks=8)


def model(lab: LabUnderTest) -> int:
    add_modelled_device(lab)
    return lab.submit("locks@model", "locks@single")


def discard_candidates(lab: LabUnderTest) -> int:
    def fail_each_block_once(run: RunSession) -> RunResult:
        for number, plan in enumerate(run.remaining):
            lost = failed(ErrorKind.INFRASTRUCTURE, f"lost the connection, way {number}")
            run.send_failed_boot(plan, Arm.CANDIDATE, lost.model_copy(update={"of_variant": True}))
            run.send_block(plan.model_copy(update={"first_attempt": 1}))
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_run = fail_each_block_once
    return lab.submit("locks@device")


def lose_sessions(lab: LabUnderTest) -> int:
    """Submit a run in which a failure of the lab interrupts each block once; return the submission's id."""

    def fail_each_block_once(run: RunSession) -> RunResult:
        for plan in run.remaining:
            run.send_failed_boot(plan, Arm.CANDIDATE, failed(ErrorKind.INFRASTRUCTURE, "the session was killed"))
            run.send_block(plan.model_copy(update={"first_attempt": 1}))
        return RunResult(outcome=Outcome.PASSED)

    lab.worker.on_run = fail_each_block_once
    return lab.submit("locks@device")


def build_equal_kernels(lab: LabUnderTest) -> int:
    def build(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
        image = worker.upload(ArtifactKind.KERNEL, "kernel", b"the same image")
        return BuildResult(outcome=Outcome.PASSED, build_id_gnu="e" * 40, content_sha256="c" * 64, artifacts=[image])

    lab.worker.on_build = build
    return lab.submit("locks@device")


def panic(lab: LabUnderTest) -> int:
    def fail(run: RunSession) -> RunResult:
        first = run.remaining[0]
        run.send_block(first)
        run.send_failed_boot(run.remaining[1], Arm.CANDIDATE, failed(ErrorKind.KERNEL, "Kernel panic - not syncing"))
        return RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.KERNEL, "the candidate panicked"))

    lab.worker.on_run = fail
    return lab.submit("locks@device")


def lose_power(lab: LabUnderTest) -> int:
    lab.worker.on_run = lambda run: RunResult(
        outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, "the power outlet does not answer")
    )
    return lab.submit("locks@single")


def lack_a_scope(lab: LabUnderTest) -> int:
    def report_unsupported(run: RunSession) -> RunResult:
        result = passing_run(run)
        for plan in run.remaining:
            for position, arm in enumerate(plan.arms):
                key = BootKey(block=plan.block, position=position, arm=arm, attempt=0)
                run.send(
                    Unsupported(
                        at=NOW,
                        boot=key,
                        scenario="high",
                        setting="scope=cpu",
                        cause=NotMeasuredCause.LACKING,
                        reason=f"no scope {position}",
                    )
                )
        lab.sql("DELETE FROM samples WHERE setting = 'scope=cpu'")
        return result

    lab.worker.on_run = report_unsupported
    return lab.submit("affinity@device")


def find_faults(lab: LabUnderTest) -> int:
    return lab.submit("locks@device", recipe="debug")


def cancel(lab: LabUnderTest) -> int:
    submission_id = lab.submit("locks@device")
    with lab.transaction() as session:
        submissions.cancel(session, submission_id)
    return submission_id


def refuse_the_series(lab: LabUnderTest) -> int:
    lab.worker.on_apply = lambda job, worker: ApplyResult(
        outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "the series does not apply"), toolchain="gcc 12.2.0"
    )
    return lab.submit("locks@device")


@pytest.mark.parametrize(
    ("story", "summary"),
    [
        (improve, "on device (emulated). Speed was not measured."),
        (compare_settings, "device (emulated)"),
        (two_targets, "on single (emulated, locks)"),
        (noisy, "device (emulated, locks)"),
        (model, "Verdict withheld on model (modelled)"),
        (discard_candidates, "Can't tell yet on device (emulated)"),
        (lose_sessions, "Better: locks per flush"),
        (build_equal_kernels, "Byte-identical kernels on device (emulated)"),
        (panic, "Fails on device (emulated)"),
        (lose_power, "Not measured (infrastructure) on single (emulated)"),
        (lack_a_scope, "device (emulated)"),
        (find_faults, "No problem and no figures on device (emulated)"),
        (cancel, "Not measured (canceled) on device (emulated)"),
        (refuse_the_series, "Not measured (user) on device (emulated)"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_derived_verdicts_are_those_of_the_server(
    real_lab: LabUnderTest, save: SaveBundle, story: Callable[[LabUnderTest], int], summary: str
) -> None:
    real_lab.mark_all_good()
    submission_id = story(real_lab)
    real_lab.finished(submission_id)
    found = replayed(save(submission_id))
    assert differing(found) == []
    assert summary in found.summary
    assert found.count(Result.AGREES) >= 3


# --- what a dishonest lab could write: records and report are changed, and the manifest is signed again ---------


def changed(path: Path, key: Path, name: str, change: Callable[[Any], None]) -> Path:
    """Return a correctly signed bundle with a changed JSON file."""
    files = read_files(path)
    document = json.loads(files[name])
    change(document)
    files[name] = json.dumps(document).encode()
    return write_files(path.with_suffix(".changed.zip"), resigned(files, key))


def sole(found: Replay, subject: str) -> Check:
    (check,) = [check for check in differing(found) if check.subject == subject]
    return check


def test_changed_verdict_in_the_report_is_noticed(improvement: Path, signing_key: Path) -> None:
    def change(report: Any) -> None:
        (primary,) = [each for each in report["targets"][0]["comparisons"] if each["role"] == "primary"]
        primary["verdict"] = "regression"

    found = replayed(changed(improvement, signing_key, "report.json", change))
    check = sole(found, "flush locks_per_flush")
    assert check.text == "verdict: report says regression, samples give improvement"
    assert check.target == "locks on device"


def test_changed_figure_in_the_report_is_noticed(improvement: Path, signing_key: Path) -> None:
    def change(report: Any) -> None:
        (primary,) = [each for each in report["targets"][0]["comparisons"] if each["role"] == "primary"]
        primary["candidate"]["mean"] = 4.99

    found = replayed(changed(improvement, signing_key, "report.json", change))
    assert sole(found, "flush locks_per_flush").text == "candidate mean: report says 4.99, samples give 5"


def test_missing_comparison_is_noticed(improvement: Path, signing_key: Path) -> None:
    found = replayed(
        changed(improvement, signing_key, "report.json", lambda report: report["targets"][0]["comparisons"].pop(0))
    )
    assert sole(found, "flush locks_per_flush").text == "not in the report"


@pytest.mark.parametrize(("field", "value"), [("headline", "much better"), ("verdict", "regression")])
def test_changed_conclusion_is_noticed(improvement: Path, signing_key: Path, field: str, value: str) -> None:
    found = replayed(
        changed(improvement, signing_key, "report.json", lambda report: report["targets"][0].update({field: value}))
    )
    assert f"report says {value}" in sole(found, "verdict").text
    found = replayed(changed(improvement, signing_key, "report.json", lambda report: report.update(summary="better")))
    assert "report says better, samples give Better: locks per flush" in sole(found, "summary").text


def test_changed_sample_is_noticed(improvement: Path, signing_key: Path) -> None:
    files = read_files(improvement)
    (name,) = [name for name in files if name.endswith("/samples.csv")]
    # A repetition that is no warm-up of the candidate, and the primary metric.
    lines = files[name].decode().splitlines(keepends=True)
    index = next(i for i, line in enumerate(lines) if ",candidate," in line and ",1,0,locks_per_flush," in line)
    lines[index] = lines[index].replace(",5.0\n", ",33.0\n")
    files[name] = "".join(lines).encode()
    found = replayed(write_files(improvement.with_suffix(".changed.zip"), resigned(files, signing_key)))
    subjects = {check.subject for check in differing(found)}
    assert {"boot values", "flush locks_per_flush", "verdict"} <= subjects
    assert "report says 5, samples give 33" in sole(found, "boot values").text


def test_samples_of_a_boot_that_does_not_count_are_noticed(improvement: Path, signing_key: Path) -> None:
    def invalidate(record: Any) -> None:
        record["boots"][0]["valid"] = False

    (name,) = [name for name in read_files(improvement) if name.endswith("/run.json")]
    found = replayed(changed(improvement, signing_key, name, invalidate))
    assert "which is not a valid boot" in sole(found, "boots").text
    assert "is not valid, but its block was finished" in sole(found, "blocks").text


def test_boot_of_another_kernel_is_noticed(improvement: Path, signing_key: Path) -> None:
    (name,) = [name for name in read_files(improvement) if name.endswith("/run.json")]
    found = replayed(
        changed(improvement, signing_key, name, lambda record: record["boots"][1].update(build_id_gnu="f" * 40))
    )
    assert f"ran {'f' * 40}, the" in sole(found, "kernels").text


def test_metric_described_unlike_the_plan_is_noticed(improvement: Path, signing_key: Path) -> None:
    files = read_files(improvement)
    (name,) = [name for name in files if name.endswith("/samples.csv")]
    files[name] = files[name].replace(b",lower_is_better,", b",higher_is_better,")
    found = replayed(write_files(improvement.with_suffix(".changed.zip"), resigned(files, signing_key)))
    assert "higher_is_better" in sole(found, "metrics").text


def test_hidden_discard_is_noticed(real_lab: LabUnderTest, save: SaveBundle, signing_key: Path) -> None:
    """Discards that lean to one arm withhold the verdict; a record without them gives another one."""
    real_lab.mark_all_good()
    path = save(real_lab.finished(discard_candidates(real_lab)).id)

    def hide(record: Any) -> None:
        record["attempts"] = [each for each in record["attempts"] if each["finished"]]

    (name,) = [name for name in read_files(path) if name.endswith("/run.json")]
    subjects = {check.subject for check in differing(replayed(changed(path, signing_key, name, hide)))}
    assert {"blocks", "flush locks_per_flush", "verdict", "summary"} <= subjects


def test_finding_is_checked_against_the_console(real_lab: LabUnderTest, save: SaveBundle, signing_key: Path) -> None:
    title = "Kernel panic - not syncing: Fatal exception"

    def fail(run: RunSession) -> RunResult:
        first, second = run.remaining[0], run.remaining[1]
        run.send_block(first)
        run.send_failed_boot(second, Arm.CANDIDATE, failed(ErrorKind.KERNEL, title))
        key = BootKey(block=second.block, position=second.arms.index(Arm.CANDIDATE), arm=Arm.CANDIDATE, attempt=0)
        run.console(key, 0, f"[    1.000000] \x1b[31m{title}\x1b[0m\r\n".encode())
        return RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.KERNEL, "the candidate panicked"))

    real_lab.mark_all_good()
    real_lab.worker.on_run = fail
    path = save(real_lab.finished(real_lab.submit("locks@device")).id)
    found = replayed(path)
    assert differing(found) == []
    assert [check.text for check in found.checks if "panic in block" in check.subject] == [f"on the console: {title}"]

    files = read_files(path)
    (console,) = [name for name, content in files.items() if "/consoles/" in name and content]
    files[console] = b"login:\n"
    found = replayed(write_files(path.with_suffix(".changed.zip"), resigned(files, signing_key)))
    assert [check.text for check in differing(found)] == [f"not on the boot's console: {title}"]
