"""Validation of a submission request against the data folder: all mistakes at once, each with its fix. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.messages import CommitPair, GitSeries, MboxSeries, Series, Target
from wqlab_contracts.specs import DeviceType, TestPlan, format_setting, parse_setting
from wqlab_contracts.specs.plans import LOOKS_MISTAKE, are_looks
from wqlab_contracts.yamlfile import suggest_name

from ..http.archives import archive_problem
from ..http.git_urls import GIT_REF, series_problems
from ..http.inspection_process import Inspect
from .validate_sweep import sweep_mistakes, type_of_target
from .walk import walk_mistakes

Mistake = dict[str, str]
"""`pointer` (JSON pointer into the request) and `detail` (the mistake and what to write instead)."""

_MAX_SETTINGS = 64
_MAX_NUMBER = 2**31 - 1
_TEXT_VALUE = re.compile(r"[A-Za-z0-9,.:/%+=@_-]{0,200}")
"""Value of a text parameter. Scripts, which run as root on a device, calculate with it and pass it to programs."""


def mistakes(
    request: SubmissionRequest, data: DataFolder, local_git_paths: Sequence[str] = (), inspect: Inspect = inspect
) -> list[Mistake]:
    """Return every mistake of `request`; empty if it can be accepted.

    `local_git_paths` are the absolute paths that an operator allows as a series' git URL. `inspect` inspects the mbox
    of a request; an endpoint gives `BoundedInspect`.
    """
    found: list[Mistake] = []
    if request.tree not in data.trees:
        found.append(_mistake("/tree", f"no tree {request.tree!r}; {suggest_name(request.tree, set(data.trees))}"))
    if request.recipe is not None and request.recipe not in data.recipes:
        hint = suggest_name(request.recipe, set(data.recipes))
        found.append(_mistake("/recipe", f"no kernel recipe {request.recipe!r}; {hint}"))
    if request.series is not None:
        found += _check_series(request.series, request.tree, data, local_git_paths, inspect)
    found += [_mistake(pointer, detail) for pointer, detail in sweep_mistakes(request, data)]
    found += [_mistake(pointer, detail) for pointer, detail in walk_mistakes(request, data, inspect)]
    found += _check_looks(request)
    seen: dict[tuple[str, str], int] = {}
    for index, target in enumerate(request.targets):
        pointer = f"/targets/{index}"
        found += _check_target(target, pointer, data, request)
        first = seen.setdefault((target.plan, target.device_type), index)
        if first != index:
            what = f"{target.plan} on {target.device_type}" if target.device_type else target.plan
            found.append(_mistake(pointer, f"{what} is already target {first}; list all settings there"))
    if found:
        return found
    measured = request.expanded()
    return [*_check_backend(measured, data), *_check_one_compiler(measured, data)]


def _check_looks(request: SubmissionRequest) -> list[Mistake]:
    if request.looks is None:
        return []
    if request.blocks is not None:
        return [_mistake("/looks", "give either looks or a fixed number of blocks")]
    if not are_looks(request.looks):
        return [_mistake("/looks", LOOKS_MISTAKE)]
    return []


def _check_backend(request: SubmissionRequest, data: DataFolder) -> list[Mistake]:
    """Check that every target's device type has a device with the requested backend."""
    found = []
    for name in dict.fromkeys(target.device_type for target in request.targets):
        known = sorted({unit.backend for unit in data.device_type(name).units})
        if (request.layouts or 1) > 1 and (request.backend == "lava" or known == ["lava"]):
            found.append(
                _mistake(
                    "/layouts",
                    f"devices of {name} in a LAVA lab boot one kernel of each arm; leave layouts out, or choose "
                    "devices with another backend",
                )
            )
        if request.backend is not None and request.backend not in known:
            found.append(
                _mistake(
                    "/backend",
                    f"{name} has no device with backend {request.backend}, only with {' and '.join(known)}; "
                    "choose that backend, or leave backend out",
                )
            )
    return found


def _check_one_compiler(request: SubmissionRequest, data: DataFolder) -> list[Mistake]:
    """Check that the recipes of all targets use the same compiler."""
    compilers = sorted(
        {data.recipes[request.recipe_for(data.device_type(each.device_type))].toolchain for each in request.targets}
    )
    if len(compilers) == 1:
        return []
    return [
        _mistake(
            "/targets",
            f"the targets' recipes use different compilers ({', '.join(compilers)}); submit these targets separately, "
            "because kernels are only compared if the same compiler built them",
        )
    ]


def _mistake(pointer: str, detail: str) -> Mistake:
    return {"pointer": pointer, "detail": detail}


# --- the series -------------------------------------------------------------------------------------------------


def _check_series(
    series: Series, tree: str, data: DataFolder, local_git_paths: Sequence[str], inspect: Inspect
) -> list[Mistake]:
    if sum(each is not None for each in (series.git, series.mbox, series.thread, series.commits)) != 1:
        detail = (
            "give one of git {url, ref}, mbox {text}, thread {message_id} and commits {baseline, candidate, ref}; "
            "give null for a settings study"
        )
        return [_mistake("/series", detail)]
    if series.commits is not None:
        return _check_commits(series.commits, tree, data)
    if series.thread is not None:
        problem = archive_problem(data, series.thread)
        return [] if problem is None else [_mistake("/series/thread/message_id", problem)]
    if series.git is not None:
        return _check_git(series.git, local_git_paths)
    return _check_mbox(series.mbox, inspect) if series.mbox is not None else []


def _check_git(git: GitSeries, local_git_paths: Sequence[str]) -> list[Mistake]:
    return [_mistake(f"/series/git/{name}", problem) for name, problem in series_problems(git, local_git_paths).items()]


def _check_commits(pair: CommitPair, tree: str, data: DataFolder) -> list[Mistake]:
    found = []
    if tree in data.trees and data.trees[tree].url is None:
        found.append(_mistake("/tree", f"{tree} is a source package; commits are compared in a git repository"))
    if not GIT_REF.match(pair.ref):
        found.append(_mistake("/series/commits/ref", f"{pair.ref[:80]!r} is not a branch or tag name"))
    if pair.baseline == pair.candidate and pair.reverted is None:
        found.append(_mistake("/series/commits/candidate", "is the baseline; name two commits"))
    return found


def _check_mbox(mbox: MboxSeries, inspect: Inspect) -> list[Mistake]:
    pointer = "/series/mbox/text"
    if not mbox.text.strip():
        return [_mistake(pointer, "the mailbox is empty")]
    return [_mistake(pointer, problem.detail) for problem in inspect(mbox.text).problems if problem.severity == "error"]


# --- targets ----------------------------------------------------------------------------------------------------


def _check_target(target: Target, pointer: str, data: DataFolder, request: SubmissionRequest) -> list[Mistake]:
    settings_only = request.series is None
    device_type, mistake = type_of_target(target, request, data)
    found = [] if mistake is None else [_mistake(f"{pointer}/device_type", mistake)]
    plan = data.plans.get(target.plan)
    if plan is None:
        hint = suggest_name(target.plan, set(data.plans))
        return [*found, _mistake(f"{pointer}/plan", f"no plan {target.plan!r}; {hint}")]
    if device_type is not None:
        plan = plan.on(device_type)
    found += _check_device(target, device_type, pointer)
    found += _check_scenarios(target, plan, pointer)
    found += _check_settings(target, plan, pointer)
    if settings_only and device_type is not None and not any("/settings" in each["pointer"] for each in found):
        found += _check_comparable(target, plan, device_type.emulated, pointer)
    found += _check_parameters(target, plan, device_type is not None and device_type.emulated, pointer)
    return found


def _check_device(target: Target, device_type: DeviceType | None, pointer: str) -> list[Mistake]:
    if target.device is None or device_type is None:
        return []
    units = {unit.name for unit in device_type.units}
    if target.device in units:
        return []
    hint = suggest_name(target.device, units)
    return [_mistake(f"{pointer}/device", f"{device_type.name} has no device {target.device!r}; {hint}")]


def _check_scenarios(target: Target, plan: TestPlan, pointer: str) -> list[Mistake]:
    if target.scenarios is None:
        return []
    known = {scenario.name for scenario in plan.scenarios}
    if not target.scenarios:
        return [
            _mistake(
                f"{pointer}/scenarios", "name a scenario, or leave the list out to measure all scenarios of the plan"
            )
        ]
    found = []
    for index, name in enumerate(target.scenarios):
        where = f"{pointer}/scenarios/{index}"
        if name not in known:
            found.append(_mistake(where, f"plan {plan.name} has no scenario {name!r}; {suggest_name(name, known)}"))
        elif target.scenarios.index(name) != index:
            found.append(_mistake(where, f"{name!r} is listed twice"))
    return found


def _check_settings(target: Target, plan: TestPlan, pointer: str) -> list[Mistake]:
    if target.settings is None:
        return []
    if not target.settings or len(target.settings) > _MAX_SETTINGS:
        detail = f"name 1 to {_MAX_SETTINGS} settings, or leave the list out to measure the plan's own settings"
        return [_mistake(f"{pointer}/settings", detail)]
    found = []
    for index, setting in enumerate(target.settings):
        try:
            plan.check_setting(setting)
        except ValueError as error:
            detail = f"{error}{_setting_hint(setting, plan)}"
            found.append(_mistake(f"{pointer}/settings/{index}", detail))
            continue
        if target.settings.index(setting) != index:
            found.append(_mistake(f"{pointer}/settings/{index}", f"{setting!r} is listed twice"))
    return found


def _setting_hint(setting: str, plan: TestPlan) -> str:
    """Return a suggestion if a value of `setting` nearly matches one of the plan, else an empty string."""
    axes = {axis.name: axis.values for axis in plan.axes}
    try:
        chosen = parse_setting(setting)
    except ValueError:
        return f"; for example {plan.reference_setting!r}" if axes else ""
    corrected = {}
    for knob, value in chosen.items():
        if knob not in axes:
            return ""
        hint = suggest_name(value, set(axes[knob]))
        corrected[knob] = value if value in axes[knob] else hint.removeprefix("did you mean ").rstrip("?")
        if corrected[knob] not in axes[knob]:
            return ""
    suggestion = format_setting(corrected)
    return f"; did you mean {suggestion!r}?" if corrected != chosen else ""


def _check_comparable(target: Target, plan: TestPlan, emulated: bool, pointer: str) -> list[Mistake]:
    """Check that a settings study has the reference setting and at least one other to compare with it."""
    settings = target.settings if target.settings is not None else plan.profile(emulated).settings
    if plan.checks_health:
        return []
    if not plan.axes:
        detail = f"plan {plan.name} has no settings, so without a series there is nothing to compare; give a series"
        return [_mistake(f"{pointer}/plan", detail)]
    if plan.reference_setting not in settings:
        detail = f"settings are compared with {plan.reference_setting!r}; add it to the list"
        return [_mistake(f"{pointer}/settings", detail)]
    if len(settings) < 2:
        detail = f"only the reference setting {plan.reference_setting!r} is listed; add a setting to compare with it"
        return [_mistake(f"{pointer}/settings", detail)]
    return []


def _check_parameters(target: Target, plan: TestPlan, emulated: bool, pointer: str) -> list[Mistake]:
    known = plan.hardware.parameters | plan.emulated.parameters
    measured = plan.measured(target.scenarios, emulated).scenarios
    set_by = {name: scenario.name for scenario in measured for name in scenario.parameters}
    found = []
    for name, value in target.parameters.items():
        where = f"{pointer}/parameters/{name.replace('~', '~0').replace('/', '~1')}"
        if name in set_by:
            detail = f"{name} is set by scenario {set_by[name]}; choose a scenario of the plan instead"
            found.append(_mistake(where, detail))
        elif name not in known:
            found.append(_mistake(where, f"plan {plan.name} has no parameter {name[:80]!r}; {_hint(name, known)}"))
        elif detail := _value_mistake(known[name], value):
            found.append(_mistake(where, f"{name} {detail}"))
    return found


def _value_mistake(default: str | float, value: str | float) -> str:
    """Return why `value` is not valid for a parameter whose default is `default`, or an empty string.

    The type must be the default's, because scripts calculate with the value. A whole number is text too: `disk_nodes`
    takes `any` or a node, and a command line cannot tell 1 from "1".
    """
    if isinstance(default, str) and isinstance(value, int) and value >= 0:
        return ""
    if isinstance(default, int | float) != isinstance(value, int | float):
        return f"takes {'text' if isinstance(default, str) else 'a number'}, such as {default!r}, not {value!r}"
    if isinstance(value, str):
        return (
            "" if _TEXT_VALUE.fullmatch(value) else "must be at most 200 letters, digits and characters of ,.:/%+=@_-"
        )
    if not math.isfinite(value):
        return "must be a finite number"
    if isinstance(default, int) and isinstance(value, float):
        return f"takes a whole number, such as {default!r}, not {value!r}"
    return "" if 0 <= value <= _MAX_NUMBER else f"must be from 0 to {_MAX_NUMBER}, not {value!r}"


def _hint(name: str, known: Mapping[str, object]) -> str:
    return suggest_name(name, set(known))
