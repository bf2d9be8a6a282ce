"""Read from a patch which lines and C functions it changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wqlab_contracts.enums import Arm
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import ChangedLines
from wqlab_contracts.messages.apply import TOUCHED_LIMIT
from wqlab_contracts.messages.changed_lines import CHANGED_LIMIT, LINES_LIMIT

_HUNK = LinearPattern(r"@@ -([0-9]{1,9})(?:,[0-9]{1,9})? \+([0-9]{1,9})(?:,[0-9]{1,9})? @@ ?(.*)")
_FILE = LinearPattern(r"(?:---|\+\+\+) [ab]/([A-Za-z0-9_.+,/-]{1,240})")
UNREADABLE = "(a file whose name is not shown)"
_DEFINITION = LinearPattern(r"(?:[A-Za-z_][^;=(]*[\s*])?([A-Za-z_][A-Za-z0-9_]{0,150})\s*\([^;]*$")
"""Line that begins a function at the first column: the name before the first bracket, and no semicolon."""
_SOURCES = (".c", ".h", ".S")
_TEXTS = (".rst", ".txt", "MAINTAINERS")
"""Ends of files that are no part of a kernel."""
_COMMENTS = ("/*", "*/", "* ", "//")
_ARMS = {"-": Arm.BASELINE, "+": Arm.CANDIDATE}
_NO_FUNCTIONS = frozenset(
    {"if", "for", "while", "switch", "return", "sizeof", "defined", "__attribute__"}
    | {"__acquires", "__releases", "__must_hold", "__cond_acquires"}  # below the head of a function
)


def touched_functions(patches: Iterable[str]) -> list[str]:
    """Return the names of the functions in which a line is added or removed, sorted; at most TOUCHED_LIMIT.

    A hunk begins in the function that git names behind `@@`. A function that begins within the hunk follows it.
    """
    return sorted({function for patch in patches for _, function, _, _ in _of_patch(patch) if function})[:TOUCHED_LIMIT]


def changed_lines(patch: str) -> list[ChangedLines]:
    """Return the lines that a patch adds and removes, by file, function and side; none if there are more than
    CHANGED_LIMIT ranges or LINES_LIMIT lines.

    `patch` is the diff of the whole series: line numbers are those before and after the series.
    """
    ends: dict[tuple[str, str, Arm, int], int] = {}
    open_ranges: dict[Arm, tuple[str, str, Arm, int]] = {}
    for count, (file, function, arm, number) in enumerate(_of_patch(patch), start=1):
        key = open_ranges.get(arm)
        if key is None or key[:3] != (file, function, arm) or ends[key] + 1 != number:
            key = open_ranges[arm] = (file, function, arm, number)
        ends[key] = number
        if count > LINES_LIMIT or len(ends) > CHANGED_LIMIT:
            return []
    return [
        ChangedLines(file=file, function=function, arm=arm, first=first, last=last)
        for (file, function, arm, first), last in ends.items()
    ]


def _of_patch(patch: str) -> Iterator[tuple[str, str, Arm, int]]:
    """Yield file, function, side and number of each changed line that can have an effect."""
    files = dict.fromkeys(_ARMS, "")
    numbers = dict.fromkeys(_ARMS, 0)
    in_hunk, function = False, ""
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            files, in_hunk, function = dict.fromkeys(_ARMS, ""), False, ""
        elif not in_hunk and line.startswith(("--- ", "+++ ")) and not line.endswith(" /dev/null"):
            files[line[0]] = name[1] if (name := _FILE.fullmatch(line)) is not None else UNREADABLE
        elif any(files.values()) and (hunk := _HUNK.fullmatch(line)) is not None:
            numbers = {"-": int(hunk[1]), "+": int(hunk[2])}
            in_hunk, function = True, _defined(hunk[3])
        elif in_hunk and line[:1] in {" ", "+", "-", ""}:
            text, sides = line[1:], [side for side in _ARMS if line[:1] != {"-": "+", "+": "-"}[side]]
            is_source = any(name.endswith(_SOURCES) for name in files.values())
            function = (_defined(text) or function) if is_source else ""
            side = line[:1]
            if side in _ARMS and files[side] and _has_effect(text, files[side]):
                yield files[side], function, _ARMS[side], numbers[side]
            for each in sides:
                numbers[each] += 1
            if text.startswith("}"):
                function = ""


def _has_effect(text: str, file: str) -> bool:
    """Return False for a line that cannot change a kernel: blank, comment, brace, or of a text file."""
    stripped = text.strip()
    if file.endswith(_TEXTS) or file.startswith("Documentation/"):
        return False
    return stripped not in {"", "*", "{", "}"} and not stripped.startswith(_COMMENTS)


def _defined(line: str) -> str:
    """Return the name of the function whose definition begins on the line, or an empty text."""
    match = _DEFINITION.match(line)
    return match[1] if match is not None and match[1] not in _NO_FUNCTIONS else ""
