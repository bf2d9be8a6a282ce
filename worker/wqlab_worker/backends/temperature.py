"""How warm a device's CPU is."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ZONE, _CHIP = "/sys/class/thermal/thermal_zone[0-9]*", "/sys/class/hwmon/hwmon[0-9]*"
FILES = (f"{_ZONE}/type", f"{_ZONE}/temp", f"{_CHIP}/name", f"{_CHIP}/temp[0-9]*_input")
_NAMES = ("/type", "/name")
_OF_A_CPU = re.compile(r"cpu|core|cluster|k10temp|zenpower|pkg|package|soc", re.IGNORECASE)
"""In what drivers and device trees call a sensor: `coretemp`, `cpu0-thermal`, `bigcore1-thermal`, `TCPU`."""
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
    or a disk may always be hotter. None when none of them says anything that makes sense."""
    sensors = {path.rpartition("/")[0]: text for path, text in files.items() if path.endswith(_NAMES)}
    of_the_cpu = {folder for folder, text in sensors.items() if _OF_A_CPU.search(text)}
    degrees = [
        int(text) / 1000
        for path, text in files.items()
        if not path.endswith(_NAMES)
        and (not of_the_cpu or path.rpartition("/")[0] in of_the_cpu)
        and text.removeprefix("-").isdecimal()
    ]
    return max((each for each in degrees if _PLAUSIBLE_C[0] <= each <= _PLAUSIBLE_C[1]), default=None)
