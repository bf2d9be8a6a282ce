"""Plan the run of a target: the order of its boots, and a snapshot of everything that it uses."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence

from wqlab_contracts.enums import BETWEEN, Arm, RunPurpose
from wqlab_contracts.keys import fragment_names
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import Target
from wqlab_contracts.specs import DeviceType, KernelRecipe, TestPlan

from ..models import Run, Submission
from .plan_targets import PlannedTarget
from .walk import backend_of


def plan_run(
    submission: Submission, index: int, target: Target, data: DataFolder, planned: PlannedTarget, *, boots: int
) -> Run:
    """Create the run of one target, with everything it will use copied from the data folder. Its blocks have so many
    `boots`, as far as is known."""
    seed, profile, request = secrets.randbits(48), planned.profile, submission.request
    blocks = block_plan(profile.most_blocks, request.series is not None, seed, profile.looks)
    if request.walk:  # planned again when the kernels are built
        arms = [Arm.BASELINE, *BETWEEN[: boots - 2], Arm.CANDIDATE]
        blocks = walk_plan(profile.most_blocks, arms, seed)
    return Run(
        submission_id=submission.id,
        purpose=RunPurpose.MEASURE,
        target=index,
        owner=submission.owner,
        priority=submission.priority,
        seed=seed,
        wanted_backend=backend_of(request, planned.device_type),
        wanted_device=target.device,
        blocks=blocks,
        looks=profile.looks,
        layouts=request.layouts_on(planned.device_type),
        profile=profile,
        **snapshot(data, planned.device_type, planned.plan, planned.recipe),
    )


def snapshot(
    data: DataFolder, device_type: DeviceType, plan: TestPlan, recipe: KernelRecipe | None = None
) -> dict[str, object]:
    """Return the columns of a run that are copied from the data folder. `recipe` overrides the device type's own."""
    recipe = recipe or data.recipes[device_type.recipe]
    names = fragment_names(recipe, device_type.arch, device_type.on_bench)
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


def walk_plan(blocks: int, arms: Sequence[Arm], seed: int) -> list[list[Arm]]:
    """Return the arms of each block of a walk in boot order.

    Blocks come in pairs: an order, and its reverse, in random order. In such a pair each arm has the same mean
    position, so a steady drift of the device cancels in every comparison. The orders are the rotations of the patches'
    order, each once before one is repeated, so that two neighbours are apart in only one of them, and each arm comes
    first equally often. With an odd number of blocks the last one has no reverse.
    """
    shuffle = random.Random(seed)  # noqa: S311 - an order that is stored with its seed, not a secret
    plan: list[list[Arm]] = []
    turns: list[int] = []
    while len(plan) < blocks:
        if not turns:
            turns = shuffle.sample(range(len(arms)), len(arms))
        turn = turns.pop()
        order = [*arms[turn:], *arms[:turn]]
        both = [order, order[::-1]]
        shuffle.shuffle(both)
        plan += both
    return plan[:blocks]
