"""Parse the output of make and the compiler: progress, warnings and the first errors. The output is not trusted.

The log may have 64 MiB, in one line or in as many lines. It is read as a stream of short lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import CompilerWarning

SOURCE = "/src"
"""Path of the source tree in the sandbox."""

LINE_LIMIT = 4096
"""Bytes read of a line; the rest is left out."""
WARNING_LIMIT = 1000
EXCERPT_LINES = 40

_STEP = LinearPattern(r"  ([A-Z][A-Z0-9_]*)(?: \[M\])? +(\S+)")
_WARNING = LinearPattern(r"(?P<where>[^\s:][^:]*:\d+(?::\d+)?): warning: (?P<text>.*?)(?: \[(?P<option>-W[^\]]*)\])?")
_ERROR = LinearPattern(
    r"(?:[^\s:][^:]*:\d+(?::\d+)?: (?:fatal )?error: |[^:]+: undefined reference to |.*\bld(?:\.\w+)?: "
    r"|ERROR: modpost: |error: )"
)
_CONTEXT = LinearPattern(r"(?:In file included from |  +from |[^\s:]+: (?:In function |At top level))")
"""Lines before an error that say where it is."""
_CONSEQUENCE = LinearPattern(r"(?:g?make(?:\[\d+\])?: |[IE]: )")
"""Lines of make and tuxmake after a compiler's error."""
_ERROR_WORDS = ("error: ", "ERROR: ", "undefined reference", "ld")
"""A line without these is no error. Searching them is faster than a pattern, for a log of millions of lines."""
_MAKE_ERROR = LinearPattern(r"(?:/\S+/)?g?make(?:\[\d+\])?: \*\*\* ")


def read_lines(log: Path) -> Iterator[str]:
    """Yield the lines of a build's log without their ends, each cut after LINE_LIMIT bytes."""
    with log.open("rb") as file:
        while line := file.readline(LINE_LIMIT):
            yield line.decode(errors="replace").rstrip("\r\n")
            while not line.endswith(b"\n") and (line := file.readline(LINE_LIMIT)):
                pass


def last_lines(log: Path) -> str:
    """Return the last EXCERPT_LINES lines of the log."""
    return "\n".join(deque(read_lines(log), EXCERPT_LINES))


def parse_step(line: str) -> str | None:
    """Return the file of a line of make's short output (`  CC      kernel/fork.o`); None for other lines."""
    match = _STEP.match(line) if line.startswith("  ") else None
    return match[2] if match else None


def warnings(lines: Iterable[str]) -> list[CompilerWarning]:
    """Return each compiler warning once, in the order of the log, with paths relative to the source tree."""
    found: dict[tuple[str, str], CompilerWarning] = {}
    for line in lines:
        match = _WARNING.fullmatch(relative_paths(line)) if ": warning: " in line else None
        if match:
            where, text = match["where"], match["text"]
            found.setdefault((where, text), CompilerWarning(where=where, text=text, option=match["option"] or ""))
            if len(found) == WARNING_LIMIT:
                break
    return list(found.values())


def first_errors(lines: Iterable[str]) -> tuple[str, str]:
    """Return the line of the first error (empty if there is none) and an excerpt around it.

    An error of the compiler or linker is preferred to one of make, which only says that a step failed.
    """
    recent: deque[str] = deque(maxlen=EXCERPT_LINES)
    make_error: list[str] = []  # the first error of make with the lines around it
    first_make_error = ""
    remaining = map(relative_paths, lines)
    for line in remaining:
        if any(word in line for word in _ERROR_WORDS) and _ERROR.match(line):
            following = islice(remaining, 2 * EXCERPT_LINES)
            return line.strip(), _excerpt(
                each for each in [*_context(recent), line, *following] if not _CONSEQUENCE.match(each)
            )
        if 0 < len(make_error) < 2 * EXCERPT_LINES:
            make_error.append(line)
        elif not make_error and "*** " in line and _MAKE_ERROR.match(line):
            first_make_error, make_error = line, [*list(recent)[-2:], line]
        recent.append(line)
    if make_error:
        return first_make_error.strip(), _excerpt(make_error)
    return "", "\n".join(recent)


def _context(recent: Sequence[str]) -> list[str]:
    """Return the last lines before an error that say where it is."""
    before = takewhile(_CONTEXT.match, reversed(recent))
    return list(islice(before, EXCERPT_LINES // 4))[::-1]


def _excerpt(lines: Iterable[str]) -> str:
    return "\n".join(islice((line for line in lines if not _STEP.match(line)), EXCERPT_LINES))


def relative_paths(line: str) -> str:
    """Return the line without the sandbox's source folder in front of file names."""
    return line.replace(f"..{SOURCE}/", "").replace(f"{SOURCE}/", "")
