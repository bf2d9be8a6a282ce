"""Determine what each target of a request measures: the plan for its device type, as the request changes it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from wqlab_comparison.looks import EXACT_LOOK
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import Evidence, Role
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import Target
from wqlab_contracts.specs import DeviceType, KernelRecipe, Profile, Repetitions, TestPlan

from ..estimates.spreads import spreads
from . import planned_blocks

_DEBUG_REPETITIONS = Repetitions(warmup=0, untraced=1, traced=0)
"""Repetitions on a debug kernel, which gives no figures: it needs no warm-up, and tracing its locks takes minutes."""
_DEBUG_TIMEOUT_FACTOR = 4
"""Factor on the time limit of a repetition under lockdep and KASAN."""
_MAX_MEASURE_TIMEOUT_S = 7200


@dataclass(frozen=True)
class PlannedTarget:
    """A target of a request, with everything that determines its run."""

    device_type: DeviceType
    plan: TestPlan
    """With only the scenarios to measure."""
    recipe: KernelRecipe
    profile: Profile
    why_blocks: str = ""
    """Why there are so many blocks, or what so few cannot do; for people."""
    family: int = 1
    """Number of primary tests that share the level with one of this target."""


def plan_target(
    session: Session, data: DataFolder, request: SubmissionRequest, target: Target, *, boots: int
) -> PlannedTarget:
    """Return what a target measures. A request without a number of blocks gets as many as its family of tests and the
    noise of the devices ask for. `boots`: boots of a block, as far as is known.
    """
    device_type = data.device_type(target.device_type)
    plan = data.plans[target.plan].on(device_type).measured(target.scenarios, device_type.emulated)
    recipe = kernel_recipe(data, request, target)
    profile = _profile(plan, device_type, recipe, request, target)
    if not recipe.figures:
        return PlannedTarget(device_type, plan, recipe, profile)
    if request.series is not None:
        profile = profile.model_copy(update={"spreads": spreads(session, plan.name, device_type, profile)})
    family = planned_blocks.family_size(data, request, boots=boots, like=device_type)
    planned = PlannedTarget(device_type, plan, recipe, profile, family=family)
    if request.blocks is not None:
        return replace(planned, why_blocks=planned_blocks.warning(family, request.blocks))
    if profile.looks and (request.looks is not None or not device_type.instrumented):
        return planned
    chosen = planned_blocks.choose(session, plan, device_type, profile, family)
    profile = profile.model_copy(update={"blocks": chosen.blocks, "looks": []})
    return replace(planned, profile=profile, why_blocks=chosen.why)


def kernel_recipe(data: DataFolder, request: SubmissionRequest, target: Target) -> KernelRecipe:
    """Return the recipe of a target's kernels: the request's, else the device type's, plus the plan's fragments.

    If the request names an unknown recipe, which is a mistake of it, the device type's own stands in.
    """
    device_type = data.device_type(target.device_type)
    recipe = data.recipes.get(request.recipe_for(device_type), data.recipes[device_type.recipe])
    return recipe.with_fragments(data.plans[target.plan].fragments)


def _profile(
    plan: TestPlan, device_type: DeviceType, recipe: KernelRecipe, request: SubmissionRequest, target: Target
) -> Profile:
    """Return the plan's profile with the parameters, settings, repetitions, and blocks or looks of the request.

    With a recipe that gives no figures (a debug kernel), there is one repetition with a longer time limit, and nothing
    to look at.
    """
    profile = plan.profile(device_type.emulated)
    repetitions, limit_s = profile.repetitions, profile.measure_timeout_s
    if request.repetitions is not None:
        repetitions = repetitions.model_copy(update={"untraced": request.repetitions})
    if not recipe.figures:
        repetitions = _DEBUG_REPETITIONS
        limit_s = min(limit_s * _DEBUG_TIMEOUT_FACTOR, _MAX_MEASURE_TIMEOUT_S)
    # Looks decide when the whole series is; the rungs of a walk need not be.
    looks = [] if request.blocks or request.walk else profile.looks
    if request.looks is not None:
        looks = request.looks
        if looks[0] > EXACT_LOOK and _is_counted(plan, device_type.emulated):
            looks = [EXACT_LOOK, *looks]
    return profile.model_copy(
        update={
            "parameters": {**profile.parameters, **target.parameters},
            "settings": target.settings or profile.settings,
            "blocks": looks[-1] if looks else request.blocks or profile.blocks,
            "looks": looks if recipe.figures else [],
            "repetitions": repetitions,
            "measure_timeout_s": limit_s,
        }
    )


def _is_counted(plan: TestPlan, emulated: bool) -> bool:
    """Return True if the primary metric is counted there, so that two blocks with equal counts are a result."""
    return any(
        metric.role(emulated) is Role.PRIMARY
        and metric.evidence(emulated) in {Evidence.MECHANISM, Evidence.INSTRUMENTED}
        for metric in plan.metrics
    )
