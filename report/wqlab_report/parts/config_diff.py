"""Comparison of two kernel configurations by option: order and comments are ignored. Pure."""

from __future__ import annotations

import re

from wqlab_contracts.messages.base import cut

_LINE = re.compile(r"(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)\Z")
UNSET = "n"
LISTED_LIMIT = 1000
"""Options that are listed. A series can change Kconfig, and 4 MiB of configuration hold hundreds of thousands."""
VALUE_LIMIT = 200
"""Characters shown of a name or a value."""


def options(config: str) -> dict[str, str]:
    """Return the value of each option CONFIG_X as written; `n` for `# CONFIG_X is not set`."""
    found: dict[str, str] = {}
    for line in config.splitlines():
        match = _LINE.match(line)
        if match:
            found[match[1] or match[3]] = match[2] if match[1] else UNSET
    return found


def config_difference(before: str, after: str) -> list[str]:
    """Return the options that differ, sorted, as `CONFIG_X y -> m`; `absent` if a configuration lacks the option.

    Beyond LISTED_LIMIT the rest is one entry with their number.
    """
    old, new = options(before), options(after)
    differing = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    listed = [
        f"{_cut(name)} {_cut(old.get(name, 'absent'))} -> {_cut(new.get(name, 'absent'))}"
        for name in differing[:LISTED_LIMIT]
    ]
    left_out = len(differing) - len(listed)
    return [*listed, f"CONFIG_* {left_out} more options -> not listed"] if left_out else listed


def _cut(text: str) -> str:
    return cut(text, VALUE_LIMIT)
