"""Number of blocks of a target whose submission states none: from the size of its family of tests and the noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from sqlalchemy.orm import Session

from wqlab_comparison import ALPHA, LEAST_BLOCKS, blocks_of_family, blocks_that_find
from wqlab_comparison.power import POWER
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import Evidence
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import Target
from wqlab_contracts.specs import DeviceType, Profile, TestPlan

from ..estimates.noise_floors import planned_seeds
from .detectable_effect import primary_metric, threshold

MOST_BLOCKS = 16
"""Most blocks that are planned without being asked for because of noise."""
_NORMAL = ndtri((np.arange(200) + 0.5) / 200)
"""Normal values, for noise of which only the spread is known."""


@dataclass(frozen=True)
class PlannedBlocks:
    """Number of blocks of a target, and the reason for it."""

    blocks: int
    why: str
    """For people; empty if the plan's number needs no explanation."""


def is_tested(plan: TestPlan, device_type: DeviceType, profile: Profile) -> bool:
    """Return True if the primary metric is tested. A plan with fewer than LEAST_BLOCKS blocks has counts that are the
    same in every boot, which need no test."""
    metric = primary_metric(plan, device_type.emulated)
    evidence = Evidence.NONE if metric is None else metric.evidence(device_type.emulated)
    return evidence is not Evidence.NONE and profile.blocks >= LEAST_BLOCKS


def family_size(data: DataFolder, request: SubmissionRequest, *, boots: int, like: DeviceType) -> int:
    """Return the number of primary tests that share the level: those of the larger question, about the kernel or about
    the settings. Only targets on devices that are instrumented, or modelled, as `like` is share it. `boots`: boots of a
    block."""
    kernels = settings = 0
    for device_type, target in _targets(data, request, like):
        plan = data.plans[target.plan].on(device_type).measured(target.scenarios, device_type.emulated)
        profile = plan.profile(device_type.emulated)
        if not is_tested(plan, device_type, profile):
            continue
        chosen = target.settings or profile.settings
        scenarios = len(plan.scenarios)
        rungs = boots if request.walk else 1
        kernels += scenarios * len(chosen) * rungs
        if plan.reference_setting in chosen:
            settings += scenarios * (len(chosen) - 1)
    return max(kernels if request.series is not None else 0, settings, 1)


def _targets(data: DataFolder, request: SubmissionRequest, like: DeviceType) -> Iterator[tuple[DeviceType, Target]]:
    for _, target in request.indexed_targets():
        if target.plan in data.plans and target.device_type and data.has_device_type(target.device_type):
            device_type = data.device_type(target.device_type)
            if (device_type.instrumented, device_type.modelled) == (like.instrumented, like.modelled):
                yield device_type, target


def choose(session: Session, plan: TestPlan, device_type: DeviceType, profile: Profile, family: int) -> PlannedBlocks:
    """Return the blocks with which the exact test decides in the family, at least the plan's own.

    If the noise is known, there are as many as show an effect of twice the threshold, at most MOST_BLOCKS.
    """
    if not is_tested(plan, device_type, profile):
        return PlannedBlocks(profile.blocks, "")
    least = max(profile.blocks, blocks_of_family(family))
    reasons = [] if least == profile.blocks else [_of_family(family, least)]
    if device_type.instrumented:
        seeds = planned_seeds(session, plan.name, device_type.name, profile)
        return PlannedBlocks(max(least, seeds.seeds), "; ".join([*reasons, seeds.why]))
    metric = primary_metric(plan, device_type.emulated)
    spread = metric and profile.spreads.get(metric.name)
    if metric is None or not spread:
        return PlannedBlocks(least, "; ".join(reasons))
    needed = blocks_that_find(threshold(metric, device_type.emulated), spread * _NORMAL, ALPHA / family, POWER)
    effect = "show an effect of twice the threshold in four cases of five, at the noise of past A/A comparisons"
    if needed is None or needed > MOST_BLOCKS:
        count = "more than 100" if needed is None else needed
        reasons.append(f"{count} would {effect}; more than {MOST_BLOCKS} are planned only if you ask for them")
        return PlannedBlocks(max(least, MOST_BLOCKS), "; ".join(reasons))
    if needed > least:
        reasons.append(f"they {effect}")
    return PlannedBlocks(max(least, needed), "; ".join(reasons))


def warning(family: int, blocks: int) -> str:
    """Return what a stated number of blocks cannot do; empty if nothing is to be said."""
    least = blocks_of_family(family)
    if not LEAST_BLOCKS <= blocks < least:
        return ""
    stands_in = f"a t test with {blocks - 1} degrees of freedom decides"
    return f"too few for the exact test: {_of_family(family, least)}; {stands_in}"


def _of_family(family: int, least: int) -> str:
    return f"{family} tests share the level of 5 %, which takes {least} blocks to test exactly"
