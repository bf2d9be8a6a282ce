"""Functions, variables, types and macros that the hunks of a diff change, in C files. Pure.

A hunk's header names the function before its first line; within the hunk, a definition that begins in the first column
replaces it. Annotations are no symbols: if a line of them (`__acquires(&pool->lock)`) follows the head of the function
in the first column, git puts that line into the header, and the function is unknown. Every line takes constant time:
only its first characters are looked at.
"""

from __future__ import annotations

import re

SYMBOLS_LIMIT = 200
"""Maximum number of symbols that are kept of a file."""
NAME_LIMIT = 100
_LINE_LIMIT = 300
"""Characters of a line that are looked at; names of definitions are among them."""

_LABEL = re.compile(r"[A-Za-z_]\w*:(?!:)", re.ASCII)
_ANNOTATION = re.compile(
    r"\b__(?:(?:cond_|try_)?(?:acquires?|releases?|must_hold|must_not_hold)(?:_shared)?|(?:pt_)?guarded_by|context_\w+"
    r"|printf|scanf|alloc_size|realloc_size|assume_aligned|aligned|section|alias|attribute__|counted_by(?:_\w+)?"
    r"|cleanup|nonnull|malloc|free|diagnose_as)"
    r"[ \t]*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*(?:\)|$)",
    re.ASCII,
)
"""Annotation with arguments, before or after a name: `__printf(1, 2)`, `__releases(&pool->lock)`, `__guarded_by(&x)`.
It ends with the line if its arguments do not."""
_TYPE = re.compile(r"(?:typedef\s+)?(?:struct|union|enum)\s+(\w+)\s*\{?\s*$", re.ASCII)
_PREPROCESSOR = re.compile(r"#\s*(?:define|undef)\s+([A-Za-z_]\w*)", re.ASCII)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_END_OF_NAME = re.compile(r"[(=;\[{]")
_PER_CPU = re.compile(r"(?:DEFINE|DECLARE)_PER_CPU", re.ASCII)
_REGISTRATION = re.compile(r"[A-Z][A-Z0-9_]*|\w+_initcall|module_(?:init|exit|param\w*)", re.ASCII)
"""Macros whose argument is the symbol: `SYSCALL_DEFINE3(io_submit, ...)`, `core_initcall(wq_sysfs_init)`."""
_TYPES = ("struct", "union", "enum")
_INSIGNIFICANT = frozenset({"", "{", "}", "};", "*/"})


def is_c(path: str) -> bool:
    """Return True for a file in which symbols are looked for."""
    return path.endswith((".c", ".h"))


def defined_symbol(line: str) -> str | None:
    """Return the name that a line defines or declares, if it begins in the first column; None if it has none."""
    text = line[:_LINE_LIMIT]
    if text[:1] == "#":
        macro = _PREPROCESSOR.match(text)
        return macro[1] if macro else None
    if not (text[:1].isalpha() or text[:1] == "_") or _LABEL.match(text):
        return None
    if (kind := _TYPE.match(text)) is not None:
        return kind[1]
    text = _ANNOTATION.sub(" ", text)
    end = _END_OF_NAME.search(text)
    if end is None:
        return None
    names = _IDENTIFIER.findall(text[: end.start()])
    if end[0] != "(":
        return _variable(names)
    if not names:
        return None
    return _argument(names[-1], text[end.end() :]) if _REGISTRATION.fullmatch(names[-1]) else names[-1]


def _variable(names: list[str]) -> str | None:
    """Return the variable in `struct workqueue_struct *system_wq __ro_after_init`."""
    while len(names) > 2 and names[-1].startswith("__"):
        names.pop()
    if len(names) == 2 and names[0] in _TYPES:
        return names[1]  # a forward declaration
    return names[-1] if len(names) > 1 and names[-1] not in _TYPES else None


def _argument(macro: str, arguments: str) -> str | None:
    """Return the symbol among the arguments of a macro: the second for a per-CPU variable, else the first."""
    parts = arguments.split(",", 2)
    part = parts[1] if _PER_CPU.match(macro) and len(parts) > 1 else parts[0]
    name = _IDENTIFIER.search(part.split(")")[0].split('"')[0])
    return name[0] if name else None


class ChangedSymbols:
    """Symbols of one file that its hunks change, in the order in which they are found."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}
        self._current: str | None = None
        self._in_macro = False

    @property
    def names(self) -> list[str]:
        return list(self._found)

    def begin_hunk(self, heading: str) -> None:
        """Begin a hunk; `heading` is what follows the second `@@`."""
        text = heading.strip()
        self._in_macro = False
        self._current = None if ";" in text else defined_symbol(text)

    def add_line(self, line: str, *, changed: bool) -> None:
        """Take a line of the hunk, without its mark. `changed`: the line is added or removed."""
        text = line[:_LINE_LIMIT]
        continued = line.rstrip().endswith("\\")
        was_in_macro, self._in_macro = self._in_macro, continued and (self._in_macro or text[:1] == "#")
        if was_in_macro:
            self._add(changed and text.strip() not in _INSIGNIFICANT)
            if not continued:
                self._current = None
            return
        name = defined_symbol(text)
        if name is not None and text[:1] == "#" and not continued:
            before, self._current = self._current, name
            self._add(changed)
            self._current = before  # a macro may be defined between the lines of a function
            return
        if name is not None:
            self._current = name
            self._add(changed)
            if ";" in text:  # a variable or a prototype: what follows does not belong to it
                self._current = None
        elif text.startswith(("/*", "//", " *")):
            self._current = None  # the kernel indents the comments of a function by tabs
        elif text[:1] == "}":
            self._current = None
        else:
            self._add(changed and text.strip() not in _INSIGNIFICANT and text[:1] != "#")

    def _add(self, changed: bool) -> None:
        if changed and self._current is not None and len(self._found) < SYMBOLS_LIMIT:
            self._found[self._current[:NAME_LIMIT]] = None
