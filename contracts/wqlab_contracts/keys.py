"""Compute keys: equal content of a kernel build, or the same kernel defect, gives an equal key."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .defect_text import describe_warning, distinguishing_mark, without_reporting, without_suffix, without_varying
from .enums import FindingKind
from .messages.base import StackFrame
from .specs import CpuArch, KernelRecipe
from .stuck import stuck_function, stuck_work_functions

_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")
_PLACE = re.compile(r"@[^ @]+")
_FAULTS = {FindingKind.OOPS, FindingKind.PANIC}
_STUCK = {FindingKind.LOCKUP, FindingKind.RCU_STALL}
_BY_FIRST_FRAME = {FindingKind.BUG, FindingKind.KASAN, FindingKind.HUNG_TASK}


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


def describe_defect(kind: FindingKind, title: str, stack: Sequence[StackFrame] = (), excerpt: str = "") -> str:
    """Describe the defect of a kernel report, equal for two reports of one kernel about the same defect.

    Oopses, panics and `kernel BUG at` are the same if they fail in the same line and the functions of their call traces
    and their files are equal. Lines of callers do not count: one defect is often reached from several lines of one
    caller. A WARN is the same by its line and condition, a deadlock by its lock classes, a leak of a work item by its
    function; other BUGs, KASAN and hung tasks by the first function that does not only check or wait. A lockup or an
    RCU stall is the same by the outermost function of what was stuck, a workqueue lockup by its work functions.
    Addresses, offsets, tasks, CPUs, PIDs, page frames, times and inlined functions do not count.
    """
    if kind is FindingKind.WARNING:
        return f"{kind.value}: {describe_warning(title, stack, excerpt)}"
    text = f"{kind.value}: {without_varying(title)}"
    if kind is FindingKind.WORKQUEUE_STALL and (functions := stuck_work_functions(title, excerpt)):
        return f"{kind.value}: workqueue lockup in {', '.join(functions)}"
    if kind in _STUCK:
        return f"{text} in {stuck}" if (stuck := stuck_function(stack)) else text
    if mark := distinguishing_mark(kind, excerpt, stack):
        return f"{text} ({mark})"
    crashed = kind is FindingKind.BUG and title.startswith("kernel BUG at")
    if kind in _BY_FIRST_FRAME and not crashed:
        frames = without_reporting(stack, checking=True, waiting=kind is FindingKind.HUNG_TASK)
        return f"{text} in {frames[0].function}" if frames else text
    frames = without_reporting(stack, checking=crashed)
    if not frames or not (crashed or kind in _FAULTS):
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
    return _masked(without_suffix(_PLACE.sub("", text)))


def _masked(text: str) -> str:
    return _VARYING.sub("#", text)
