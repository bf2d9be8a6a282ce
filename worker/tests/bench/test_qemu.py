"""QEMU command lines of emulated devices."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from wqlab_bench import qemu
from wqlab_bench.device_types import load_device_types

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = qemu.Golden(Path("/golden/kernel"), Path("/golden/rootfs"), "blob")


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_command_line_boots_golden_system_without_network_access(tmp_path: Path) -> None:
    tiny = load_device_types(ROOT)["tiny"]
    command = qemu.command(tiny, GOLDEN, 2222, "tcg", qemu.Firmware(tmp_path))
    assert option(command, "-kernel") == "/golden/kernel"
    assert option(command, "-initrd") == "/golden/rootfs"
    assert option(command, "-accel") == "tcg,thread=single,tb-size=32"
    assert "restrict=on,hostfwd=tcp:127.0.0.1:2222-" in option(command, "-netdev")
    arguments = option(command, "-append").split()
    assert {"retain_initrd", "wqlab.ssh=blob", "panic=-1"} <= set(arguments)


def test_guest_is_confined(tmp_path: Path) -> None:
    command = qemu.command(load_device_types(ROOT)["tiny"], GOLDEN, 2222, "tcg", qemu.Firmware(tmp_path))
    assert option(command, "-sandbox").startswith("on,")
    assert {"--clearenv", "--unshare-pid", "--unshare-user", "--as-pid-1"} <= set(command)
    binds = [word for previous, word in itertools.pairwise(command) if previous == "--ro-bind"]
    assert binds == ["/usr", "/golden/kernel", "/golden/rootfs"]


def test_only_x86_64_uses_kvm() -> None:
    assert qemu._accelerator_for("kvm", "x86_64") == "kvm"
    assert qemu._accelerator_for("kvm", "arm64") == "tcg"


def test_device_type_without_emulation_is_unsupported(tmp_path: Path) -> None:
    real = load_device_types(ROOT)["tiny"].model_copy(update={"emulation": None})
    with pytest.raises(qemu.UnsupportedTypeError, match="tiny is not an emulated device type"):
        qemu.command(real, GOLDEN, 2222, "tcg", qemu.Firmware(tmp_path))
