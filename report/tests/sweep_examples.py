"""Make an example report of a sweep over L3 domains: made-up counts, for tests of reports. None was measured."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np
from instrument_examples import PLAN, SEEDS
from report_parts import FIO, PATCH, build, report, samples, target

from wqlab_contracts.api.instrument import NoiseFloor
from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.api.sweeps import SweepBase, SweepRequest
from wqlab_contracts.enums import PAIR, Arm, ErrorKind, Outcome
from wqlab_contracts.messages import Failure, MeasuredTopology
from wqlab_contracts.specs import GeneratedTopology, Topology
from wqlab_report.content.shared_text import METHOD, METHOD_OF_COUNTS
from wqlab_report.parts.sweep import sweep_report

SWEEP = SweepRequest(vary="l3", values=[1, 2, 4, 8], base=SweepBase(cpus=16, nodes=1))
BASELINE = {
    "kernel_instructions_per_op": 252_000.0,
    "instructions_per_op": 270_000.0,
    "transfers_across_l3_per_op": 20.0,
    "transfers_within_l3_per_op": 57.0,
}
EFFECTS: Mapping[int, Mapping[str, float]] = {
    1: {"kernel_instructions_per_op": 0.0, "transfers_across_l3_per_op": 0.0},
    2: {"kernel_instructions_per_op": 0.0001, "transfers_across_l3_per_op": -0.02},
    4: {"kernel_instructions_per_op": -0.011, "transfers_across_l3_per_op": -0.41},
    8: {"kernel_instructions_per_op": -0.019, "transfers_across_l3_per_op": -0.62},
}
"""L3 domains -> metric -> change with the candidate."""


def swept(broken: int | None = None, lost: int | None = None) -> Report:
    """Return the report; at `broken` L3 domains the candidate fails, at `lost` the device does."""
    targets = [point(number, topology, broken, lost) for number, topology in enumerate(SWEEP.topologies())]
    made = report(
        12,
        "workqueue: Take a pool's lock once per run of pwqs that share it",
        targets,
        True,
        [build(Arm.BASELINE, 1), build(Arm.CANDIDATE, 2)],
        patches=[PATCH],
    )
    request = made.submission.request.model_copy(update={"sweep": SWEEP})
    submission = made.submission.model_copy(update={"request": request})
    return made.model_copy(
        update={
            "submission": submission,
            "sweep": sweep_report(SWEEP, targets),
            "method": f"{METHOD} {METHOD_OF_COUNTS}",
        }
    )


def point(number: int, topology: GeneratedTopology, broken: int | None = None, lost: int | None = None) -> TargetReport:
    """Return the report of one topology."""
    declared = topology.device_type("local").topology
    failures = {
        broken: Failure(kind=ErrorKind.KERNEL, summary="panic: Oops in flush_workqueue_prep_pwqs"),
        lost: Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the emulator ended with signal 9"),
    }
    failure = failures.get(topology.l3)
    measured = samples(PLAN, topology.name, _cells(topology.l3)) if failure is None else None
    one = target(
        20 + number,
        PLAN,
        topology.name,
        measured,
        [""],
        list(PAIR),
        _measured(declared),
        declared,
        (SEEDS if failure is None else 0, SEEDS),
        {"fsync": FIO},
        summary=topology.describe(),
        failure=failure,
        outcome=Outcome.PASSED if failure is None else Outcome.FAILED,
    )
    floor = NoiseFloor(
        scenario="fsync",
        setting="",
        metric="kernel_instructions_per_op",
        floor=0.031,
        seeds=8,
        measured_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    return one.model_copy(update={"noise_floors": [floor] if topology.l3 == 4 else []})


def _cells(l3: int) -> dict[tuple[str, str, str, Arm], list[float]]:
    noise = np.random.default_rng(l3)
    cells = {}
    for metric, mean in BASELINE.items():
        # One L3 domain has no transfers across L3 domains.
        level = 0.0 if l3 == 1 and metric == "transfers_across_l3_per_op" else mean
        before = level * (1 + 0.001 * noise.standard_normal(SEEDS))
        after = before * (1 + EFFECTS[l3].get(metric, 0.0) + 0.0002 * noise.standard_normal(SEEDS))
        cells["fsync", "", metric, Arm.BASELINE] = before.tolist()
        cells["fsync", "", metric, Arm.CANDIDATE] = after.tolist()
    return cells


def _measured(declared: Topology) -> MeasuredTopology:
    size = declared.cpus // declared.l3_domains
    return MeasuredTopology(
        cpus=declared.cpus,
        core=list(range(declared.cpus)),
        l3=[cpu // size for cpu in range(declared.cpus)],
        node=[0] * declared.cpus,
        package=[0] * declared.cpus,
    )
