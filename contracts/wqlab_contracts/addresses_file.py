"""Addresses of a lab's machines: `device-types/addresses.env` gives values to `${NAME:-default}` in device types.

The file has one `NAME=value` a line, as a shell and systemd's EnvironmentFile read it, so that labgrid's exporter gets
the same addresses from its environment. A machine in another place needs another file, and the same device type.
Values are put into YAML and into commands as they are, so they have no character that means something there or that
these readers take differently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from .yamlfile import Document, Problem

FILE = "addresses.env"
_PLAIN = r"A-Za-z0-9_.,:/@%+=\[\]-"
_QUOTED = rf"[ ~{_PLAIN}]*"  # a shell replaces ~ outside quotes
_ASSIGNMENT = re.compile(rf"([A-Z][A-Z0-9_]*)=(?:'({_QUOTED})'|\"({_QUOTED})\"|([{_PLAIN}]*))")
_ADVICE = (
    "not NAME=value: a name has capital letters, digits and _; a value has letters, digits and _.,:/@%+=[]-, and in"
    " quotes also blanks and ~"
)
_USE = re.compile(r"\$\{([^}:\n]*)(?::-([^}\n]*))?\}")
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def read_addresses(folder: Path, file: str = f"device-types/{FILE}") -> tuple[dict[str, str], list[Problem]]:
    """Return the values in `folder`/addresses.env by name, and its problems; both are empty without such a file.

    `file` is the name of the file in problems.
    """
    try:
        text = (
            (folder / FILE).read_bytes().decode()
        )  # with the ends of its lines, of which \r is part of a shell's value
    except FileNotFoundError:
        return {}, []
    except (OSError, UnicodeDecodeError) as error:
        return {}, [Problem(file, 0, "", f"cannot be read: {error}")]
    values: dict[str, str] = {}
    problems = []
    for number, line in enumerate((each.strip(" \t") for each in text.split("\n")), 1):
        if not line or line.startswith("#"):
            continue
        found = _ASSIGNMENT.fullmatch(line)
        if found is None:
            problems.append(Problem(file, number, "", _ADVICE))
            continue
        name, *forms = found.groups()
        if name in values:
            problems.append(Problem(file, number, name, "is set twice"))
        values[name] = next((form for form in forms if form is not None), "")
    return values, problems


def read_device_type(path: Path, file: str, addresses: Mapping[str, str]) -> Document:
    """Read a device type with each `${NAME:-default}` replaced; bad uses are among the document's problems.

    A shell's own variable in a command is written `$name`, without braces. Nothing is replaced in lines that are
    comments.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return Document.read(path, file)
    problems: list[Problem] = []

    def value(use: re.Match[str]) -> str:
        if text[text.rfind("\n", 0, use.start()) + 1 : use.start()].lstrip().startswith("#"):
            return use.group()
        name, default = use.groups()
        if not _NAME.fullmatch(name):
            advice = "a shell's own variable is written without braces"
            problems.append(_problem(file, text, use, f"{use.group()} names no address: {advice}"))
        elif name in addresses:
            return addresses[name]
        elif default is None:
            advice = f"set it in {FILE}, or write a default: ${{{name}:-value}}"
            problems.append(_problem(file, text, use, f"{use.group()} has no value: {advice}"))
        return str(default or "")

    replaced = _USE.sub(value, text)
    return Document(file, None, problems) if problems else Document.parse(replaced, file)


def _problem(file: str, text: str, use: re.Match[str], message: str) -> Problem:
    return Problem(file, text.count("\n", 0, use.start()) + 1, "", message)
