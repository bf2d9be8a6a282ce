"""Runs in a folder, with a scripted backend: what is measured, what survives an interruption, what is reported."""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ab_runs import METRIC, PANIC, ROOT, ScriptedBackend, begun

from wqlab_client.ab import run
from wqlab_client.ab.job import emulated_device, find_data, make_job
from wqlab_client.ab.journal import read_events
from wqlab_client.ab.record import record_of
from wqlab_client.ab.report import make_report
from wqlab_client.ab.state import StateFolder
from wqlab_client.cli.app import main
from wqlab_client.compare import compare_files
from wqlab_client.errors import UsageError
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Arm, ExitCode, Verdict


def worse(arm: Arm, block: int) -> float:
    """Return a value that is larger by a half on the candidate, with noise."""
    return (100.0 + block % 3) * (1.5 if arm is Arm.CANDIDATE else 1.0) + (block * 7 % 5) / 10


Measure = Callable[[ScriptedBackend], Report]


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    return begun(tmp_path)


@pytest.fixture
def measure(folder: StateFolder, monkeypatch: pytest.MonkeyPatch) -> Measure:
    def call(backend: ScriptedBackend) -> Report:
        monkeypatch.setattr(run, "_backend", lambda *_: backend)
        return run.measure_all(folder, folder.path, lambda _: None)

    return call


def test_equal_kernels_are_no_change_and_every_format_is_written(folder: StateFolder, measure: Measure) -> None:
    report = measure(ScriptedBackend())
    assert report.submission.exit_code == ExitCode.DONE
    assert report.targets[0].verdict is Verdict.EQUIVALENT
    assert report.targets[0].blocks_completed == 6
    text = (folder.path / "report.txt").read_text()
    assert "6.12.1-patched against 6.12.1" in text and "wqlab ab, finished" in text
    assert f"sh {folder.path.name}/repro.sh" in text and f"wqlab compare {folder.path.name}/samples.csv" in text
    assert "checkpatch" not in text and "wqlab bundle" not in text
    assert json.loads((folder.path / "report.json").read_text())["lab_url"].startswith("file://")
    assert "/submissions" not in (folder.path / "report.html").read_text()
    assert {"report.md", "report.xml", "report.mmtests", "run.json", "repro.sh"} <= {
        each.name for each in folder.path.iterdir()
    }


def test_more_of_a_counted_event_is_a_regression_with_exit_code_1(measure: Measure) -> None:
    report = measure(ScriptedBackend(worse))
    assert report.submission.exit_code == ExitCode.REGRESSION
    assert report.targets[0].verdict is Verdict.REGRESSION


def test_throughput_of_an_emulator_is_no_evidence(folder: StateFolder, measure: Measure) -> None:
    measure(ScriptedBackend())
    specs = {each.name: each.evidence(True).value for each in folder.read_plan().job.plan.metrics}
    assert (specs["time_s"], specs[METRIC]) == ("none", "mechanism")


def test_samples_compare_offline_as_in_the_report(folder: StateFolder, measure: Measure) -> None:
    measure(ScriptedBackend(worse))
    assert compare_files([folder.path / "samples.csv"]) == ExitCode.REGRESSION


def test_an_interrupted_run_goes_on_with_the_block_that_was_cut_off(folder: StateFolder, measure: Measure) -> None:
    first = ScriptedBackend(stop_in=2)
    report = measure(first)
    assert run.is_interrupted(report.submission.failure)
    assert report.targets[0].blocks_completed == 2
    second = ScriptedBackend()
    report = measure(second)
    assert second.executed == [[(2, 1), (3, 0), (4, 0), (5, 0)]]
    assert report.targets[0].blocks_completed == 6
    assert report.targets[0].verdict is Verdict.EQUIVALENT
    assert report.targets[0].discarded == {}, "an interruption counts against no kernel"
    assert report.targets[0].discarded_by_lab == 0


def test_a_killed_run_loses_nothing_but_its_block(folder: StateFolder, measure: Measure) -> None:
    """The journal ends in the middle of an event of an open block."""
    measure(ScriptedBackend(stop_in=2))
    lines = folder.events.read_bytes().splitlines(keepends=True)
    assert b"block_discarded" in lines[-1]
    folder.events.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    second = ScriptedBackend()
    report = measure(second)
    assert second.executed == [[(2, 1), (3, 0), (4, 0), (5, 0)]]
    assert report.targets[0].blocks_completed == 6
    assert len({event.type for event in read_events(folder.events)}) == 6


def test_a_finished_run_is_not_measured_again(folder: StateFolder, measure: Measure) -> None:
    measure(ScriptedBackend())
    again = ScriptedBackend()
    assert measure(again).targets[0].verdict is Verdict.EQUIVALENT
    assert again.executed == []


def test_a_panic_of_the_candidate_fails_the_series(measure: Measure) -> None:
    report = measure(ScriptedBackend(panics=frozenset({Arm.CANDIDATE})))
    assert report.submission.exit_code == ExitCode.SERIES_FAILED
    assert PANIC in report.targets[0].findings[0].title
    assert report.submission.failure is not None


def test_a_block_with_a_panic_behind_its_last_script_is_measured_again(measure: Measure) -> None:
    backend = ScriptedBackend(late=frozenset({(1, 0)}))
    report = measure(backend)
    assert backend.executed[1:] == [[(1, 1)]]
    assert report.targets[0].discarded == {Arm.CANDIDATE: 1}
    assert report.submission.exit_code == ExitCode.SERIES_FAILED


def test_a_kernel_that_was_replaced_is_refused(folder: StateFolder) -> None:
    kernel = folder.read_plan().job.kernels[Arm.CANDIDATE]
    folder.artifact(kernel.image)
    (folder.path / kernel.image.name).write_bytes(b"another build")
    with pytest.raises(UsageError, match="was changed since the first boot"):
        folder.artifact(kernel.image)


def test_consoles_have_the_names_of_a_bundle(folder: StateFolder, measure: Measure) -> None:
    measure(ScriptedBackend(stop_in=0))
    [console] = folder.consoles.iterdir()
    assert console.name.startswith("block000-boot0-") and console.read_bytes() == b"Linux version 6.12.1\r\n"


def test_settings_of_one_kernel_are_compared_with_the_first(tmp_path: Path) -> None:
    data, (scope, other) = find_data(ROOT), ("scope=cache,strict=0", "scope=system,strict=0")
    device_type = data.device_types["tiny"]
    kernels = {Arm.BASELINE: begun(tmp_path).read_plan().job.kernels[Arm.BASELINE]}
    plan = data.plans["dm-crypt-affinity"].on(device_type)
    job = make_job(
        data, device_type, emulated_device(device_type, ""), plan, kernels,
        seed=7, blocks=3, settings=["scope=cache", "scope=system"], parameters={},
    )  # fmt: skip
    assert (job.plan.reference_setting, job.profile.settings) == (scope, [scope, other])
    assert [each.arms for each in job.blocks] == [[Arm.BASELINE]] * 3
    recorded = record_of(job, device_type, [], None, None)
    made = StateFolder(tmp_path).read_plan()
    notes = {Arm.BASELINE: made.kernels[Arm.BASELINE]}
    report = make_report(
        StateFolder(tmp_path), made.model_copy(update={"job": job, "kernels": notes}), recorded, made.created_at
    )
    assert report.submission.title == f"{other} against {scope} on 6.12.1"
    assert {(each.question.value, each.reference) for each in report.targets[0].comparisons} == {("setting", scope)}


def test_full_disk_is_named_and_the_run_goes_on_afterwards(
    folder: StateFolder, measure: Measure, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = folder.consoles / "block002-boot0-baseline-attempt0.log"
    full.symlink_to("/dev/full")
    (folder.consoles / "block002-boot0-candidate-attempt0.log").symlink_to("/dev/full")
    monkeypatch.setattr(run, "_backend", lambda *_: ScriptedBackend())
    monkeypatch.setattr(sys, "argv", ["wqlab", "ab", "--resume", str(folder.path), "--yes"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "No space left on device" in said and "wqlab ab --resume" in said
    second = ScriptedBackend()
    assert measure(second).targets[0].blocks_completed == 6
    assert second.executed == [[(2, 1), (3, 0), (4, 0), (5, 0)]]


def test_folder_in_which_another_program_measures_is_refused(folder: StateFolder, measure: Measure) -> None:
    with (folder.path / "log.txt").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another `wqlab ab` measures in"):
            measure(ScriptedBackend())
    assert measure(ScriptedBackend()).targets[0].blocks_completed == 6
