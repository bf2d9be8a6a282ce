"""Parse the output of make and the compiler: progress, warnings and the first errors. The output is not trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wqlab_contracts.messages import CompilerWarning

SOURCE = "/src"
"""Path of the source tree in the sandbox."""

WARNING_LIMIT = 1000
EXCERPT_LINES = 40

_STEP = re.compile(r"^  ([A-Z][A-Z0-9_]*)(?: \[M\])? +(\S+)")
_WARNING = re.compile(r"^(?P<where>[^\s:][^:]*:\d+(?::\d+)?): warning: (?P<text>.*?)(?: \[(?P<option>-W[^\]]*)\])?$")
_ERROR = re.compile(
    r"^(?:[^\s:][^:]*:\d+(?::\d+)?: (?:fatal )?error: |[^:]+: undefined reference to |.*\bld(?:\.\w+)?: "
    r"|ERROR: modpost: |error: )"
)
_MAKE_ERROR = re.compile(r"^(?:/\S+/)?g?make(?:\[\d+\])?: \*\*\* ")
_CONTEXT = re.compile(r"^(?:In file included from |  +from |[^\s:]+: (?:In function |At top level))")
"""Lines before an error that say where it is."""
_CONSEQUENCE = re.compile(r"^(?:g?make(?:\[\d+\])?: |[IE]: )")
"""Lines of make and tuxmake after a compiler's error."""


def parse_step(line: str) -> str | None:
    """Return the file of a line of make's short output (`  CC      kernel/fork.o`); None for other lines."""
    match = _STEP.match(line)
    return match[2] if match else None


def warnings(lines: Iterable[str]) -> list[CompilerWarning]:
    """Return each compiler warning once, in the order of the log, with paths relative to the source tree."""
    found: dict[tuple[str, str], CompilerWarning] = {}
    for line in lines:
        match = _WARNING.match(relative_paths(line))
        if match and len(found) < WARNING_LIMIT:
            where, text = match["where"], match["text"]
            found.setdefault((where, text), CompilerWarning(where=where, text=text, option=match["option"] or ""))
    return list(found.values())


def first_errors(lines: Iterable[str]) -> tuple[str, str]:
    """Return the line of the first error (empty if there is none) and an excerpt around it."""
    kept = [relative_paths(line) for line in lines]
    error_lines = [number for number, line in enumerate(kept) if _ERROR.match(line)]
    error_lines = error_lines or [number for number, line in enumerate(kept) if _MAKE_ERROR.match(line)]
    if not error_lines:
        return "", "\n".join(kept[-EXCERPT_LINES:])
    compiler = _ERROR.match(kept[error_lines[0]])
    start = error_lines[0] if compiler else max(0, error_lines[0] - 2)
    while start and error_lines[0] - start < EXCERPT_LINES // 4 and _CONTEXT.match(kept[start - 1]):
        start -= 1
    lines = [line for line in kept[start : start + 2 * EXCERPT_LINES] if not _STEP.match(line)]
    excerpt = [line for line in lines if not _CONSEQUENCE.match(line)] if compiler else lines
    return kept[error_lines[0]].strip(), "\n".join(excerpt[:EXCERPT_LINES])


def relative_paths(line: str) -> str:
    """Return the line without the sandbox's source folder in front of file names."""
    return line.replace(f"..{SOURCE}/", "").replace(f"{SOURCE}/", "")
