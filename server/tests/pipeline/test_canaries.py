"""Canaries through the real pipeline and API, with a scripted worker: when they run, and that they give way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import joinedload

from wqlab_contracts.enums import (
    Arm,
    CanaryKind,
    DeviceHealth,
    ErrorKind,
    JobKind,
    JobState,
    Outcome,
    RunPurpose,
)
from wqlab_contracts.loading import NOISE_CONTROL
from wqlab_contracts.messages import MboxSeries, RunResult, Series
from wqlab_server.models import Build, Run, RunAttempt, Submission
from wqlab_server.settings import Settings

from ..support.lab import LabUnderTest, RunSession, failed, passing_run

pytestmark = pytest.mark.integration

CONTROL = (Path(__file__).parents[3] / NOISE_CONTROL).read_text()

CANCELED = RunResult(outcome=Outcome.CANCELED, failure=failed(ErrorKind.CANCELED, "canceled"))


@pytest.fixture
def idle(settings: Settings, engine: Engine) -> Iterator[LabUnderTest]:
    """An idle lab with canaries, whose devices have passed their health checks."""
    path = settings.data_dir / "device-types/device.yaml"
    path.write_text(path.read_text() + "canary_minutes: 0\n")
    with lab_with(settings, engine) as lab:
        change(lab, canaries=120)
        yield lab


@contextmanager
def lab_with(settings: Settings, engine: Engine) -> Iterator[LabUnderTest]:
    """A lab whose devices have passed their health checks, and are idle since."""
    lab = LabUnderTest(settings.model_copy(update={"idle_check_after_s": 0.0}), engine)
    with lab.client:
        lab.worker.value = noise(1)
        lab.until_idle()
        assert lab.device("single-1").health is DeviceHealth.GOOD
        yield lab


def change(lab: LabUnderTest, **settings: Any) -> None:
    """Change settings of the pipeline."""
    lab.settings = lab.settings.model_copy(update=settings)


def reload(lab: LabUnderTest) -> None:
    """Read the data folder again, as the server does after a few seconds."""
    lab.app.state.data._checked_at = float("-inf")


def finish_without_canaries(lab: LabUnderTest, submission: int) -> Submission:
    """Finish a submission; canaries are not continued meanwhile, since no device is idle for long enough."""
    change(lab, idle_check_after_s=1e9)
    finished = lab.finished(submission)
    change(lab, idle_check_after_s=0.0)
    return finished


def noise(seed: int, deviation: float = 1.0) -> Any:
    """Return values of boots around 50; each call of the worker draws another one."""
    rng = np.random.default_rng(seed)
    return lambda *_: 50.0 + float(rng.normal(0, deviation))


def canaries(lab: LabUnderTest) -> list[Run]:
    with lab.transaction() as session:
        return list(
            session.scalars(
                select(Run).where(Run.purpose == RunPurpose.CANARY).options(joinedload(Run.canary)).order_by(Run.id)
            )
        )


def kind_of(run: Run) -> CanaryKind | None:
    return run.canary.kind if run.canary is not None else None


def claim(lab: LabUnderTest) -> RunSession:
    """Start a canary and claim it; its blocks are not run yet."""
    lab.tick()
    [offer] = [message for message in lab.sent if message.task == JobKind.RUN]
    lab.sent.clear()
    assert offer.id is not None
    run = lab.worker.claim_run(offer.id)
    assert run is not None
    assert run.job.purpose is RunPurpose.CANARY
    return run


def run_canaries(lab: LabUnderTest, number: int) -> None:
    """Run so many canaries, each on another day."""
    for _ in range(number):
        run = claim(lab)
        passing_run(run)
        run.finish()
        lab.tick()  # reads it, and may offer the next one
        for message in [each for each in lab.sent if each.task == JobKind.RUN]:
            lab.sent.remove(message)
        lab.sql("DELETE FROM leases")
        lab.sql("UPDATE run_attempts SET started_at = started_at - interval '1 day'")
        lab.sql("UPDATE run_attempts SET finished_at = finished_at - interval '1 day'")


class TestWhenTheyRun:
    def test_idle_device_compares_its_golden_kernel_with_itself(self, idle: LabUnderTest) -> None:
        job = claim(idle).job
        [canary] = canaries(idle)
        assert (kind_of(canary), canary.wanted_device, canary.submission_id) == (
            CanaryKind.SAME_KERNEL,
            "single-1",
            None,
        )
        assert job.kernels[Arm.BASELINE] == job.kernels[Arm.CANDIDATE]
        assert job.plan.name == "affinity", "the noise plan of the type"
        assert job.profile.settings == ["scope=system"], "the reference setting alone"
        assert [sorted(each.arms) for each in job.blocks] == [[Arm.BASELINE, Arm.CANDIDATE]] * 6
        assert idle.worker.builds[-1].recipe.name == "measure"
        assert len(idle.worker.builds) == 1, "only the golden kernel was built"

    def test_golden_kernel_is_compared_with_another_layout_of_itself(self, idle: LabUnderTest) -> None:
        run_canaries(idle, 1)
        with idle.transaction() as session:
            [build_id] = session.scalars(select(Build.id).where(Build.layouts > 1))
        idle.worker.build(build_id)
        run_canaries(idle, 1)  # was offered before the kernel was linked
        job = claim(idle).job
        assert kind_of(canaries(idle)[-1]) is CanaryKind.OTHER_LAYOUT
        [ordinary], [other] = job.layouts[Arm.BASELINE], job.layouts[Arm.CANDIDATE]
        assert ordinary.build_id_gnu == job.kernels[Arm.BASELINE].build_id_gnu != other.build_id_gnu
        assert job.kernel(Arm.CANDIDATE, 0) == job.kernel(Arm.CANDIDATE, 5) == other, "one layout in all blocks"

    def test_they_are_off_by_default(self, settings: Settings, engine: Engine) -> None:
        assert settings.canaries == 0
        with lab_with(settings, engine) as lab:
            lab.tick()
            assert canaries(lab) == []

    def test_device_type_takes_precedence(self, settings: Settings, engine: Engine) -> None:
        with lab_with(settings, engine) as lab:
            path = lab.settings.data_dir / "device-types/single.yaml"
            path.write_text(path.read_text() + "canary_minutes: 10\n")
            reload(lab)
            lab.tick()
            assert [run.wanted_device for run in canaries(lab)] == ["single-1"]

    def test_a_machine_that_others_use_is_left_to_them(self, settings: Settings, engine: Engine) -> None:
        """An idle lab orders no check of it, and no canary unless its device type sets `canary_minutes`."""
        other = settings.data_dir / "device-types/device.yaml"
        other.write_text(other.read_text() + "canary_minutes: 0\n")
        path = settings.data_dir / "device-types/single.yaml"
        path.write_text(path.read_text().replace("{name: single-1}", "{name: single-1, own_system: {}}"))
        lab = LabUnderTest(settings.model_copy(update={"idle_check_after_s": 0.0}), engine)
        with lab.client:
            lab.worker.value = noise(1)
            lab.until_idle()
            assert lab.device("single-1").health is DeviceHealth.UNKNOWN
            finish_without_canaries(lab, lab.submit("locks@single"))
            assert lab.device("single-1").health is DeviceHealth.GOOD, "checked because a run needed it"
            change(lab, canaries=120)
            lab.tick()
            assert canaries(lab) == []
            path.write_text(path.read_text() + "canary_minutes: 10\n")
            reload(lab)
            lab.tick()
            assert [run.wanted_device for run in canaries(lab)] == ["single-1"]

    def test_device_must_be_idle_for_a_while(self, idle: LabUnderTest) -> None:
        change(idle, idle_check_after_s=900.0)
        idle.tick()
        assert canaries(idle) == [], "its health check has just ended"
        idle.sql("UPDATE run_attempts SET finished_at = now() - interval '16 minutes'")
        idle.tick()
        assert len(canaries(idle)) == 1

    def test_minutes_of_the_day_are_a_limit(self, idle: LabUnderTest) -> None:
        claim(idle).finish(RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "no")))
        used = "UPDATE run_attempts SET started_at = now() - interval '{}', finished_at = now() - interval '2 hours'"
        idle.sql(used.format("5 hours"))
        idle.sql("UPDATE jobs SET finished_at = now() - interval '2 hours'")
        idle.tick()
        assert len(canaries(idle)) == 1, "three of the allowed two hours are used"
        idle.sql(used.format("3 hours"))
        idle.tick()
        assert len(canaries(idle)) == 2

    def test_waiting_submission_keeps_devices_free(self, idle: LabUnderTest) -> None:
        idle.submit("locks@single")
        idle.tick()
        assert canaries(idle) == [], "its kernels are not built yet"

    def test_plans_take_turns(self, idle: LabUnderTest) -> None:
        finish_without_canaries(idle, idle.submit("locks@single"))
        run_canaries(idle, 4)
        assert [run.plan_name for run in canaries(idle)][:4] == ["affinity", "locks"] * 2

    def test_control_series_is_compared_once_its_kernels_exist(self, idle: LabUnderTest) -> None:
        path = idle.settings.data_dir / NOISE_CONTROL
        path.parent.mkdir(parents=True)
        path.write_text(CONTROL)
        reload(idle)
        finish_without_canaries(idle, idle.submit("affinity@single", series=Series(mbox=MboxSeries(text=CONTROL))))
        run_canaries(idle, 2)
        same, nops = (canaries(idle)[number] for number in (0, 1))
        assert (kind_of(same), kind_of(nops)) == (CanaryKind.SAME_KERNEL, CanaryKind.NOPS)
        assert same.baseline_build_id == same.candidate_build_id == nops.baseline_build_id
        assert nops.candidate_build_id != nops.baseline_build_id


class TestGiveWay:
    def test_submission_stops_a_running_canary(self, idle: LabUnderTest) -> None:
        run = claim(idle)
        run.send_block(run.job.blocks[0])
        assert run.heartbeat()["cancel"] is False
        submission = idle.submit("locks@single")
        idle.tick()
        assert run.heartbeat()["cancel"] is True
        run.finish(CANCELED)
        assert finish_without_canaries(idle, submission).outcome is Outcome.PASSED
        [first] = canaries(idle)
        assert (first.state, first.boots_done) == (JobState.QUEUED, 2)
        with idle.transaction() as session:
            attempt = session.scalars(select(RunAttempt).where(RunAttempt.run_id == first.id)).first()
            assert attempt is not None
            assert attempt.outcome is Outcome.CANCELED
        assert idle.device("single-1").health is DeviceHealth.GOOD, "giving way is no fault of the device"

    def test_stopped_canary_continues_with_its_blocks(self, idle: LabUnderTest) -> None:
        run = claim(idle)
        run.send_block(run.job.blocks[0])
        submission = idle.submit("locks@single")
        idle.tick()
        run.finish(CANCELED)
        finish_without_canaries(idle, submission)
        again = claim(idle)
        assert again.job.run_id == run.job.run_id
        assert again.completed == [run.job.blocks[0].block]
        passing_run(again)
        again.finish()
        assert canaries(idle)[0].outcome is Outcome.PASSED

    def test_offer_of_a_canary_is_withdrawn(self, idle: LabUnderTest) -> None:
        idle.tick()
        assert len(canaries(idle)) == 1
        idle.submit("locks@single")
        idle.tick()
        with idle.transaction() as session:
            assert session.scalar(select(Run.state).where(Run.purpose == RunPurpose.CANARY)) is JobState.QUEUED
        assert idle.worker.claim_run(canaries(idle)[0].id) is None

    def test_hardware_canary_stops_only_for_a_run_that_needs_its_device(self, idle: LabUnderTest) -> None:
        hardware(idle)
        run = claim(idle)
        assert idle.finished(idle.submit("locks@device")).outcome is Outcome.PASSED
        assert run.heartbeat()["cancel"] is False, "the other type has devices of its own"
        idle.submit("locks@single")
        idle.work()
        assert run.heartbeat()["cancel"] is True

    def test_hardware_canary_stops_for_the_capacity_of_its_lab(self, idle: LabUnderTest) -> None:
        hardware(idle)
        run = claim(idle)
        change(idle, lab_capacity=1)
        idle.submit("locks@device")
        idle.work()
        assert run.heartbeat()["cancel"] is True

    def test_canary_does_not_delay_quotes_and_queue(self, idle: LabUnderTest) -> None:
        claim(idle)
        headers = {"Authorization": f"Bearer {idle.token}"}
        assert idle.client.get("/api/v1/queue", headers=headers).json()["entries"] == []
        request = {"series": None, "tree": "lab-tree", "targets": [{"plan": "affinity", "device_type": "single"}]}
        answer = idle.client.post("/api/v1/quotes", headers=headers, json=request)
        assert answer.status_code == 200, answer.text
        [target] = answer.json()["targets"]
        assert (target["ahead_runs"], target["device_counts"]["good"]) == (0, 1)

    def test_canary_that_never_finishes_is_dropped_after_a_day(self, idle: LabUnderTest) -> None:
        run = claim(idle)
        idle.submit("locks@single")
        idle.tick()
        run.finish(CANCELED)
        idle.sql(
            "UPDATE jobs SET created_at = now() - interval '25 hours' "
            "WHERE id IN (SELECT id FROM runs WHERE purpose = 'canary')"
        )
        idle.tick()
        [first, *_] = canaries(idle)
        assert (first.state, first.outcome) == (JobState.FINISHED, Outcome.CANCELED)
        assert first.failure is not None
        assert "idle too rarely" in first.failure.summary

    def test_switched_off_canaries_are_dropped(self, idle: LabUnderTest) -> None:
        run = claim(idle)
        idle.submit("locks@single")
        idle.tick()
        run.finish(CANCELED)
        change(idle, canaries=0)
        idle.tick()
        assert [each.outcome for each in canaries(idle)] == [Outcome.CANCELED]


def hardware(lab: LabUnderTest) -> None:
    """Make all devices hardware, and check them."""
    for name in ("device", "single"):
        path = lab.settings.data_dir / f"device-types/{name}.yaml"
        path.write_text(path.read_text().replace("emulation: {memory_mib: 512}\n", ""))
    reload(lab)
    change(lab, canaries=0)
    lab.until_idle()
    change(lab, canaries=120)


def test_kernel_failure_of_a_canary_makes_the_device_suspect(idle: LabUnderTest) -> None:
    run = claim(idle)
    run.finish(RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.KERNEL, "Oops")))
    assert idle.device("single-1").health is DeviceHealth.SUSPECT
    assert canaries(idle)[0].outcome is Outcome.FAILED


def test_failed_canary_is_not_repeated_at_once(idle: LabUnderTest) -> None:
    claim(idle).finish(RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "the script failed")))
    idle.tick()
    idle.tick()
    assert len(canaries(idle)) == 1


def test_passing_canary_stores_its_boot_values(idle: LabUnderTest) -> None:
    run = claim(idle)
    passing_run(run)
    run.finish()
    idle.tick()
    [canary, *_] = canaries(idle)
    assert canary.compared_at is not None
