"""Limits on what the worker of a run may send."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from sqlalchemy import func, select

from wqlab_contracts.enums import ArtifactKind, FindingKind, NotMeasuredCause
from wqlab_contracts.messages import BootStarted, Finding, Progress, Sample, Samples, Unsupported
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


def test_large_events_and_facts_are_refused(booted: RunSession) -> None:
    key = booted.first_key
    text = "x" * limits.EVENT_BYTES
    finding = Finding(
        at=NOW, boot=key, kind=FindingKind.WARNING, title="t", excerpt=text, console_offset=0, fatal=False
    )
    booted.send(finding, expect=422)
    for number in range(3):
        half = Samples(at=NOW, boot=key, samples=[], facts={f"fact {number}": text[:100_000]})
        answer = booted.send(half, expect=204 if number < 2 else 422)
    assert "commands and facts" in answer.text
    reasons = [
        Unsupported(
            at=NOW,
            boot=key,
            scenario="flush",
            setting="",
            metric=f"m{number}",
            cause=NotMeasuredCause.LACKING,
            reason="r",
        )
        for number in range(50)
    ]
    booted.send(*reasons, expect=422)


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
    headers = {"X-Fence-Job": f"runs/{run.job.run_id}", "X-Fence": str(run.fence)}
    sha256 = hashlib.sha256(content).hexdigest()
    return run.worker.request(
        "PUT", f"artifacts/{sha256}", params={"kind": kind.value, "name": name}, headers=headers, content=content
    ).status_code


def test_artifacts_of_a_run_are_limited_in_kind_size_and_number(booted: RunSession) -> None:
    assert upload(booted, b"kernel", ArtifactKind.KERNEL) == 422
    assert upload(booted, bytes(9 << 20), ArtifactKind.RAW_OUTPUT) == 413
    statuses = [upload(booted, b"%d" % n, ArtifactKind.RAW_OUTPUT, f"output-{n}.txt") for n in range(8)]
    assert statuses == [200] * 6 + [422] * 2
