"""Check the configuration fragments of kernel recipes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .yamlfile import Problem

_OPTION = re.compile(r"(?:(CONFIG_\w+)=(?:[ymn]|-?\d+|0x[0-9a-fA-F]+|\"[^\"]*\")|# (CONFIG_\w+) is not set)\Z")


def fragment_problems(file: str, text: str) -> Iterator[Problem]:
    """Yield the problems of a configuration fragment.

    Each line must be blank, a comment after `#`, or one option; no option may be set twice.
    """
    first_line: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _OPTION.match(line)
        if match is None:
            if line.strip() and (not line.startswith("#") or line.startswith(("#CONFIG_", "# CONFIG_"))):
                yield Problem(file, number, "", f"not CONFIG_X=value or '# CONFIG_X is not set': {line!r}")
            continue
        option = match[1] or match[2]
        if option in first_line:
            yield Problem(file, number, option, f"set twice; first on line {first_line[option]}")
        first_line.setdefault(option, number)
