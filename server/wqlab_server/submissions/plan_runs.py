"""Plan the run of a target: its size, its looks and the order of its boots, with a snapshot of everything it uses."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from wqlab_comparison.looks import EXACT_LOOK
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import Arm, Evidence, Role, RunPurpose
from wqlab_contracts.keys import fragment_names
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import Target
from wqlab_contracts.specs import DeviceType, KernelRecipe, Profile, Repetitions, TestPlan

from ..estimates.noise_floors import planned_seeds
from ..models import Run, Submission

_DEBUG_REPETITIONS = Repetitions(warmup=0, untraced=1, traced=0)
"""Repetitions on a debug kernel, which gives no figures: it needs no warm-up, and tracing its locks takes minutes."""
_DEBUG_TIMEOUT_FACTOR = 4
"""Factor on the time limit of a repetition under lockdep and KASAN."""
_MAX_MEASURE_TIMEOUT_S = 7200


class Size(NamedTuple):
    """Size of a run: a fixed number of blocks, or looks after which it may stop; neither: as the plan says."""

    blocks: int | None = None
    looks: Sequence[int] = ()


def planned_size(session: Session, data: DataFolder, request: SubmissionRequest, target: Target) -> Size:
    """Return the requested size of a target's run; on an instrumented device else the seeds that its noise floor asks
    for, if known."""
    device_type = data.device_type(target.device_type)
    if request.looks is not None:
        counted = _is_counted(data, target)
        return Size(looks=[EXACT_LOOK, *request.looks] if counted and request.looks[0] > EXACT_LOOK else request.looks)
    if request.blocks is not None or not device_type.instrumented:
        return Size(request.blocks)
    profile = data.plans[target.plan].on(instrumented=True).profile(device_type.emulated)
    return Size(planned_seeds(session, target.plan, device_type.name, {**profile.parameters, **target.parameters}))


def _is_counted(data: DataFolder, target: Target) -> bool:
    """Return True if the primary metric is counted there, so that two blocks with equal counts are a result."""
    device_type = data.device_type(target.device_type)
    metrics = data.plans[target.plan].on(instrumented=device_type.instrumented).metrics
    return any(
        metric.role(device_type.emulated) is Role.PRIMARY
        and metric.evidence(device_type.emulated) in {Evidence.MECHANISM, Evidence.INSTRUMENTED}
        for metric in metrics
    )


def plan_run(submission: Submission, index: int, target: Target, data: DataFolder, size: Size) -> Run:
    """Create the run of one target, with everything it will use copied from the data folder.

    `size` replaces the number of blocks of the plan, if given.
    """
    device_type = data.device_type(target.device_type)
    plan = data.plans[target.plan].on(instrumented=device_type.instrumented)
    plan = plan.measured(target.scenarios, device_type.emulated)
    recipe = data.recipes[submission.request.recipe_for(device_type)]
    profile = target_profile(plan, device_type, target, size, recipe)
    seed = secrets.randbits(48)
    return Run(
        submission_id=submission.id,
        purpose=RunPurpose.MEASURE,
        target=index,
        owner=submission.owner,
        priority=submission.priority,
        seed=seed,
        wanted_backend=submission.request.backend,
        wanted_device=target.device,
        blocks=block_plan(profile.most_blocks, submission.request.series is not None, seed, profile.looks),
        looks=profile.looks,
        profile=profile,
        **snapshot(data, device_type, plan, recipe),
    )


def snapshot(
    data: DataFolder, device_type: DeviceType, plan: TestPlan, recipe: KernelRecipe | None = None
) -> dict[str, object]:
    """Return the columns of a run that are copied from the data folder. `recipe` overrides the device type's own."""
    recipe = recipe or data.recipes[device_type.recipe]
    names = fragment_names(recipe, device_type.arch, device_type.emulated)
    return {
        "device_type": device_type.name,
        "device_spec": device_type,
        "plan_name": plan.name,
        "plan": plan,
        "files": data.plan_files(plan.name),
        "recipe": recipe,
        "fragments": {name: data.fragment(name) for name in names},
        "modules": data.modules_of(recipe),
    }


def target_profile(
    plan: TestPlan, device_type: DeviceType, target: Target, size: Size, recipe: KernelRecipe
) -> Profile:
    """Return the plan's profile with the target's parameters and settings, and `size` if given.

    With a recipe that gives no figures (a debug kernel), there is one repetition with a longer time limit, and nothing
    to look at.
    """
    profile = plan.profile(device_type.emulated)
    if not recipe.figures:
        profile = profile.model_copy(
            update={
                "repetitions": _DEBUG_REPETITIONS,
                "measure_timeout_s": min(profile.measure_timeout_s * _DEBUG_TIMEOUT_FACTOR, _MAX_MEASURE_TIMEOUT_S),
            }
        )
    looks = size.looks or ([] if size.blocks else profile.looks)
    return profile.model_copy(
        update={
            "parameters": {**profile.parameters, **target.parameters},
            "settings": target.settings or profile.settings,
            "blocks": looks[-1] if looks else size.blocks or profile.blocks,
            "looks": looks if recipe.figures else [],
        }
    )


def block_plan(blocks: int, series: bool, seed: int, looks: Sequence[int] = ()) -> list[list[Arm]]:
    """Return the arms of each block in boot order.

    Half of the blocks boot the baseline first and half the candidate, in random order; with an odd number the
    extra block's order is random. The same holds for the blocks between two looks. Without a series a block is one boot
    of the baseline.
    """
    if not series:
        return [[Arm.BASELINE] for _ in range(blocks)]
    shuffle = random.Random(seed)  # noqa: S311 - an order that is stored with its seed, not a secret
    first, second = [Arm.BASELINE, Arm.CANDIDATE], [Arm.CANDIDATE, Arm.BASELINE]
    plan: list[list[Arm]] = []
    for end in [*(number for number in looks if number < blocks), blocks]:
        more = end - len(plan)
        part = [list(order) for order in [first, second] * (more // 2)]
        if more % 2:
            part.append(list(shuffle.choice([first, second])))
        shuffle.shuffle(part)
        plan += part
    return plan
