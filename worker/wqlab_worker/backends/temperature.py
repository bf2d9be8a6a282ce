"""How warm a board's CPU is."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ZONE, _CHIP = "/sys/class/thermal/thermal_zone[0-9]*", "/sys/class/hwmon/hwmon[0-9]*"
FILES = (f"{_ZONE}/type", f"{_ZONE}/temp", f"{_CHIP}/name", f"{_CHIP}/temp[0-9]*_input")
_NAMES = ("type", "name")
_OF_A_CPU = re.compile(r"cpu|coretemp|k10temp|zenpower|x86_pkg_temp|soc", re.IGNORECASE)
"""In what drivers and device trees call a sensor: `cpu0-thermal`, `TCPU`."""
_PLAUSIBLE_C = (-20.0, 150.0)
"""A sensor that nothing is connected to reports something else."""


def command(root: str = "") -> str:
    """Prints `PATH:CONTENT` for each of `FILES`."""
    return f"grep -Hs '' {' '.join(root + pattern for pattern in FILES)} || :"


def read(answer: str) -> dict[str, str]:
    """Path -> content, from what `command` printed."""
    return {name: value for name, found, value in (line.partition(":") for line in answer.splitlines()) if found}


def hottest(files: Mapping[str, str]) -> float | None:
    """Degrees Celsius of the CPU's hottest sensor; of all sensors' where none is named as a CPU's, for a network card
    or a disk may always be hotter. None when the board has no sensor that makes sense."""
    every: list[float] = []
    of_the_cpu: list[float] = []
    for path, value in files.items():
        folder, _, name = path.rpartition("/")
        if name in _NAMES or not value.removeprefix("-").isdecimal():
            continue
        if _PLAUSIBLE_C[0] <= (degrees := int(value) / 1000) <= _PLAUSIBLE_C[1]:
            every.append(degrees)
            if any(_OF_A_CPU.search(files.get(f"{folder}/{each}", "")) for each in _NAMES):
                of_the_cpu.append(degrees)
    return max(of_the_cpu or every, default=None)
