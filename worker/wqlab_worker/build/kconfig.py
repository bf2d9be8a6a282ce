"""Compare kernel configuration fragments with a finished .config."""

from __future__ import annotations

from collections.abc import Iterable

from wqlab_contracts.linear_patterns import LinearPattern

_LINE = LinearPattern(r"CONFIG_(\w+)=(.*)|# CONFIG_(\w+) is not set")

_UNSET = {"n", '""'}
"""Values of an option that is off, or whose dependency is off: the line of a string is left out then."""


def parse_options(text: str) -> dict[str, str]:
    """Return option (without CONFIG_) -> value; an option that is not set has `n`. Later lines win."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            found[match[1] or match[3]] = match[2] if match[1] else "n"
    return found


def unmet_options(fragments: Iterable[str], config: str) -> list[str]:
    """Return the options in which `config` differs from the fragments, merged in order, as sorted `CONFIG_X=y (is n)`.

    Kconfig changes an option silently if the tree lacks it, if a dependency is off, or if another option selects it.
    """
    requested: dict[str, str] = {}
    for fragment in fragments:
        requested.update(parse_options(fragment))
    actual = parse_options(config)
    return sorted(
        f"CONFIG_{name}={value} (is {actual.get(name, 'n')})"
        for name, value in requested.items()
        if actual.get(name, "n") != value and not {actual.get(name, "n"), value} <= _UNSET
    )
