"""Compute keys: equal content of a kernel build, or the same kernel defect, gives an equal key."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from types import MappingProxyType

from .enums import FindingKind
from .messages.base import StackFrame
from .specs import CpuArch, KernelRecipe

_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")
_PLACE = re.compile(r"@[^ @]+")
_COMPILER_SUFFIX = re.compile(r"\.(?:isra|constprop|part|cold)\b(?:\.\d+)?")
_FAULTS = {FindingKind.OOPS, FindingKind.BUG, FindingKind.PANIC}
_REPORTING = {"show_stack", "__dump_stack", "dump_stack_lvl", "dump_stack", "vpanic", "panic", "nmi_panic"}
"""Functions that print a panic; the next one is that which called for it."""


def build_key(  # noqa: PLR0917 - the inputs of a build
    tree_oid: str,
    recipe: KernelRecipe,
    arch: CpuArch,
    fragments: Mapping[str, str],
    toolchain: str,
    modules: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    layouts: int = 1,
) -> str:
    """Return the SHA-256 of all inputs that determine a kernel and its modules: source, configuration, compiler.

    `fragments` is name -> text, so editing a fragment file changes the key. The recipe defines the merge order; the
    order of the mapping has no effect. Neither have the recipe's summary and the origin of the source. `modules` is
    name -> file -> text of the recipe's modules; `layouts` is the number of layouts in which the kernel is linked.
    Raises ValueError if fragments or modules are not the recipe's.
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
    if layouts > 1:
        content["layouts"] = layouts
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


def describe_defect(kind: FindingKind, title: str, stack: Sequence[StackFrame] = ()) -> str:
    """Describe the defect of a kernel report, equal for two reports of one kernel about the same defect.

    Oopses, BUGs and panics are the same if they fail in the same line and the functions of their call traces and their
    files are equal. Lines of callers do not count: one defect is often reached from several lines of one caller. Titles
    of other reports name their place. Left out are addresses, offsets, CPUs, PIDs, times and inlined functions.
    """
    text = f"{kind.value}: {_masked(title)}"
    frames = list(dropwhile(lambda frame: frame.function in _REPORTING, (f for f in stack if not f.inlined)))
    if kind not in _FAULTS or not frames:
        return text
    places = [frame.function + (f"@{frame.file}" if frame.file else "") for frame in frames]
    if frames[0].file:
        places[0] += f":{frames[0].line}"
    return f"{text} in {' < '.join(places)}"


def defect_key(text: str) -> str:
    """Return a defect, report title or failure summary with everything masked that varies between kernels and boots.

    Masked are addresses, CPUs, PIDs, times, places in the source, which a series moves, and suffixes that a compiler
    adds to the names of functions. Worker, server and comparison use this one definition of the same defect.
    """
    return _masked(_COMPILER_SUFFIX.sub("", _PLACE.sub("", text)))


def _masked(text: str) -> str:
    return _VARYING.sub("#", text)
