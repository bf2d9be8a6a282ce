"""Diffstat of a mailed patch, and the symbols that it changes. Pure.

Only as many lines are counted as the hunk headers announce, so text after the diff (a mail signature begins with `-- `)
is never counted as a change.

Names lose their first folder, as `git am` takes them (-p1): `a/` and `b/`, the prefixes of diff.mnemonicPrefix, and
`linux.orig/` and `linux/` of a plain diff. If the two names of a plain diff then differ (`a/x.c~fix`, `a/x.c`), the new
one counts.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wqlab_contracts.api.series import FileChange
from wqlab_contracts.code_lines import Hunk, Line, lost_arguments
from wqlab_contracts.symbols import SYMBOLS_LIMIT, ChangedSymbols, is_c

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_NO_FILE = "/dev/null"
_NEW_PREFIXES = {
    "a/": ("b/",),
    "b/": ("a/",),
    "c/": ("i/", "w/"),
    "i/": ("c/", "w/"),
    "o/": ("w/",),
    "w/": ("c/", "i/", "o/"),
}
"""Prefix of the old name in a `diff --git` line -> prefixes of the new one, with diff.mnemonicPrefix and -R too."""
_TOP_FOLDERS = frozenset(
    (
        *("Documentation", "LICENSES", "arch", "block", "certs", "crypto", "drivers", "fs", "include", "init"),
        *("io_uring", "ipc", "kernel", "lib", "mm", "net", "rust", "samples", "scripts", "security", "sound"),
        *("tools", "usr", "virt"),
    )
)
"""Folders at the top of the kernel. Names that begin with one have no prefix (`git diff --no-prefix`)."""
_MAX_NAMES_LENGTH = 10_000
"""Characters of two paths of PATH_MAX; longer lines are not names."""


@dataclass
class _File:
    old: str = ""
    new: str = ""
    created: bool = False
    deleted: bool = False
    renamed: bool = False
    copied: bool = False
    binary: bool = False
    insertions: int = 0
    deletions: int = 0
    has_names: bool = False
    """True once the file's `---` line was read; the next one starts another file."""
    hunks: list[tuple[str, list[Line]]] = field(default_factory=list)
    """Heading (what follows the second `@@`) and lines of each hunk."""


def changed_files(body: str) -> list[FileChange]:
    """Return the files that the diffs in a mail's body change, in order, each once."""
    files: list[_File] = []
    old_left = new_left = 0
    previous = ""
    for raw_line in io.StringIO(body):
        line = raw_line.rstrip("\n")
        if old_left > 0 or new_left > 0:
            mark = line[:1]
            if mark == "+":
                files[-1].insertions += 1
                new_left -= 1
            elif mark == "-":
                files[-1].deletions += 1
                old_left -= 1
            elif mark in (" ", ""):  # mail programs strip the blank of an empty context line
                old_left -= 1
                new_left -= 1
            elif mark != "\\":
                old_left = new_left = 0  # the hunk is shorter than its header says
            if mark in ("+", "-", " ", ""):
                files[-1].hunks[-1][1].append((mark or " ", line[1:]))
            previous = ""
            continue
        if line.startswith("diff --git "):
            files.append(_from_git_line(line))
        elif line.startswith("+++ ") and previous.startswith("--- "):
            if not files or files[-1].has_names:
                files.append(_File())
            _set_names(files[-1], previous[4:], line[4:])
        elif files and (hunk := _HUNK.match(line)):
            old_left, new_left = (1 if count is None else int(count) for count in hunk.groups())
            files[-1].hunks.append((line[hunk.end() :], []))
        elif files:
            _read_extended_header(files[-1], line)
        previous = line
    return _merge_by_path(files)


def _from_git_line(line: str) -> _File:
    """Parse `diff --git a/OLD b/NEW`, where each name may be quoted. The first possible split is taken.

    The names are empty without prefixes: then they are those of the lines `---` and `+++`, if there are such.
    """
    text = line.removeprefix("diff --git ")
    old_quoted = text.startswith('"')
    start, end = (3, '" ') if old_quoted else (2, " ")
    prefixes = _NEW_PREFIXES.get(text[start - 2 : start])
    if prefixes is None or len(line) > _MAX_NAMES_LENGTH:
        return _File()
    middle = text.find(end, start)
    while middle >= 0:
        old, after = text[start:middle], middle + len(end)
        if text.startswith(prefixes, after):
            return _File(old=_unquote(old, quoted=old_quoted), new=_unquote(text[after + 2 :], quoted=False))
        if text.startswith('"', after) and text.startswith(prefixes, after + 1) and text.endswith('"', after + 3):
            return _File(old=_unquote(old, quoted=old_quoted), new=_unquote(text[after + 3 : -1], quoted=True))
        middle = text.find(end, middle + 1)
    return _File()


def _set_names(file: _File, old: str, new: str) -> None:
    file.has_names = True
    before, after = _name(old), _name(new)
    if not all(name == _NO_FILE or name.partition("/")[0] in _TOP_FOLDERS for name in (before, after)):
        before, after = _without_first_folder(before), _without_first_folder(after)
    file.created |= before == _NO_FILE
    file.deleted |= after == _NO_FILE
    file.old = after if before == _NO_FILE else before
    file.new = before if after == _NO_FILE else after


def _name(text: str) -> str:
    name = text.split("\t", maxsplit=1)[0].rstrip("\r ")
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        name = _unquote(name[1:-1], quoted=True)
    return name


def _without_first_folder(name: str) -> str:
    """Remove a path's first folder, as `git am` does: `a/kernel/cpu.c` becomes `kernel/cpu.c`. `Makefile` stays."""
    _, slash, rest = name.partition("/")
    return rest.lstrip("/") if slash and name != _NO_FILE else name


def _read_extended_header(file: _File, line: str) -> None:
    """Parse an extended header line of a git diff, or a `Binary files` line, and set the matching flag of `file`."""
    if line.startswith("new file mode "):
        file.created = True
    elif line.startswith("deleted file mode "):
        file.deleted = True
    elif line.startswith(("rename from ", "rename to ")):
        file.renamed = True
    elif line.startswith(("copy from ", "copy to ")):
        file.copied = True
    elif line.startswith(("GIT binary patch", "Binary files ")):
        file.binary = True


def _unquote(name: str, quoted: bool) -> str:
    """Undo git's quoting of a path: C escapes, and octal bytes for anything that is not ASCII."""
    if not quoted:
        return name

    def byte(match: re.Match[bytes]) -> bytes:
        found = match[1]
        return bytes([int(found, 8) & 255]) if len(found) == 3 else _ESCAPED_LETTERS.get(found, found)

    return _ESCAPE.sub(byte, name.encode(errors="replace")).decode(errors="replace")


def _merge_by_path(files: list[_File]) -> list[FileChange]:
    """Return one entry per path; a hand-made diff can contain a file more than once."""
    found: dict[str, FileChange] = {}
    hunks = {id(file): [(heading, Hunk(lines)) for heading, lines in file.hunks] for file in files if _is_code(file)}
    lost = lost_arguments([hunk for of_file in hunks.values() for _, hunk in of_file])
    for file in files:
        path = (file.old if file.deleted else file.new) or file.old
        if not path:
            continue
        symbols, changes_code = _read_hunks(hunks[id(file)], lost) if id(file) in hunks else ([], True)
        change = FileChange(
            path=path,
            old_path=file.old if (file.renamed or file.copied) and file.old != path else None,
            status="copied" if file.copied else "renamed" if file.renamed else _status(file),
            insertions=file.insertions,
            deletions=file.deletions,
            binary=file.binary,
            symbols=symbols if is_c(path) else [],
            changes_code=changes_code,
        )
        before = found.get(path)
        if before is not None:
            change = before.model_copy(
                update={
                    "insertions": before.insertions + change.insertions,
                    "deletions": before.deletions + change.deletions,
                    "binary": before.binary or change.binary,
                    "changes_code": before.changes_code or change.changes_code,
                    "symbols": list(dict.fromkeys([*before.symbols, *change.symbols]))[:SYMBOLS_LIMIT],
                }
            )
        found[path] = change
    return list(found.values())


def _read_hunks(hunks: Sequence[tuple[str, Hunk]], lost: Collection[str]) -> tuple[list[str], bool]:
    """Return the symbols that a file's hunks change, and whether they change code; without hunks, the file itself is
    changed."""
    symbols = ChangedSymbols()
    changes_code = not hunks
    for heading, hunk in hunks:
        significant = hunk.significant_lines(lost)
        changes_code |= any(significant)
        symbols.begin_hunk(heading)
        for (_, text), changed in zip(hunk.lines, significant, strict=True):
            symbols.add_line(text, changed=changed)
    return symbols.names, changes_code


def _is_code(file: _File) -> bool:
    """Return True for a file with the comments of C."""
    path = (file.old if file.deleted else file.new) or file.old
    return is_c(path) or path.endswith(".S")


def _status(file: _File) -> Literal["added", "changed", "deleted"]:
    return "added" if file.created else "deleted" if file.deleted else "changed"
