"""Units whose console is netconsole."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_contracts.specs import DeviceType, console_arguments

TARGET = "+6665@192.0.2.11/eth0,6666@192.0.2.1/52:54:00:00:00:01"


def device_type(**unit: Any) -> DeviceType:
    return DeviceType.model_validate(
        {
            "name": "server",
            "summary": "a server",
            "arch": "x86_64",
            "topology": {"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 2, "threads_per_core": 1},
            "units": [{"name": "server-1", **unit}],
        }
    )


@pytest.mark.parametrize("target", [TARGET, "+@192.0.2.11/enp1s0f0,@192.0.2.1/"])
def test_the_kernel_sends_its_log_instead_of_printing_it(target: str) -> None:
    kind = device_type(netconsole=target)
    words = console_arguments(kind.boot, kind.units[0].netconsole).split()
    assert f"netconsole={target}" in words
    assert [word for word in words if word.startswith("console=")] == ["console=ttynull"]


def test_other_units_have_a_serial_console() -> None:
    kind = device_type()
    assert console_arguments(kind.boot, kind.units[0].netconsole) == "console=ttyS0,115200"


@pytest.mark.parametrize(
    "target",
    [
        TARGET.removeprefix("+"),  # without numbers, a lost message cannot be noticed
        "+6665@/eth0,6666@192.0.2.1/",  # the kernel sends before it has an address
        "+6665@192.0.2.11/eth0,6666@192.0.2.1",
        f"{TARGET} init=/bin/sh",
    ],
)
def test_other_texts_are_refused(target: str) -> None:
    with pytest.raises(ValidationError, match="netconsole"):
        device_type(netconsole=target)


def test_only_labgrid_reads_it() -> None:
    with pytest.raises(ValidationError, match="`netconsole:` needs labgrid"):
        DeviceType.model_validate(
            device_type(netconsole=TARGET).model_dump()
            | {
                "lava": {"device_type": "server", "boot": "uboot"},
                "units": [{"name": "server-1", "backend": "lava", "netconsole": TARGET}],
            }
        )


def test_a_crash_kernel_takes_memory_of_variants_on_labgrid_only() -> None:
    with_memory = device_type().model_dump() | {"boot": {"crash_kernel_mib": 256}}
    assert DeviceType.model_validate(with_memory).variant_arguments == "crashkernel=256M"
    assert "crashkernel" not in DeviceType.model_validate(with_memory).kernel_arguments, "the golden system has none"
    assert "crashkernel" not in device_type().variant_arguments
    lava = {"lava": {"device_type": "server", "boot": "uboot"}, "units": [{"name": "server-1", "backend": "lava"}]}
    with pytest.raises(ValidationError, match="`crash_kernel_mib:` needs labgrid"):
        DeviceType.model_validate(with_memory | lava)
