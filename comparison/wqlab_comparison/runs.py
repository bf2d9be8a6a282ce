"""Input and conclusion of one run from what was recorded of it.

The server calls these functions with rows and `wqlab replay` with a bundle, so both derive the same verdicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from wqlab_contracts.api.report import Comparison, UnsupportedView
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.bundle import RunRecord
from wqlab_contracts.enums import PAIR, Arm, FindingKind, Verdict
from wqlab_contracts.messages import Failure
from wqlab_contracts.messages.walk import WalkStep, rungs
from wqlab_contracts.specs import TestPlan

from .questions import TargetFacts
from .target import BootCount, Conclusion, conclude
from .words import count

BYTE_IDENTICAL = "the kernels are byte-identical: nothing to measure"


@dataclass(frozen=True)
class RecordedBoot:
    """How one boot of a run ended."""

    arm: Arm
    passed: bool
    valid: bool
    """True if the boot's block finished."""


@dataclass(frozen=True)
class RecordedRun:
    """What was planned for one run, and how it ended."""

    plan: TestPlan
    device_type: str
    emulated: bool
    settings: Sequence[str]
    blocks: Sequence[Sequence[Arm]]
    """Arms of each block in boot order."""
    recipe: str
    figures: bool
    """False for recipes that find faults and give no figures."""
    compared: bool
    """False if the submission was canceled before its figures were compared."""
    byte_identical: bool
    """True if both kernels are byte-identical, so that nothing was booted."""
    failure: Failure | None
    """Failure that ended the run early, if any."""
    looks: Sequence[int] = ()
    """Planned numbers of blocks after which the run may stop; empty if its size was fixed."""
    spreads: Mapping[str, float] = field(default_factory=dict)
    """See `TargetFacts.spreads`."""
    not_validated: Mapping[str, str] = field(default_factory=dict)
    """See `TargetFacts.not_validated`."""
    floors: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """See `TargetFacts.floors`."""
    not_exercised: str = ""
    """See `TargetFacts.not_exercised`."""
    machine: str = ""
    """Cost profile of a modelled device; empty for other devices."""
    walk: Sequence[WalkStep] = ()
    """The kernels after each patch, if the series was walked."""

    @property
    def arms(self) -> list[Arm]:
        used = {arm for arms in self.blocks for arm in arms} | (set(PAIR) if self.walk else set())
        return [arm for arm in Arm if arm in used]


def recorded_run(
    record: RunRecord,
    not_validated: Mapping[str, str] = MappingProxyType({}),
    floors: Mapping[tuple[str, str, str], float] = MappingProxyType({}),
    not_exercised: str = "",
) -> RecordedRun:
    """Return the plan and the outcome of a record's run. The other arguments are those of `TargetFacts`."""
    return RecordedRun(
        plan=record.plan,
        device_type=record.device_type,
        emulated=record.emulated,
        settings=record.profile.settings,
        blocks=record.blocks,
        looks=record.looks,
        spreads=record.profile.spreads,
        not_validated=not_validated,
        floors=floors,
        not_exercised=not_exercised,
        machine=record.cost_profile,
        walk=record.walk,
        recipe=record.recipe,
        figures=record.figures,
        compared=record.compared,
        byte_identical=record.byte_identical,
        failure=record.failure,
    )


def facts_of_run(
    run: RecordedRun, discards: Iterable[Arm | None], unsupported: Iterable[UnsupportedView]
) -> TargetFacts:
    """Return what the run was to measure, and the known reasons for missing measurements.

    `discards` has the arm of each discarded block, or None if it counts against no arm. `unsupported` may repeat an
    entry for each boot; of different reasons the first in alphabetical order is kept.
    """
    arms = Counter(discards)
    reasons: dict[tuple[str, str, str, Arm], UnsupportedView] = {}
    for entry in sorted(unsupported, key=lambda entry: entry.reason):
        reasons.setdefault((entry.scenario, entry.setting, entry.metric or "", entry.arm), entry)
    return TargetFacts(
        plan=run.plan,
        device_type=run.device_type,
        emulated=run.emulated,
        arms=run.arms,
        settings=run.settings,
        unsupported=[reasons[key] for key in sorted(reasons)],
        failure=run.failure,
        discarded={arm: arms[arm] for arm in Arm if arms[arm]},
        blocks_discarded=arms.total(),
        looks=run.looks,
        spreads=run.spreads,
        not_validated=run.not_validated,
        floors=run.floors,
        not_exercised=run.not_exercised,
        rungs=list(rungs(run.walk)),
    )


def conclude_run(
    run: RecordedRun,
    boots: Sequence[RecordedBoot],
    findings: Sequence[FindingView],
    comparisons: Sequence[Comparison],
    lab_discards: Collection[tuple[int, int]],
) -> Conclusion:
    """Return verdict and headline of a run from its comparisons, findings and boots.

    `lab_discards` has (block, attempt) of each block that was discarded without counting against an arm: a silent
    device in such a boot is no hang of the kernel.
    """
    if run.byte_identical:
        return Conclusion(Verdict.EQUIVALENT, BYTE_IDENTICAL)
    findings = [
        finding
        for finding in findings
        if finding.kind is not FindingKind.HANG or (finding.block, finding.attempt) not in lab_discards
    ]
    attempted = Counter(boot.arm for boot in boots)
    passed = Counter(boot.arm for boot in boots if boot.passed)
    boots_of_arm = {arm: BootCount(attempted[arm], passed[arm]) for arm in run.arms}
    conclusion = conclude(comparisons, findings, run.failure, run.emulated, boots_of_arm, machine=run.machine)
    if comparisons or conclusion.verdict is not Verdict.INCONCLUSIVE:
        return conclusion
    if not run.compared:
        return Conclusion(
            Verdict.INCONCLUSIVE, "not compared: figures are compared once every run has ended without cancellation"
        )
    if not run.figures:
        valid = Counter(boot.arm for boot in boots if boot.valid)
        counted = " and ".join(f"{count(number, 'boot')} of the {arm}" for arm, number in sorted(valid.items()))
        return Conclusion(
            Verdict.NO_EVIDENCE, f"no problem found in {counted}; the recipe {run.recipe} gives no figures"
        )
    return conclusion
