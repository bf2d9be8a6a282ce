"""Limits on what the worker of a run may send: what the run declares.

A stolen token of a lab can falsify the runs of its devices, but it must not fill the database or the artifact store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from pydantic_core import to_json
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.instrument import PROFILE_BYTES
from wqlab_contracts.messages import BootKey, RunEvent, Samples

from ..http.problems import ApiProblem
from ..models import ArtifactLink, Boot, Finding, Run, Submission, Unsupported

EXTRA_BOOTS = 16
"""Boots of one attempt at a run beyond one repetition of each planned boot: repetitions after kernel failures, control
boots."""
FINDINGS_PER_BOOT = 1000
"""Further findings of a boot are left out."""
UNSUPPORTED_PER_CELL = 8
"""Reasons for a scenario and setting, beyond one for each metric."""
EVENTS_PER_BOOT = 500
"""Progress beyond this many events of the submission for each boot of the run is not kept as an event."""
EVENT_BYTES = 256 << 10
"""An event as JSON, without its samples. The excerpt of a finding may have 16384 characters."""
FACTS_PER_BOOT = 500
"""Further facts of a boot are left out: a device can report new ones in each repetition."""
FACTS_BYTES = 128 << 10
"""Names and values of the facts of a boot, and as many of its commands; further ones are left out."""
ARTIFACT_BYTES: Mapping[ArtifactKind, int] = {
    ArtifactKind.RAW_OUTPUT: 8 << 20,
    ArtifactKind.WORKQUEUE_SERIES: 32 << 20,
    ArtifactKind.INSTRUMENT_PROFILE: PROFILE_BYTES,
    ArtifactKind.TRACED_COUNTS: 8 << 20,
}
"""Kinds of artifacts that a run may have -> bytes. A worker keeps 4 MiB of raw output and 50,000 rows of a series."""
ARTIFACTS_PER_BOOT = 3
_MAX_RUNS = 256


class Declared(NamedTuple):
    """Names that a run's samples may have."""

    scenarios: frozenset[str]
    settings: frozenset[str]
    metrics: frozenset[str]
    repetitions: int
    """Repetitions of a cell, warm-ups included."""


_declared: OrderedDict[tuple[int, datetime], Declared] = OrderedDict()
"""By id and creation time of a run, which together never change their meaning."""


def declared(session: Session, run: Run) -> Declared:
    """Return what the run declares. It never changes, so it is kept in the process."""
    key = (run.id, run.created_at)
    if (known := _declared.get(key)) is not None:
        return known
    plan, profile = session.execute(select(Run.plan, Run.profile).where(Run.id == run.id)).one()
    counts = profile.repetitions
    found = Declared(
        frozenset(scenario.name for scenario in plan.scenarios),
        frozenset(profile.settings),
        frozenset(metric.name for metric in plan.metrics),
        counts.most,
    )
    _declared[key] = found
    while len(_declared) > _MAX_RUNS:
        _declared.popitem(last=False)
    return found


def boots_allowed(run: Run) -> int:
    """Return the number of boots that all attempts at a run may have so far."""
    return (run.attempts + 1) * (2 * run.boots_planned + EXTRA_BOOTS)


def check_event(event: RunEvent) -> None:
    """Raise ApiProblem 422 if an event is too large. The number of samples is limited by their names."""
    size = len(to_json(event, exclude={"samples"}))
    if size > EVENT_BYTES:
        raise ApiProblem(422, f"an event of type {event.type} has {size} bytes; at most {EVENT_BYTES} are allowed")


def check_new_boot(session: Session, run: Run, key: BootKey) -> None:
    """Raise ApiProblem 422 for a boot that is not in the run's plan, or one more than its attempts can have."""
    if not 0 <= key.block < len(run.blocks):
        raise ApiProblem(422, f"run {run.id} has blocks 0 to {len(run.blocks) - 1}, not {key.block}")
    most = len(run.blocks[key.block])  # a control boot comes after the last position
    if not 0 <= key.position <= most:
        raise ApiProblem(422, f"block {key.block} of run {run.id} has positions 0 to {most}, not {key.position}")
    allowed = boots_allowed(run)
    if not 0 <= key.attempt <= allowed:
        raise ApiProblem(422, f"run {run.id} has attempts 0 to {allowed}, not {key.attempt}")
    count = session.scalar(select(func.count()).where(Boot.run_id == run.id)) or 0
    if count > allowed:
        raise ApiProblem(
            422, f"run {run.id} may have {allowed} boots with its {run.attempts} attempts; it has them all"
        )


def check_samples(session: Session, run: Run, event: Samples) -> None:
    """Raise ApiProblem 422 for a sample that the run's plan does not define."""
    known = declared(session, run)
    for sample in event.samples:
        if sample.scenario not in known.scenarios:
            raise _undeclared(run, "scenario", sample.scenario)
        if sample.setting not in known.settings:
            raise _undeclared(run, "setting", sample.setting)
        if sample.metric not in known.metrics:
            raise _undeclared(run, "metric", sample.metric)
        if sample.repetition >= known.repetitions:
            raise ApiProblem(
                422, f"run {run.id} has repetitions 0 to {known.repetitions - 1} of each cell, not {sample.repetition}"
            )


def with_new_facts(known: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return the facts or commands of a boot with the new ones that still have room. A known name keeps its value."""
    facts = dict(known)
    left = FACTS_BYTES - sum(_fact_bytes(*each) for each in facts.items())
    for name, value in new.items():
        left -= 0 if name in facts else _fact_bytes(name, value)
        if left < 0 or len(facts) >= FACTS_PER_BOOT:
            break
        facts.setdefault(name, value)
    return facts


def _fact_bytes(name: str, value: str) -> int:
    return len(name.encode(errors="replace")) + len(value.encode(errors="replace"))


def may_add_finding(session: Session, boot: Boot) -> bool:
    count = session.scalar(select(func.count()).where(Finding.boot_id == boot.id)) or 0
    return count < FINDINGS_PER_BOOT


def check_unsupported(session: Session, run: Run, boot: Boot, scenario: str, setting: str) -> None:
    """Raise ApiProblem 422 for an unknown cell, or for more reasons in one cell than it can have."""
    known = declared(session, run)
    if scenario not in known.scenarios:
        raise _undeclared(run, "scenario", scenario)
    if setting not in known.settings:
        raise _undeclared(run, "setting", setting)
    cell = (Unsupported.boot_id == boot.id, Unsupported.scenario == scenario, Unsupported.setting == setting)
    count = session.scalar(select(func.count()).where(*cell)) or 0
    if count > len(known.metrics) + UNSUPPORTED_PER_CELL:
        raise ApiProblem(
            422, f"{scenario} {setting} of a boot of run {run.id} has {count} reasons; it has no more metrics"
        )


def may_add_progress(session: Session, run: Run) -> bool:
    """Return True if the submission has room for a progress event of this run."""
    seq = session.scalar(select(Submission.event_seq).where(Submission.id == run.submission_id))
    return seq is None or seq < EVENTS_PER_BOOT * boots_allowed(run)


def artifact_limit(session: Session, run: Run, kind: ArtifactKind) -> int:
    """Return the largest size in bytes of another artifact of the run.

    Raises ApiProblem 422 for a kind that runs do not have, and if the run's boots cannot have another one.
    """
    if kind not in ARTIFACT_BYTES:
        raise ApiProblem(422, f"a run has no {kind}; it has {', '.join(ARTIFACT_BYTES)}")
    count = session.scalar(select(func.count()).where(ArtifactLink.job_id == run.id)) or 0
    boots = session.scalar(select(func.count()).where(Boot.run_id == run.id)) or 0
    if count >= ARTIFACTS_PER_BOOT * (boots + 1):
        raise ApiProblem(
            422, f"run {run.id} has {count} artifacts from {boots} boots; at most {ARTIFACTS_PER_BOOT} each"
        )
    return ARTIFACT_BYTES[kind]


def _undeclared(run: Run, what: str, name: str) -> ApiProblem:
    return ApiProblem(422, f"run {run.id} has no {what} {name[:80]!r}")
