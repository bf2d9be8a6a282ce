"""Validation of a sweep against the data folder, and the device types of targets. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.messages import Target
from wqlab_contracts.specs import DeviceType, GeneratedTopology
from wqlab_contracts.yamlfile import suggest_name

MAX_TARGETS = 32
"""Maximum number of targets of a submission, also of those that a sweep adds."""


def sweep_mistakes(request: SubmissionRequest, data: DataFolder) -> Iterator[tuple[str, str]]:
    """Yield the mistakes of a request's sweep: JSON pointer into the request, and the mistake with its fix."""
    sweep = request.sweep
    if sweep is None:
        return
    invalid = [(f"/sweep{pointer}", detail) for pointer, detail in sweep.mistakes()]
    if not invalid and sweep.costs is not None:
        problems = dict.fromkeys(map(data.generated_problem, sweep.topologies()))
        invalid = [("/sweep/costs", problem) for problem in problems if problem]
    yield from invalid
    if data.generated_lab is None:
        yield (
            "/sweep",
            "this lab has no instrumented x86-64 device type, so no worker is known to run one; add one with "
            "`emulation: {clock: instruction}` to device-types/, such as instrumented-tiny.yaml",
        )
    points = {topology.name for topology in sweep.topologies()}
    for index, target in enumerate(request.targets):
        if target.device_type and target.device_type not in points:
            yield (
                f"/targets/{index}/device_type",
                f"{target.device_type} is no point of the sweep, which chooses instrumented device types itself; leave "
                f"the device type out (--target {target.plan}), or submit this target without the sweep",
            )
        if (reason := _not_counted(target.plan, data)) is not None:
            yield f"/targets/{index}/plan", reason
    if not invalid and (number := len(request.indexed_targets())) > MAX_TARGETS:
        yield "/sweep/values", f"{number} targets with this sweep; a submission has at most {MAX_TARGETS}: split it"


def _not_counted(name: str, data: DataFolder) -> str | None:
    """Return why instrumented devices count nothing with a plan, and the plans to choose from; None if they do."""
    able = [each.name for each in data.plans.values() if not each.checks_health and data.marks_window(each.name)]
    if name in able or name not in data.plans:
        return None
    health = data.plans[name].checks_health
    why = "compares no kernels" if health else "marks no window in which an instrumented device counts"
    return f"plan {name} {why}, so a sweep of it has no figures; choose one of {', '.join(sorted(able))}"


def type_of_target(
    target: Target, request: SubmissionRequest, data: DataFolder
) -> tuple[DeviceType | None, str | None]:
    """Return the device type of a target, or None and the mistake with its fix.

    A target of a sweep has the type of the first point, since all are alike except for the topology; None without a
    mistake if the sweep itself is invalid.
    """
    if not target.device_type:
        if request.sweep is None:
            return None, f"no device type is given; {suggest_name('', set(data.device_types))}; or add a sweep"
        if next(sweep_mistakes(request.model_copy(update={"targets": []}), data), None) is not None:
            return None, None
        return data.device_type(request.sweep.topologies()[0].name), None
    if data.has_device_type(target.device_type):
        return data.device_type(target.device_type), None
    generated = GeneratedTopology.parse(target.device_type)
    problem = data.generated_problem(generated) if generated else ""
    hint = problem or suggest_name(target.device_type, set(data.device_types))
    return None, f"no device type {target.device_type!r}; {hint}"
