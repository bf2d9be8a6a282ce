"""Wrapping of shell commands into short lines that can be pasted into a shell. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wqlab_contracts.api.report import TargetReport

from ..plain_text import printable, wrapped

WIDTH = 72
"""Maximum length of a line, without its indentation."""
COMMAND_LINES = 6
"""Most lines of the workload's command."""
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")
_OPERATORS = frozenset({"&&", "||", "|", ";"})


def shell_lines(command: str, indent: str = "", width: int = WIDTH) -> list[str]:
    """Wrap a command to lines of at most `width` columns, without their indentation, and without changing its meaning.

    Lines are broken only between words, with a backslash or after an operator such as `&&`, after which the shell
    continues by itself. Words that are too long stay whole, and an option `-x` stays with its value. Text that is not a
    shell command (unpaired quotes) is wrapped as prose.
    """
    lines = []
    for statement in command.splitlines():
        if statement.strip() and not statement.lstrip().startswith("#"):
            lines += _statement(printable(statement.strip()), width)
    return [f"{indent}{line}" for line in lines]


def workload(targets: Sequence[TargetReport], indent: str = "", width: int = WIDTH) -> list[str]:
    """Return the first command of the first target; nothing if it takes more than COMMAND_LINES."""
    environment = targets[0].environment if targets else None
    for command in environment.commands.values() if environment else ():
        found = shell_lines(command, indent, width)
        return found if len(found) <= COMMAND_LINES else []
    return []


def _statement(text: str, width: int) -> list[str]:
    words = _words(text)
    if words is None:
        return wrapped(text, width=width)
    lines, current = [], ""
    for word in words:
        joined = f"{current} {word}" if current.strip() else f"{current}{word}"
        if len(joined) > width - len(" \\") and current.strip() and word not in _OPERATORS:
            lines.append(f"{current} \\")
            current = f"  {word}"
        else:
            current = joined
        if word in _OPERATORS - {";"}:
            lines.append(current)
            current = ""
    return [*lines, current] if current else lines


def _words(text: str) -> list[str] | None:
    """Split a command into words; None if quotes are unpaired."""
    if _WORD.sub("", text).strip():
        return None
    found: list[str] = []
    for match in _WORD.finditer(text):
        if found and re.fullmatch(r"-\w", found[-1]):
            found[-1] += f" {match.group()}"
        else:
            found.append(match.group())
    return found
