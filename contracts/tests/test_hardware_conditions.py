"""Conditions that hardware has unless its device type declares others."""

from __future__ import annotations

import pytest

from wqlab_contracts.hardware_conditions import with_hardware_conditions
from wqlab_contracts.specs import DeviceType
from wqlab_contracts.yamlfile import Document

BOARD = """\
name: board
summary: a board
arch: x86_64
topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
units: [{name: board-1}]
"""
EMULATED = "emulation: {memory_mib: 1024}\n"


def memory_conditions(device_type: DeviceType | None) -> tuple[str | None, bool | None]:
    assert device_type is not None
    return device_type.conditions.transparent_hugepages, device_type.conditions.ksm


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", ("never", False)),
        ("conditions: {transparent_hugepages: always, required: [ksm]}\n", ("always", False)),
        (EMULATED, (None, None)),
    ],
)
def test_a_file_of_the_data_folder_has_them(more: str, expected: tuple[str | None, bool | None]) -> None:
    document = with_hardware_conditions(Document.parse(BOARD + more, "board.yaml"))
    assert memory_conditions(document.validate_as(DeviceType)) == expected


def test_a_stored_device_type_has_only_what_was_stored() -> None:
    stored = Document.parse(BOARD, "board.yaml").plain()
    assert memory_conditions(DeviceType.model_validate(stored)) == (None, None)


def test_a_file_with_mistakes_keeps_them() -> None:
    document = with_hardware_conditions(Document.parse("name: a\nname: b\n", "board.yaml"))
    assert [problem.line for problem in document.problems] == [2]
