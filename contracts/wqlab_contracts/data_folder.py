"""The validated content of the data folder; `loading.py` reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .specs import Archive, DeviceType, Forge, GeneratedTopology, KernelRecipe, ListWatch, TestPlan, Tree, TreeWatch
from .specs.cost_profile import CostProfile
from .specs.touches import Touch
from .yamlfile import suggest_name

_WINDOW = re.compile(r"^[^#\n]*\b(?:run_fio|(?:window|wqmark) begin)\b", re.MULTILINE)
"""Beginning of a window in a plan's script; `run_fio` of testplans/common marks one around fio."""


@dataclass(frozen=True)
class DataFolder:
    """Validated content of the data folder, by name."""

    path: Path
    device_types: Mapping[str, DeviceType]
    trees: Mapping[str, Tree]
    default_tree: str
    recipes: Mapping[str, KernelRecipe]
    plans: Mapping[str, TestPlan]
    fragments: Mapping[str, str]
    modules: Mapping[str, Mapping[str, str]]
    """Folder of kernels/modules -> file -> text."""
    lava_templates: Mapping[str, str]
    """Boot method -> text of device-types/lava/<boot>.yaml.jinja2."""
    _files: Mapping[str, Mapping[str, str]]
    golden_tree: str = ""
    """Tree of the golden kernel; the default tree if trees.yaml names no other."""
    noise_control: str = ""
    """Mbox of the control series, which changes addresses only; empty if the folder has none."""
    generated_lab: str | None = None
    """Lab of the devices of generated types: that of the first instrumented x86-64 type; None if there is none."""
    common_device_type: Mapping[str, Any] = field(default_factory=dict)
    """Content of device-types/common.yaml."""
    archives: tuple[Archive, ...] = ()
    """Mail archives, in the order in which a message is looked for."""
    forges: tuple[Forge, ...] = ()
    """Repositories on forges whose pull requests and pushes are measured."""
    watches: Mapping[str, ListWatch | TreeWatch] = field(default_factory=dict)
    """Watches of mailing lists and trees; the lab has more, which are not in files."""
    touches: tuple[Touch, ...] = ()
    """Which plans are proposed for a series, by what it changes."""
    cost_profiles: Mapping[str, CostProfile] = field(default_factory=dict)
    """Cost profiles of modelled devices."""

    def with_origin(self, tree: Tree) -> Tree:
        """Return a tree with its origin: `operator` only if the data folder lists its URL, or its source package."""
        listed = {each.url for each in self.trees.values()} | {
            each.url for each in self.watches.values() if isinstance(each, TreeWatch)
        }
        packages = {(each.debian_source, each.debian_suite) for each in self.trees.values()}
        known = tree.url in listed if tree.url is not None else (tree.debian_source, tree.debian_suite) in packages
        if known:
            return tree
        return tree.model_copy(update={"origin": "user"})

    def archive(self, name: str) -> Archive | None:
        """Return a mail archive; None if the folder has none of this name."""
        return next((archive for archive in self.archives if archive.name == name), None)

    @property
    def checked_archives(self) -> frozenset[str]:
        """Return the names of the archives that take only mails whose DKIM signature was checked."""
        return frozenset(archive.name for archive in self.archives if archive.dkim_checked)

    def device_type(self, name: str) -> DeviceType:
        """Return a device type of the folder, or a generated one. Raises KeyError if there is neither."""
        if name in self.device_types:
            return self.device_types[name]
        generated = self.generated_type(name)
        if generated is None:
            raise KeyError(name)
        return generated

    def has_device_type(self, name: str) -> bool:
        """Return True if `device_type` knows the name."""
        return name in self.device_types or self.generated_type(name) is not None

    def generated_type(self, name: str) -> DeviceType | None:
        """Return the generated device type of this name; None if the name describes no possible topology or costs, or
        if the folder has no instrumented x86-64 type, so that no lab is known to run such devices."""
        topology = GeneratedTopology.parse(name)
        if topology is None or self.generated_lab is None or self.generated_problem(topology):
            return None
        return topology.device_type(self.generated_lab, self.common_device_type)

    def generated_problem(self, topology: GeneratedTopology) -> str:
        """Return why no device has a topology at its costs, with the fix; empty if one can."""
        if (problem := topology.problem()) or not topology.costs:
            return problem
        if (profile := self.cost_profiles.get(topology.costs)) is None:
            hint = suggest_name(topology.costs, set(self.cost_profiles))
            return f"no cost profile device-types/costs/{topology.costs}.yaml; {hint}"
        return profile.problem(topology.topology())

    def costs_of(self, device_type: DeviceType) -> CostProfile | None:
        """Return the cost profile of a modelled device type; None for other types."""
        profile = device_type.emulation.profile if device_type.emulation is not None else None
        return None if profile is None else self.cost_profiles[profile]

    def marks_window(self, plan: str) -> bool:
        """Return True if the plan's script marks the window in which instrumented devices count.

        Raises KeyError if there is no such plan.
        """
        return _WINDOW.search(self._files[plan][self.plans[plan].script]) is not None

    def fragment(self, name: str) -> str:
        """Return the text of kernels/fragments/<name>.config. Raises KeyError if there is no such file."""
        return self.fragments[name]

    def modules_of(self, recipe: KernelRecipe) -> dict[str, dict[str, str]]:
        """Return name -> file -> text of the recipe's modules. Raises KeyError if this folder lacks a module."""
        return {name: dict(self.modules[name]) for name in recipe.modules}

    def plan_files(self, plan: str) -> dict[str, str]:
        """Return the files sent to the device with `plan`: name relative to the plan's folder -> text.

        Raises KeyError if there is no such plan.
        """
        return dict(self._files[plan])
