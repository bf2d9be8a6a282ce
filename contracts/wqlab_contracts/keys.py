"""Content keys: two things with the same key are the same thing."""

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType

from .specs import CpuArch, KernelRecipe


def build_key(  # noqa: PLR0917 - what decides a kernel, in the order of its making
    tree_oid: str,
    recipe: KernelRecipe,
    arch: CpuArch,
    fragments: Mapping[str, str],
    toolchain: str,
    modules: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> str:
    """SHA-256 over everything that decides a kernel's bytes, and its modules': source tree, configuration, compiler.

    `fragments` is name -> text, so an edited fragment file makes another key; the recipe says in which order they are
    merged, whatever order a store of mappings gave them back in. The recipe's prose and the place the source came from
    do not count. `modules` is name -> file -> text of the recipe's modules. Raises ValueError when fragments or modules
    are not the recipe's.
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
    """The recipe's fragments in merge order: later ones win."""
    return [
        *recipe.fragments,
        *recipe.arch_fragments.get(arch, []),
        *(recipe.emulated_fragments if emulated else []),
    ]


def in_merge_order(recipe: KernelRecipe, arch: CpuArch, fragments: Mapping[str, str]) -> list[tuple[str, str]]:
    """Name and text of each of `fragments` in the order in which the recipe merges them.

    Raises ValueError for a fragment that the recipe does not have.
    """
    order = fragment_names(recipe, arch, emulated=True)
    if unknown := sorted(fragments.keys() - set(order)):
        raise ValueError(f"recipe {recipe.name} has no fragment {', '.join(unknown)}")
    return [(name, fragments[name]) for name in order if name in fragments]
