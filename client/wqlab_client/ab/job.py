"""Describe what `wqlab ab` measures, as the job that the measuring loop takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wqlab_comparison.block_order import block_plan
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import Arm, RunPurpose
from wqlab_contracts.loading import DataError, load_data
from wqlab_contracts.messages import BlockPlan, DeviceFacts, Kernel, RunJob
from wqlab_contracts.specs import DeviceType, TestPlan, format_setting, parse_setting
from wqlab_contracts.yamlfile import suggest_name

from ..errors import UsageError


def find_data(given: Path | None) -> DataFolder:
    """Load the plans and device types: those of `given`, else those that came with this program.

    Raises UsageError if there are none, or if they are invalid.
    """
    own = Path(__file__).resolve().parents[1] / "data"
    checkout = Path(__file__).resolve().parents[3]
    folder = given or next((each for each in (own, checkout) if (each / "testplans").is_dir()), None)
    if folder is None:
        raise UsageError("this installation has no test plans", "give a checkout of wqlab with --data FOLDER")
    try:
        return load_data(folder)
    except DataError as error:
        raise UsageError(f"{folder} is no valid data folder: {error}", "correct it, or choose another --data") from None


def emulated_type(data: DataFolder, name: str) -> DeviceType:
    """Return the device type that is emulated on this host. Raises UsageError if there is none of this name."""
    if not data.has_device_type(name):
        raise UsageError(f"no device type {name}", suggest_name(name, set(_emulated(data))))
    device_type = data.device_type(name)
    if name not in _emulated(data):
        raise UsageError(
            f"device type {name} is not one that `wqlab ab` emulates", f"choose one of {', '.join(_emulated(data))}"
        )
    return device_type


def _emulated(data: DataFolder) -> list[str]:
    return [
        each.name
        for each in data.device_types.values()
        if each.on_bench and not each.instrumented and each.arch == "x86_64"
    ]


def chosen_plan(data: DataFolder, name: str, device_type: DeviceType, scenarios: Sequence[str]) -> TestPlan:
    """Return the plan with the scenarios to measure on a device type. Raises UsageError for unknown names."""
    plan = data.plans.get(name)
    if plan is None:
        raise UsageError(f"no plan {name}", suggest_name(name, set(data.plans)))
    known = {scenario.name for scenario in plan.scenarios}
    for each in scenarios:
        if each not in known:
            raise UsageError(f"plan {name} has no scenario {each}", f"scenarios: {', '.join(sorted(known))}")
    return plan.on(device_type).measured(list(scenarios) or None, device_type.emulated)


def make_job(
    data: DataFolder,
    device_type: DeviceType,
    device: DeviceFacts,
    plan: TestPlan,
    kernels: Mapping[Arm, Kernel],
    *,
    seed: int,
    blocks: int | None,
    settings: Sequence[str],
    parameters: Mapping[str, str],
) -> RunJob:
    """Return the job. `blocks`, `settings` and `parameters` replace those of the plan's profile.

    With one kernel, the first of `settings` is compared with each other one. The number of blocks is fixed: there are
    no interim looks. Raises UsageError for an unknown setting or parameter.
    """
    profile = plan.profile(device_type.emulated)
    try:
        # Knobs that are not named have the values of the plan's reference.
        settings = [format_setting(parse_setting(plan.reference_setting) | parse_setting(each)) for each in settings]
        for setting in settings:
            plan.check_setting(setting)
    except ValueError as error:
        raise UsageError(str(error), f"settings of this plan: {', '.join(profile.settings)}") from None
    for name in parameters:
        if name not in profile.parameters:
            raise UsageError(
                f"plan {plan.name} has no parameter {name}", f"parameters: {', '.join(sorted(profile.parameters))}"
            )
    number = blocks or profile.most_blocks
    profile = profile.model_copy(
        update={
            "blocks": number,
            "looks": [],
            "settings": list(settings) or profile.settings,
            "parameters": {**profile.parameters, **parameters},
        }
    )
    is_pair = len(kernels) > 1
    if settings and not is_pair:
        plan = plan.model_copy(update={"reference_setting": settings[0]})
    return RunJob(
        run_id=1,
        purpose=RunPurpose.MEASURE,
        device=device,
        plan=plan,
        profile=profile,
        files=data.plan_files(plan.name),
        kernels=dict(kernels),
        blocks=[
            BlockPlan(block=block, arms=arms)
            for block, arms in enumerate(block_plan(number, series=is_pair, seed=seed))
        ],
        seed=seed,
    )


def emulated_device(device_type: DeviceType, modules: str) -> DeviceFacts:
    """Return the description of the emulated device. `modules` is a kernel argument, or empty."""
    arguments = " ".join(filter(None, (device_type.variant_arguments, modules)))
    return DeviceFacts(
        name="qemu",
        device_type=device_type.name,
        lab="ab",
        arch=device_type.arch,
        topology=device_type.topology,
        boot=device_type.boot.model_copy(update={"kernel_arguments": arguments, "crash_kernel_mib": None}),
        conditions=device_type.conditions,
        emulated=True,
    )
