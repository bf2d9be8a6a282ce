"""Comparison of two kernel configurations by option: order and comments are ignored. Pure."""

from __future__ import annotations

import re

_LINE = re.compile(r"(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)\Z")
UNSET = "n"


def options(config: str) -> dict[str, str]:
    """Return the value of each option CONFIG_X as written; `n` for `# CONFIG_X is not set`."""
    found: dict[str, str] = {}
    for line in config.splitlines():
        match = _LINE.match(line)
        if match:
            found[match[1] or match[3]] = match[2] if match[1] else UNSET
    return found


def config_difference(before: str, after: str) -> list[str]:
    """Return the options that differ, sorted, as `CONFIG_X y -> m`; `absent` if a configuration lacks the option."""
    old, new = options(before), options(after)
    return [
        f"{name} {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
