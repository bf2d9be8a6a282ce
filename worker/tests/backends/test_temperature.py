"""Selection of the CPU's temperature sensors, read by a real shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_worker.backends import temperature

from .sysfs_trees import Device

RYZEN = {
    "hwmon/hwmon0/name": "nvme",
    "hwmon/hwmon0/temp1_input": "62850",
    "hwmon/hwmon1/name": "mlx5",
    "hwmon/hwmon1/temp1_input": "71000",
    "hwmon/hwmon2/name": "k10temp",
    "hwmon/hwmon2/temp1_input": "47875",
    "hwmon/hwmon2/temp3_input": "39250",
    "thermal/thermal_zone0/type": "acpitz",
    "thermal/thermal_zone0/temp": "75000",
}
XEON = {
    "thermal/thermal_zone0/type": "x86_pkg_temp",
    "thermal/thermal_zone0/temp": "52000",
    "thermal/thermal_zone1/type": "x86_pkg_temp",
    "thermal/thermal_zone1/temp": "54000",
    "hwmon/hwmon3/name": "i350bb",
    "hwmon/hwmon3/temp1_input": "68000",
}
SC7180 = {
    "thermal/thermal_zone0/type": "aoss0-thermal",
    "thermal/thermal_zone0/temp": "58100",
    "thermal/thermal_zone1/type": "cpu0-thermal",
    "thermal/thermal_zone1/temp": "51200",
    "thermal/thermal_zone9/type": "cpu8-thermal",
    "thermal/thermal_zone9/temp": "53400",
}
RK3588 = {
    "thermal/thermal_zone0/type": "package-thermal",
    "thermal/thermal_zone0/temp": "45300",
    "thermal/thermal_zone1/type": "bigcore0-thermal",
    "thermal/thermal_zone1/temp": "46200",
    "thermal/thermal_zone5/type": "gpu-thermal",
    "thermal/thermal_zone5/temp": "61000",
    "hwmon/hwmon0/name": "nvme",
    "hwmon/hwmon0/temp1_input": "70850",
}
# The sensor of the whole SoC is cooler than that of the cores.
LS1088A = {
    "thermal/thermal_zone0/type": "core-cluster",
    "thermal/thermal_zone0/temp": "78000",
    "thermal/thermal_zone1/type": "soc",
    "thermal/thermal_zone1/temp": "54000",
}
UNNAMED = {"hwmon/hwmon0/name": "it8686", "hwmon/hwmon0/temp1_input": "41000", "hwmon/hwmon0/temp2_input": "43000"}
UNCONNECTED = {"hwmon/hwmon0/name": "k10temp", "hwmon/hwmon0/temp1_input": "-273150"}
# The driver sometimes returns an error or an empty text.
SILENT = {"hwmon/hwmon0/name": "coretemp", "hwmon/hwmon0/temp1_input": "", "hwmon/hwmon0/temp2_input": "44000"}


TREES: list[tuple[dict[str, str], float | None]] = [
    (RYZEN, 47.875),
    (XEON, 54.0),
    (SC7180, 53.4),
    (RK3588, 46.2),
    (LS1088A, 78.0),
    (UNNAMED, 43.0),
    (UNCONNECTED, None),
    # A disk's sensor must not replace a missing CPU sensor: a hot CPU would pass as cool.
    (UNCONNECTED | {"hwmon/hwmon1/name": "nvme", "hwmon/hwmon1/temp1_input": "38000"}, None),
    (SILENT, 44.0),
    ({}, None),
]
"""Sensors below /sys/class, and the temperature of the hottest CPU in degrees Celsius."""


@pytest.mark.parametrize(("sensors", "degrees"), TREES)
def test_the_cpus_hottest_sensor_counts(tmp_path: Path, sensors: dict[str, str], degrees: float | None) -> None:
    device = Device(tmp_path, {f"sys/class/{name}": text for name, text in sensors.items()})
    answer = device.run(temperature.read_command())
    assert temperature.hottest_celsius(temperature.parse_files(answer)) == degrees
