"""Read from the patches of a series which C functions it changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages.apply import TOUCHED_LIMIT

_HUNK = LinearPattern(r"@@ -[0-9,]+ \+[0-9,]+ @@ ?(.*)")
_DEFINITION = LinearPattern(r"(?:[A-Za-z_][^;=(]*[\s*])?([A-Za-z_][A-Za-z0-9_]{0,150})\s*\([^;]*$")
"""Line that begins a function at the first column: the name before the first bracket, and no semicolon."""
_SOURCES = (".c", ".h", ".S")
_NO_FUNCTIONS = frozenset(
    {"if", "for", "while", "switch", "return", "sizeof", "defined", "__attribute__"}
    | {"__acquires", "__releases", "__must_hold", "__cond_acquires"}  # below the head of a function
)


def touched_functions(patches: Iterable[str]) -> list[str]:
    """Return the names of the functions in which a line is added or removed, sorted; at most TOUCHED_LIMIT.

    A hunk begins in the function that git names behind `@@`. A function that begins within the hunk follows it.
    """
    found: set[str] = set()
    for patch in patches:
        found.update(_of_patch(patch))
    return sorted(found)[:TOUCHED_LIMIT]


def _of_patch(patch: str) -> Iterator[str]:
    source, in_hunk, function = False, False, ""
    for line in patch.splitlines():
        if line.startswith("diff --git "):
            source, in_hunk, function = line.endswith(_SOURCES), False, ""
        elif (hunk := _HUNK.match(line) if source else None) is not None:
            in_hunk, function = True, _defined(hunk[1])
        elif in_hunk and line[:1] in {" ", "+", "-"}:
            text = line[1:]
            function = _defined(text) or function
            if line[0] != " " and text.strip() and function:
                yield function
            if text.startswith("}"):
                function = ""


def _defined(line: str) -> str:
    """Return the name of the function whose definition begins on the line, or an empty text."""
    match = _DEFINITION.match(line)
    return match[1] if match is not None and match[1] not in _NO_FUNCTIONS else ""
