"""Build with a user's configuration, such as a distribution's, and the options that a plan needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.specs import KernelRecipe

from .kconfig import parse_options

NAME = "own-config"
"""Name of the recipe, and of the fragment with the configuration."""
NEEDED = ("given", "observe", "workloads")
"""Fragments that are merged after the configuration; those of the plan and of emulated devices follow."""
_OBJECTS = LinearPattern(r"obj-\$\(CONFIG_(\w+)\)\s*[+:]?=(.*)")


def recipe_with(recipe: KernelRecipe, plan: Iterable[str]) -> KernelRecipe:
    """Return the recipe for a user's configuration; `recipe` has its toolchain and modules, `plan` more fragments."""
    fragments = list(dict.fromkeys([NAME, *NEEDED, *plan]))
    return recipe.model_copy(update={"name": NAME, "fragments": fragments, "arch_fragments": {}})


def with_loaded_modules(config: str, loaded: Collection[str], makefile_lines: Iterable[str]) -> str:
    """Return the configuration without the modules that are not in `loaded`, as `make localmodconfig` does it.

    `makefile_lines`: lines of the tree's Makefiles; an option that no line names is kept. The modules that a loaded
    module needs are loaded too, or its option selects theirs.
    """
    names = {each.replace("-", "_") for each in loaded}
    objects: dict[str, set[str]] = {}
    for line in makefile_lines:
        if match := _OBJECTS.fullmatch(line.strip()):
            found = {word[:-2].rpartition("/")[2].replace("-", "_") for word in match[2].split() if word.endswith(".o")}
            if found:
                objects.setdefault(match[1], set()).update(found)
    modules = [name for name, value in parse_options(config).items() if value == "m"]
    dropped = [name for name in modules if name in objects and not objects[name] & names]
    return config + "".join(f"# CONFIG_{name} is not set\n" for name in dropped)
