"""Shell commands over several short lines that can be pasted back. Pure."""

from __future__ import annotations

import re

from wqlab_comparison.tables import printable, wrapped

_WIDTH = 72
"""Of a line, its indentation left out."""
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")
_JOINTS = frozenset({"&&", "||", "|", ";"})


def shell_lines(command: str, indent: str = "") -> list[str]:
    """The same command: lines end only between words, in a backslash, or behind `&&` and its like, where the shell
    reads on by itself. A word that is too long stays whole, and so does an option `-x` with its value. Text that is no
    shell command (a quote without its end) is wrapped as prose."""
    lines = []
    for statement in command.splitlines():
        if statement.strip() and not statement.lstrip().startswith("#"):
            lines += _statement(printable(statement.strip()))
    return [f"{indent}{line}" for line in lines]


def _statement(text: str) -> list[str]:
    words = _words(text)
    if words is None:
        return wrapped(text, width=_WIDTH)
    lines, current = [], ""
    for word in words:
        joined = f"{current} {word}" if current.strip() else f"{current}{word}"
        if len(joined) > _WIDTH - len(" \\") and current.strip() and word not in _JOINTS:
            lines.append(f"{current} \\")
            current = f"  {word}"
        else:
            current = joined
        if word in _JOINTS - {";"}:
            lines.append(current)
            current = ""
    return [*lines, current] if current else lines


def _words(text: str) -> list[str] | None:
    """None where quotes do not pair."""
    if _WORD.sub("", text).strip():
        return None
    found: list[str] = []
    for match in _WORD.finditer(text):
        if found and re.fullmatch(r"-\w", found[-1]):
            found[-1] += f" {match.group()}"
        else:
            found.append(match.group())
    return found
