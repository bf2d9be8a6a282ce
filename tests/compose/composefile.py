"""Load docker-compose.yml with its variables replaced, as a container engine does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yml"
_VARIABLE = re.compile(r"\$(?:\$|\{(\w+)(?:(:-|:\?)([^}]*))?\})")


class MissingVariable(Exception):
    """A required variable is not set; the text is the file's message."""


def load(variables: Mapping[str, str]) -> dict[str, Any]:
    """Load the file with its variables replaced. Raises MissingVariable."""
    loaded: dict[str, Any] = _with_variables(yaml.safe_load(FILE.read_text()), variables)
    return loaded


def _with_variables(part: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(part, dict):
        return {key: _with_variables(value, variables) for key, value in part.items()}
    if isinstance(part, list):
        return [_with_variables(value, variables) for value in part]
    if isinstance(part, str):
        return _VARIABLE.sub(lambda found: _value(found, variables), part)
    return part


def _value(found: re.Match[str], variables: Mapping[str, str]) -> str:
    name, operator, operand = found.groups()
    if name is None:
        return "$"
    if value := variables.get(name):
        return value
    if operator == ":-":
        return str(operand)
    raise MissingVariable(f"{name} {operand or 'is not set'}")
