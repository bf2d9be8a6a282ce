"""Describe how a kernel's values were measured, and say what has changed since the point before. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from wqlab_contracts.enums import Arm
from wqlab_contracts.messages.base import cut
from wqlab_report.parts.environment_facts import LAB_ARGUMENT_PREFIX, TUNABLE_PREFIXES, is_compared

from ..models import Boot, Run

_MEASURED = frozenset({"lock_entries", "encoded"})
"""Further facts that depend on the kernel's functions or on its output."""
_VALUE_LIMIT = 80
"""Characters shown of a value that has changed."""
_DIGEST_LENGTH = 12


def facts_of(run: Run, arm: Arm, boots: Iterable[Boot], compiler: str) -> dict[str, str]:
    """Return the facts under which an arm of a run was measured: those of the lab, and those that its boots agree on.

    `boots` are the valid boots of the run; `compiler` built the arm's kernel.
    """
    of_arm = [boot for boot in boots if boot.arm is arm]
    facts = {
        "device": ", ".join(sorted({boot.device_name for boot in of_arm})),
        "plan": _digest(run.plan.model_dump(mode="json"), run.files),
        "profile": _digest(run.profile.model_dump(mode="json", exclude={"blocks"})),
        "recipe": _digest(run.recipe.model_dump(mode="json"), run.fragments, run.modules),
        "compiler": compiler,
        "kernel arguments": _arguments(of_arm),
    }
    names = {name for boot in of_arm for name in boot.environment if is_compared(name)}
    for name in sorted(names - _MEASURED):
        values = {boot.environment.get(name) for boot in of_arm}
        value = next(iter(values))
        if len(values) == 1 and value is not None and not name.startswith(TUNABLE_PREFIXES):
            facts[name] = value
    return facts


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the facts that differ, as `compiler gcc 12.2 -> gcc 13.1; disk a -> b`; empty if none does.

    Both are facts of the same commit, measured twice, so that no difference is the commit's. A fact that only one of
    them has is no change: a newer lab may report more.
    """
    return "; ".join(
        f"{name} {cut(before[name], _VALUE_LIMIT)} -> {cut(after[name], _VALUE_LIMIT)}"
        for name in before
        if name in after and before[name] != after[name]
    )


def digest_of(facts: Mapping[str, str]) -> str:
    """Return the SHA-256 of facts, the same in any order."""
    return hashlib.sha256(json.dumps(dict(facts), sort_keys=True).encode()).hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:_DIGEST_LENGTH]


def _arguments(boots: Iterable[Boot]) -> str:
    """Return the kernel arguments of the first boot, without those of the lab."""
    for boot in boots:
        if boot.cmdline is not None:
            return " ".join(sorted(word for word in boot.cmdline.split() if not word.startswith(LAB_ARGUMENT_PREFIX)))
    return ""
