"""Plan the run of a target: the order of its boots, and a snapshot of everything that it uses."""

from __future__ import annotations

import secrets

from wqlab_comparison.block_order import block_plan, walk_plan
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
        layouts=request.layouts_on(planned.device_type, profile.most_blocks),
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
