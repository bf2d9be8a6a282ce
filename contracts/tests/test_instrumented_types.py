"""Instrumented device types."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_contracts.specs import DeviceType


def described(**changes: Any) -> dict[str, Any]:
    topology = {"sockets": 1, "l3_per_socket": 2, "cores_per_l3": 2, "threads_per_core": 1}
    emulation = {"memory_mib": 512, "clock": "instruction"}
    base = {"name": "x", "summary": "x", "arch": "x86_64", "topology": topology, "emulation": emulation}
    return base | {"units": [{"name": "x-1"}]} | changes


def test_units_have_the_backend_without_saying_so() -> None:
    device_type = DeviceType.model_validate(described())
    assert device_type.instrumented
    assert device_type.emulated
    assert [unit.backend for unit in device_type.units] == ["instrumented"]
    assert "wqlab.ip" not in device_type.kernel_arguments
    assert DeviceType.model_validate(device_type.model_dump()) == device_type


def test_a_modelled_type_is_an_instrumented_one() -> None:
    emulation = {"memory_mib": 512, "clock": "model", "profile": "ryzen-3900x"}
    device_type = DeviceType.model_validate(described(emulation=emulation))
    assert (device_type.modelled, device_type.instrumented, device_type.emulated) == (True, True, True)
    assert not DeviceType.model_validate(described()).modelled


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"units": [{"name": "x-1", "backend": "labgrid"}]}, "has backend labgrid"),
        ({"emulation": {"memory_mib": 512}, "units": [{"name": "x-1", "backend": "instrumented"}]}, "no other type"),
        ({"units": [{"name": "x-1", "scratch": ["/dev/disk/by-id/a"]}]}, "no power switch and no disk"),
        (
            {"topology": {"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 65, "threads_per_core": 1}},
            "at most 64",
        ),
    ],
)
def test_contradictions_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DeviceType.model_validate(described(**changes))
