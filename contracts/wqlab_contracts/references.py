"""Problems of references between files of the data folder: names of recipes, fragments, modules and plans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from .enums import MetricClass
from .specs import DeviceType, GeneratedTopology, KernelRecipe, TestPlan, Unit
from .specs.cost_profile import CostProfile
from .yamlfile import Document, Location, Problem, suggest_name

LAVA_TEMPLATE = ".yaml.jinja2"


def recipe_problems(
    documents: Mapping[str, Document],
    recipes: Mapping[str, KernelRecipe],
    fragments: Mapping[str, str],
    modules: Mapping[str, Mapping[str, str]],
) -> Iterator[Problem]:
    """Yield a problem for each fragment or module that a recipe names and that does not exist."""
    for name, recipe in recipes.items():
        used: list[tuple[Location, str]] = [(("fragments", i), each) for i, each in enumerate(recipe.fragments)]
        used += [(("emulated_fragments", i), each) for i, each in enumerate(recipe.emulated_fragments)]
        for arch, names in recipe.arch_fragments.items():
            used += [(("arch_fragments", arch, i), each) for i, each in enumerate(names)]
        for location, fragment in used:
            if fragment not in fragments:
                hint = suggest_name(fragment, fragments)
                yield documents[name].problem(location, f"no kernels/fragments/{fragment}.config; {hint}")
        for index, module in enumerate(recipe.modules):
            if module not in modules:
                hint = suggest_name(module, modules)
                yield documents[name].problem(("modules", index), f"no folder kernels/modules/{module}; {hint}")


def plan_problems(
    documents: Mapping[str, Document],
    plans: Mapping[str, TestPlan],
    files: Mapping[str, Mapping[str, str]],
    fragments: Mapping[str, str],
) -> Iterator[Problem]:
    """Yield a problem for each fragment, plan or script that a plan names and that does not exist."""
    for name, plan in plans.items():
        for index, fragment in enumerate(plan.fragments):
            if fragment not in fragments:
                hint = suggest_name(fragment, fragments)
                problem = f"no kernels/fragments/{fragment}.config; {hint}"
                yield documents[name].problem(("fragments", index), problem)
        for index, metric in enumerate(plan.metrics):
            if metric.metric_class is MetricClass.MODELLED:
                problem = "a plan states performance or mechanism; on modelled devices either becomes modelled"
                yield documents[name].problem(("metrics", index, "class"), problem)
        lender = plan.files_of
        if lender is not None and (lender == name or lender not in files):
            hint = suggest_name(lender, files.keys() - {name})
            yield documents[name].problem(("files_of",), f"no other plan {lender!r}; {hint}")
        elif plan.script not in files[name]:
            hint = suggest_name(plan.script, set(files[name]))
            yield documents[name].problem(("script",), f"no testplans/{name}/{plan.script}; {hint}")


def device_type_problems(
    documents: Mapping[str, Document],
    device_types: Mapping[str, DeviceType],
    recipes: set[str],
    plan_names: set[str],
    plans: Mapping[str, TestPlan],
) -> Iterator[Problem]:
    """Yield a problem for each recipe, plan or CPU that a device type names and that does not exist, and for each name
    of a unit that is used twice.
    """
    owner: dict[str, str] = {}
    for name, device_type in device_types.items():
        document = documents[name]
        if GeneratedTopology.parse(name) is not None:
            yield document.problem(("name",), f"{name!r} is the name of a generated device type; choose another")
        if device_type.recipe not in recipes:
            hint = suggest_name(device_type.recipe, recipes)
            yield document.problem(("recipe",), f"no kernels/recipes/{device_type.recipe}.yaml; {hint}")
        check = device_type.health_check
        if check not in plan_names:
            hint = suggest_name(check, plan_names)
            yield document.problem(("health_check",), f"no testplans/{check}/plan.yaml; {hint}")
        elif check in plans and not plans[check].checks_health:
            yield document.problem(("health_check",), f"plan {check} needs checks_health: true to be a health check")
        yield from _irq_affinity_problems(document, device_type)
        noise = device_type.noise_plan
        if noise is not None and noise not in plan_names:
            hint = suggest_name(noise, plan_names)
            yield document.problem(("noise_plan",), f"no testplans/{noise}/plan.yaml; {hint}")
        elif noise is not None and noise in plans and plans[noise].fragments:
            problem = f"plan {noise} needs other kernels than the golden system's; choose one without fragments"
            yield document.problem(("noise_plan",), problem)
        for index, unit in enumerate(device_type.units):
            if unit.name in owner:
                yield document.problem(("units", index, "name"), f"{unit.name} is already a unit of {owner[unit.name]}")
            if GeneratedTopology.parse(unit.name.removesuffix("-1")) is not None:
                yield document.problem(
                    ("units", index, "name"),
                    f"{unit.name!r} is the name of a device of a generated type; choose another",
                )
            owner.setdefault(unit.name, name)


def cost_profile_problems(
    documents: Mapping[str, Document], device_types: Mapping[str, DeviceType], costs: Mapping[str, CostProfile]
) -> Iterator[Problem]:
    """Yield a problem for each cost profile that a device type names and that does not exist or suit its topology."""
    for name, device_type in device_types.items():
        profile = device_type.emulation.profile if device_type.emulation is not None else None
        if profile is None:
            continue
        if profile not in costs:
            hint = suggest_name(profile, costs)
            message = f"no valid device-types/costs/{profile}.yaml; {hint}"
        else:
            message = costs[profile].problem(device_type.topology)
        if message:
            yield documents[name].problem(("emulation", "profile"), message)


def generated_type_problems(
    common: Document, values: Mapping[str, Any], lab: str, recipes: set[str], plans: set[str]
) -> Iterator[Problem]:
    """Yield the problems of the common defaults for generated device types, which have no file of their own."""
    try:
        generated = GeneratedTopology().device_type(lab, values)
    except ValidationError as error:
        first = error.errors()[0]
        message = f"does not suit generated instrumented device types: {first['msg']}"
        yield common.problem(first["loc"], message)
        return
    if generated.recipe not in recipes:
        yield common.problem(("recipe",), f"no kernels/recipes/{generated.recipe}.yaml for generated device types")
    if generated.health_check not in plans:
        yield common.problem(("health_check",), f"no testplans/{generated.health_check} for generated device types")


def _irq_affinity_problems(document: Document, device_type: DeviceType) -> Iterator[Problem]:
    text, cpus = device_type.conditions.irq_affinity, device_type.topology.cpus
    # Without SMT, machines with adjacent siblings have gaps in the CPU numbers that stay online.
    if text is None or device_type.conditions.smt is False:
        return
    if (last := int(re.split("[,-]", text)[-1])) >= cpus:
        message = f"there is no CPU {last}: the topology has {cpus}, 0-{cpus - 1}"
        yield document.problem(("conditions", "irq_affinity"), message)


def lava_problems(
    documents: Mapping[str, Document], device_types: Mapping[str, DeviceType], templates: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield a problem for each unit whose lab has another backend, and for each boot template that does not exist."""
    first_of_lab: dict[str, Unit] = {}
    for name, device_type in device_types.items():
        for index, unit in enumerate(device_type.units):
            if unit.backend == "instrumented":  # needs a worker only, so any lab can have it
                continue
            other = first_of_lab.setdefault(unit.lab, unit)
            if other.backend != unit.backend:
                message = (
                    f"{unit.name} has backend {unit.backend}, {other.name} of the same lab {unit.lab} has "
                    f"{other.backend}: a lab has one backend, so give each backend a lab of its own"
                )
                yield documents[name].problem(("units", index, "lab"), message)
        if device_type.lava and device_type.lava.boot not in templates:
            hint = suggest_name(device_type.lava.boot, templates)
            where = f"device-types/lava/{device_type.lava.boot}{LAVA_TEMPLATE}"
            yield documents[name].problem(("lava", "boot"), f"no {where}; {hint}")
