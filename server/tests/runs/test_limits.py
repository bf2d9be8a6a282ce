"""Limits on what the worker of a run may send."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from sqlalchemy import func, select

from wqlab_contracts.enums import ArtifactKind, FindingKind
from wqlab_contracts.messages import (
    BootStarted,
    BootVerified,
    Finding,
    MeasuredTopology,
    Progress,
    Sample,
    Samples,
    Unsupported,
)
from wqlab_server.models import Boot, Event
from wqlab_server.models import Sample as SampleRow
from wqlab_server.runs import limits

from ..support.lab import NOW, LabUnderTest, RunSession

pytestmark = pytest.mark.integration
VALID = {"scenario": "flush", "setting": "", "repetition": 0, "metric": "locks_per_flush", "value": 1.0}


@pytest.fixture
def booted(run: RunSession) -> RunSession:
    run.send(BootStarted(at=NOW, boot=run.first_key))
    return run


@pytest.mark.parametrize(
    ("name", "value"), [("scenario", "x"), ("setting", "scope=x"), ("metric", "x"), ("repetition", 3)]
)
def test_sample_that_the_plan_does_not_define_is_refused(
    lab: LabUnderTest, booted: RunSession, name: str, value: Any
) -> None:
    def send(sample: Sample, expect: int) -> str:
        return booted.send(Samples(at=NOW, boot=booted.first_key, samples=[sample]), expect=expect).text

    send(Sample.model_validate(VALID), 204)
    assert str(value) in send(Sample.model_validate(VALID | {name: value}), 422)
    with lab.transaction() as session:
        assert session.scalar(select(func.count()).select_from(SampleRow)) == 1


def test_number_of_boots_is_limited(lab: LabUnderTest, run: RunSession) -> None:
    first = run.first_key
    for wrong in ({"position": 9}, {"position": -1}, {"attempt": 10**6}, {"attempt": -1}, {"block": 9}):
        run.send(BootStarted(at=NOW, boot=first.model_copy(update=wrong)), expect=422)
    planned = sum(len(plan.arms) for plan in run.job.blocks)
    keys = [
        first.model_copy(update={"attempt": attempt, "position": position, "block": plan.block})
        for plan in run.job.blocks
        for attempt in range(40)
        for position in range(3)
    ]
    run.send(*(BootStarted(at=NOW, boot=key) for key in keys), expect=422)
    with lab.transaction() as session:
        assert session.scalar(select(func.count()).select_from(Boot)) == 0
    run.send(*(BootStarted(at=NOW, boot=key) for key in keys[: 2 * planned]))


def test_texts_of_a_device_are_cut_and_not_refused(lab: LabUnderTest, booted: RunSession) -> None:
    key, text = booted.first_key, "\U0001f512" * limits.EVENT_BYTES
    finding = Finding(
        at=NOW, boot=key, kind=FindingKind.WARNING, title=text, excerpt=text, console_offset=0, fatal=False
    )
    unsupported = Unsupported(
        at=NOW, boot=key, scenario="flush", setting="", metric="locks_per_flush", cause="lacking", reason=text
    )
    booted.send(finding, unsupported, expect=204)
    for number in range(20):
        facts = {f"fact {number} {each}": text for each in range(50)}
        booted.send(Samples(at=NOW, boot=key, samples=[], facts=facts, commands={"flush": text}), expect=204)
    with lab.transaction() as session:
        (boot,) = session.scalars(select(Boot))
        assert len(boot.environment["fact 0 0"]) == 2000
        assert 10 < len(boot.environment) <= limits.FACTS_PER_BOOT
        assert len(json.dumps(boot.environment, ensure_ascii=False).encode()) < 2 * limits.FACTS_BYTES


def test_too_many_reasons_in_one_cell_are_refused(booted: RunSession) -> None:
    reasons = [
        Unsupported(
            at=NOW, boot=booted.first_key, scenario="flush", setting="", metric=f"m{n}", cause="lacking", reason="r"
        )
        for n in range(50)
    ]
    booted.send(*reasons, expect=422)


def test_large_event_is_refused(booted: RunSession) -> None:
    wide = list(range(limits.EVENT_BYTES // 4))
    topology = MeasuredTopology(cpus=1, core=wide, l3=[0], node=[0], package=[0])
    verified = BootVerified(
        at=NOW, boot=booted.first_key, kernel_boot_id="b", token="t", build_id_gnu="", release="", cmdline="",
        topology=topology, golden_s=1.0, kexec_s=1.0,
    )  # fmt: skip
    booted.send(verified, expect=422)


def test_findings_and_progress_beyond_the_limit_are_left_out(
    lab: LabUnderTest, booted: RunSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FINDINGS_PER_BOOT", 2)
    monkeypatch.setattr(limits, "EVENTS_PER_BOOT", 1)
    key = booted.first_key
    for number in range(5):
        booted.send(
            Finding(
                at=NOW, boot=key, kind=FindingKind.WARNING, title=f"{number}", excerpt="", console_offset=0, fatal=False
            )
        )
    for number in range(100):
        booted.send(Progress(at=NOW, text=f"step {number}"))
    with lab.transaction() as session:
        kinds = [event.kind.value for event in session.scalars(select(Event))]
    assert kinds.count("finding") == 2
    assert kinds.count("run_progress") < 100


def upload(run: RunSession, content: bytes, kind: ArtifactKind, name: str = "x") -> int:
    headers = {"X-Job": str(run.job.run_id), "X-Fence": str(run.fence)}
    sha256 = hashlib.sha256(content).hexdigest()
    return run.worker.request(
        "PUT", f"artifacts/{sha256}", params={"kind": kind.value, "name": name}, headers=headers, content=content
    ).status_code


def test_artifacts_of_a_run_are_limited_in_kind_size_and_number(booted: RunSession) -> None:
    assert upload(booted, b"kernel", ArtifactKind.KERNEL) == 422
    assert upload(booted, bytes(9 << 20), ArtifactKind.RAW_OUTPUT) == 413
    assert upload(booted, bytes(9 << 20), ArtifactKind.INSTRUMENT_PROFILE) == 413
    statuses = [upload(booted, b"%d" % n, ArtifactKind.RAW_OUTPUT, f"output-{n}.txt") for n in range(8)]
    assert statuses == [200] * 6 + [422] * 2
