"""Read the temperature of a device's CPU from sysfs."""

from __future__ import annotations

from collections.abc import Mapping

from wqlab_contracts.linear_patterns import LinearPattern

_ZONE, _CHIP = "/sys/class/thermal/thermal_zone[0-9]*", "/sys/class/hwmon/hwmon[0-9]*"
FILES = (f"{_ZONE}/type", f"{_ZONE}/temp", f"{_CHIP}/name", f"{_CHIP}/temp[0-9]*_input")
_NAMES = ("/type", "/name")
CPU_SENSOR_NAMES = "cpu|core|cluster|k10temp|zenpower|pkg|package|soc"
"""Names of CPU sensors in drivers and device trees: `coretemp`, `cpu0-thermal`, `bigcore1-thermal`, `TCPU`."""
_CPU_SENSOR = LinearPattern(f"(?i){CPU_SENSOR_NAMES}")
_PLAUSIBLE_C = (-20.0, 150.0)
"""Readings outside this range (degrees Celsius) come from a sensor that is not connected."""


def read_command() -> str:
    """Return a command that prints `PATH:CONTENT` for each of `FILES`."""
    return f"grep -Hs '' {' '.join(FILES)} || :"


def parse_files(answer: str) -> dict[str, str]:
    """Return path -> content from the output of `read_command`."""
    return {name: value for name, found, value in (line.partition(":") for line in answer.splitlines()) if found}


def hottest_celsius(files: Mapping[str, str]) -> float | None:
    """Return the temperature of the CPU's hottest sensor in degrees Celsius, or None without a plausible reading.

    Other sensors count only if none is named as a CPU's, since a network card or a disk may always be hotter.
    """
    sensors = {path.rpartition("/")[0]: text for path, text in files.items() if path.endswith(_NAMES)}
    cpu_folders = {folder for folder, text in sensors.items() if _CPU_SENSOR.search(text)}
    degrees = [
        int(text) / 1000
        for path, text in files.items()
        if not path.endswith(_NAMES)
        and (not cpu_folders or path.rpartition("/")[0] in cpu_folders)
        and text.removeprefix("-").isdecimal()
    ]
    return max((each for each in degrees if _PLAUSIBLE_C[0] <= each <= _PLAUSIBLE_C[1]), default=None)
