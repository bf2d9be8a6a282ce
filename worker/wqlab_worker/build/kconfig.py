"""Kernel configuration fragments: what was asked for, and what a finished .config has."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LINE = re.compile(r"(?:CONFIG_(\w+)=(.*)|# CONFIG_(\w+) is not set)\Z")


def options(text: str) -> dict[str, str]:
    """Option (without CONFIG_) -> value; an option that is not set has `n`. Later lines win."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if match := _LINE.match(line.strip()):
            found[match[1] or match[3]] = match[2] if match[1] else "n"
    return found


def unmet(fragments: Iterable[str], config: str) -> list[str]:
    """What the fragments, merged in order, ask for and `config` does not have, as `CONFIG_X=y (is n)`, sorted.

    Kconfig drops an option silently when the tree lacks it, when something it depends on is off, or when something
    else selects it.
    """
    asked: dict[str, str] = {}
    for fragment in fragments:
        asked.update(options(fragment))
    have = options(config)
    return sorted(
        f"CONFIG_{name}={value} (is {have.get(name, 'n')})"
        for name, value in asked.items()
        if have.get(name, "n") != value
    )
