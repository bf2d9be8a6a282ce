"""Two kernel configurations compared by option, not by line: order and comments do not matter. Pure."""

from __future__ import annotations

import re

_LINE = re.compile(r"(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)\Z")
UNSET = "n"


def options(config: str) -> dict[str, str]:
    """CONFIG_X -> value as written; `n` for `# CONFIG_X is not set`."""
    found: dict[str, str] = {}
    for line in config.splitlines():
        match = _LINE.match(line)
        if match:
            found[match[1] or match[3]] = match[2] if match[1] else UNSET
    return found


def config_difference(before: str, after: str) -> list[str]:
    """`CONFIG_X y -> m`, sorted by option; `absent` where a configuration does not know the option."""
    old, new = options(before), options(after)
    return [
        f"{name} {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
