"""Compute keys: equal content of a kernel build, or the same kernel defect, gives an equal key."""

import hashlib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from .specs import CpuArch, KernelRecipe

_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")


def build_key(  # noqa: PLR0917 - the inputs of a build
    tree_oid: str,
    recipe: KernelRecipe,
    arch: CpuArch,
    fragments: Mapping[str, str],
    toolchain: str,
    modules: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> str:
    """Return the SHA-256 of all inputs that determine a kernel and its modules: source, configuration, compiler.

    `fragments` is name -> text, so editing a fragment file changes the key. The recipe defines the merge order; the
    order of the mapping has no effect. Neither have the recipe's summary and the origin of the source. `modules` is
    name -> file -> text of the recipe's modules. Raises ValueError if fragments or modules are not the recipe's.
    """
    if modules.keys() != set(recipe.modules):
        raise ValueError(f"recipe {recipe.name} has modules {sorted(recipe.modules)}, not {sorted(modules)}")
    content: dict[str, object] = {
        "tree": tree_oid,
        "base_config": recipe.base_config,
        "fragments": [text for _, text in in_merge_order(recipe, arch, fragments)],
        "arch": arch,
        "toolchain": toolchain,
    }
    if modules:
        content["modules"] = {name: dict(files) for name, files in modules.items()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def fragment_names(recipe: KernelRecipe, arch: CpuArch, emulated: bool) -> list[str]:
    """Return the recipe's fragments in merge order: later ones override earlier ones."""
    return [
        *recipe.fragments,
        *recipe.arch_fragments.get(arch, []),
        *(recipe.emulated_fragments if emulated else []),
    ]


def in_merge_order(recipe: KernelRecipe, arch: CpuArch, fragments: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return name and text of `fragments` in the recipe's merge order.

    Raises ValueError if the recipe lacks one of the fragments.
    """
    order = fragment_names(recipe, arch, emulated=True)
    if unknown := sorted(fragments.keys() - set(order)):
        raise ValueError(f"recipe {recipe.name} has no fragment {', '.join(unknown)}")
    return [(name, fragments[name]) for name in order if name in fragments]


def defect_key(text: str) -> str:
    """Return a report title or failure summary with everything masked that varies between boots of one defect.

    Masked are addresses, CPUs, PIDs, times, and line numbers, which a series moves. Worker, server and comparison use
    this one definition of the same defect.
    """
    return _VARYING.sub("#", text)
