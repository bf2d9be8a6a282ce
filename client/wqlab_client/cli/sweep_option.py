"""Parse --sweep, --sweep-base and --sweep-costs of `wqlab submit`."""

from __future__ import annotations

from typing import cast

from wqlab_contracts.api.sweeps import SweepBase, SweepRequest
from wqlab_contracts.specs import DIMENSIONS, Dimension

from ..errors import UsageError

_SWEEP = "write for example --sweep l3=1,2,4,8"
_BASE = "write for example --sweep-base cpus=16,nodes=1"


def parse_sweep(sweep: str | None, base: str | None, costs: str | None = None) -> SweepRequest | None:
    """Parse `l3=1,2,4,8` and `cpus=16,nodes=1`; None without --sweep. `costs` is the name of a cost profile.

    Raises UsageError for malformed options and for topologies that no instrumented device can have.
    """
    if sweep is None:
        for option, given in (("--sweep-base", base), ("--sweep-costs", costs)):
            if given is not None:
                raise UsageError(f"{option} needs --sweep", _SWEEP)
        return None
    vary, values = _assignment("--sweep", sweep, _SWEEP)
    numbers = [_number("--sweep", sweep, value, _SWEEP) for value in values.split(",")]
    request = SweepRequest(vary=vary, values=numbers, base=_parse_base(base), costs=costs)
    if mistake := next(request.mistakes(), None):
        raise UsageError(f"--sweep {sweep}: {mistake[1]}", "the dimensions that stay are set with --sweep-base")
    return request


def _parse_base(base: str | None) -> SweepBase:
    found: dict[str, int] = {}
    for part in base.split(",") if base is not None else ():
        name, value = _assignment("--sweep-base", part, _BASE)
        if name in found:
            raise UsageError(f"--sweep-base {base!r} has {name} twice", _BASE)
        found[name] = _number("--sweep-base", part, value, _BASE)
    return SweepBase(**found)


def _assignment(option: str, text: str, example: str) -> tuple[Dimension, str]:
    name, equals, value = text.partition("=")
    if not equals or name.strip() not in DIMENSIONS:
        raise UsageError(f"{option}: {text!r} is not DIMENSION=NUMBER; dimensions are {', '.join(DIMENSIONS)}", example)
    return cast("Dimension", name.strip()), value


def _number(option: str, text: str, value: str, example: str) -> int:
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise UsageError(f"{option}: {value!r} in {text!r} is not a number", example)
    return int(digits)
