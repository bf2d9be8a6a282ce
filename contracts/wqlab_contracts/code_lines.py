"""Which changed lines of a C diff change what the kernel does. Pure.

Comments, blank lines, `#include`, `MODULE_*()` and `EXPORT_SYMBOL*()` do nothing at run time, and neither do white
space, another wording of a message, `const` and annotations for compiler and sparse, or an argument that a function
lost because it did not use it. Every step takes a time linear in the length of the hunk.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import groupby

Line = tuple[str, str]
"""Mark (`+`, `-` or a blank) and text of a line of a hunk."""

_COMMENT_OR_STRING = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\[^\n]|[^\"\\\n])*\"?|'(?:\\[^\n]|[^'\\\n])*'?", re.DOTALL
)
_DOES_NOTHING = re.compile(
    r"^[ \t]*(?:#[ \t]*include\b[^\n]*"
    r"|(?:MODULE_[A-Z_]+|EXPORT_(?:\w+_)?SYMBOL\w*)[ \t]*\((?:\"[^\"\n]*\"|[^()\";]){0,2000}\)[ \t]*;?)",
    re.MULTILINE | re.ASCII,
)
_WORD = re.compile(r"\"(?:\\.|[^\"\\])*\"?|'(?:\\.|[^'\\])*'?|\w+|\S", re.ASCII)
_HEAD = re.compile(
    r"^(?:[A-Za-z_][^\n(=;{}]*?[ \t*])?([A-Za-z_]\w*)[ \t]*"
    r"\(([^(){};]{0,2000}(?:\([^()]{0,200}\)[^(){};]{0,2000}){0,20})\)",
    re.MULTILINE | re.ASCII,
)
"""Head of a function, or its prototype: the name and the parameters."""
_PROSE = '""'
_ANNOTATIONS = frozenset({
    "const", "extern", "__user", "__iomem", "__rcu", "__percpu", "__force", "__bitwise", "__nocast", "__must_check",
    "__maybe_unused", "__always_unused",
})  # fmt: skip
_ANNOTATIONS_WITH_ARGUMENTS = frozenset({"__acquires", "__releases", "__must_hold", "__printf", "__scanf"})
"""Words for compiler, sparse and readers that change no code."""
_SECTION = re.compile(r"\b__section[ \t]*\([ \t]*([\w.]{1,100})[ \t]*\)", re.ASCII)
"""A section's name without quotation marks, as the kernel wrote it before 5.10."""


class Hunk:
    """The lines of a hunk before the change (`old`) and after it, without comments and what else does nothing."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self._old = _Side(lines, "-")
        self._new = _Side(lines, "+")

    def changed_parameters(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return the functions whose heads the hunk has, with their parameters before and after."""
        return self._old.parameters(), self._new.parameters()

    def significant_lines(self, lost: Collection[str] = ()) -> list[bool]:
        """Return for each line whether it changes what the kernel does. `lost`: see lost_arguments()."""
        old, new = self._old, self._new
        if _words(old.code, lost) == _words(new.code, lost):
            return [False] * len(self.lines)
        code = {"-": iter(old.changed_lines()), "+": iter(new.changed_lines())}
        found: list[bool] = []
        for changed, group in groupby(self.lines, key=lambda line: line[0] != " "):
            if not changed:
                found += [False for _ in group]
                continue
            of_group = [(mark, next(code[mark])) for mark, _ in group]
            differs = len({mark for mark, _ in of_group}) == 1 or _differs(of_group, lost)
            found += [differs and bool(text.strip()) for _, text in of_group]
        return found


class _Side:
    """The lines of a hunk before the change or after it."""

    def __init__(self, lines: Sequence[Line], mark: str) -> None:
        self._changed = [each == mark for each, _ in lines if each in (mark, " ")]
        text = "\n".join(text for each, text in lines if each in (mark, " "))
        begin = "/*" if _begins_in_comment(text) else ""
        self.code = _DOES_NOTHING.sub(_newlines, _COMMENT_OR_STRING.sub(_without_comment, begin + text))

    def changed_lines(self) -> list[str]:
        """Return the code of each changed line, in order."""
        lines = self.code.split("\n") if self._changed else []
        return [line for line, changed in zip(lines, self._changed, strict=True) if changed]

    def parameters(self) -> dict[str, list[str]]:
        return {found[1]: _split_parameters(found[2]) for found in _HEAD.finditer(self.code)}


def _without_comment(found: re.Match[str]) -> str:
    return f" {_newlines(found)}" if found[0].startswith("/") else found[0]


def _newlines(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _begins_in_comment(text: str) -> bool:
    """Return True if a hunk begins inside a comment: it has `*/` before any `/*`, or each line begins with `*`."""
    end = text.find("*/")
    if end >= 0:
        return text.find("/*", 0, end) < 0
    if "/*" in text:
        return _is_of_comment(text.lstrip())
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return bool(lines) and all(line == "*" or _is_of_comment(line) for line in lines)


def _is_of_comment(line: str) -> bool:
    return line.startswith(("* ", "*\t"))


def _split_parameters(text: str) -> list[str]:
    """Return the parameters of a function, with single blanks: those of `(void)` are none."""
    words = _WORD.findall(text)
    found: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(word)
    return [] if words in ([], ["void"]) else [" ".join(each) for each in found]


def lost_arguments(hunks: Sequence[Hunk]) -> set[str]:
    """Return the functions that have the same parameters as before but for some that were removed."""
    old: dict[str, list[str]] = {}
    new: dict[str, list[str]] = {}
    for hunk in hunks:
        before, after = hunk.changed_parameters()
        old |= before
        new |= after
    return {name for name in old.keys() & new.keys() if _is_shortened(old[name], new[name])}


def _is_shortened(old: Sequence[str], new: Sequence[str]) -> bool:
    left = iter(old)
    return len(new) < len(old) and all(each in left for each in new)


def _words(code: str, lost: Collection[str]) -> list[str]:
    """Return the words of code without annotations; sentences are equal to each other, and so are the arguments of
    functions in `lost`."""
    code = _SECTION.sub(r'__section("\1")', code)
    words: list[str] = [word for word in _WORD.findall(code) if word not in _ANNOTATIONS]
    if not lost and '"' not in code and _ANNOTATIONS_WITH_ARGUMENTS.isdisjoint(words):
        return words
    found: list[str] = []
    skipped = 0
    after_lost = False
    for word in words:
        if skipped or (after_lost and word == "("):
            skipped += (word == "(") - (word == ")")
            after_lost = False
            continue
        after_lost = word in lost or word in _ANNOTATIONS_WITH_ARGUMENTS
        if word in _ANNOTATIONS_WITH_ARGUMENTS:
            continue
        if word[0] == '"' and " " in word:
            word = _PROSE  # noqa: PLW2901
            if found and found[-1] == _PROSE:
                continue
        found.append(word)
    return found


def _differs(group: Sequence[Line], lost: Collection[str]) -> bool:
    before, after = ("\n".join(text for mark, text in group if mark == side) for side in "-+")
    return _words(before, lost) != _words(after, lost)
