"""Find commands to the lab in the text of a reply. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_COMMAND = re.compile(r"wqlab:[ \t]*([^\r\n]{0,200})", re.IGNORECASE)


def commands_of(text: str) -> Iterator[str]:
    """Yield what follows `wqlab:` on lines of its own. Quoted lines begin with `>` and do not match."""
    for line in text.splitlines():
        if line == "-- ":
            return
        match = _COMMAND.fullmatch(line.strip())
        if match is not None:
            yield match[1].strip()
