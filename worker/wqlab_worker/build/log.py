"""Reads what make and the compiler print: progress, warnings, the first errors. All of it is data, never trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wqlab_contracts.messages import CompilerWarning

SOURCE = "/src"
"""Where the sandbox shows the source tree."""

WARNING_LIMIT = 1000
EXCERPT_LINES = 40

_STEP = re.compile(r"^  ([A-Z][A-Z0-9_]*)(?: \[M\])? +(\S+)")
_WARNING = re.compile(r"^(?P<where>[^\s:][^:]*:\d+(?::\d+)?): warning: (?P<text>.*?)(?: \[(?P<option>-W[^\]]*)\])?$")
_ERROR = re.compile(
    r"^(?:[^\s:][^:]*:\d+(?::\d+)?: (?:fatal )?error: |[^:]+: undefined reference to |.*\bld(?:\.\w+)?: "
    r"|ERROR: modpost: |error: )"
)
_MAKE_ERROR = re.compile(r"^(?:/\S+/)?g?make(?:\[\d+\])?: \*\*\* ")


def step(line: str) -> str | None:
    """The file that a line of make's short output (`  CC      kernel/fork.o`) is about; None for other lines."""
    match = _STEP.match(line)
    return match[2] if match else None


def warnings(lines: Iterable[str]) -> list[CompilerWarning]:
    """Each compiler warning once, in the order of the log, with paths relative to the source tree."""
    found: dict[tuple[str, str], CompilerWarning] = {}
    for line in lines:
        match = _WARNING.match(relative(line))
        if match and len(found) < WARNING_LIMIT:
            where, text = match["where"], match["text"]
            found.setdefault((where, text), CompilerWarning(where=where, text=text, option=match["option"] or ""))
    return list(found.values())


def first_errors(lines: Iterable[str]) -> tuple[str, str]:
    """The first error in one line (for a summary; empty when there is none), and the excerpt around the errors."""
    kept = [relative(line) for line in lines]
    hits = [number for number, line in enumerate(kept) if _ERROR.match(line)]
    hits = hits or [number for number, line in enumerate(kept) if _MAKE_ERROR.match(line)]
    if not hits:
        return "", "\n".join(kept[-EXCERPT_LINES:])
    start = max(0, hits[0] - 2)
    excerpt = [line for line in kept[start : start + 2 * EXCERPT_LINES] if not _STEP.match(line)]
    return kept[hits[0]].strip(), "\n".join(excerpt[:EXCERPT_LINES])


def relative(line: str) -> str:
    """The line without the sandbox's source folder in front of file names."""
    return line.replace(f"..{SOURCE}/", "").replace(f"{SOURCE}/", "")
