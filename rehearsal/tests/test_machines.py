"""The files of docs/hardware, with the addresses of rehearsal machines."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_bench import qemu
from wqlab_rehearsal import prepare, qemu_command, system_disk
from wqlab_rehearsal.machines import MACHINES, Card

ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(tmp_path: Path) -> prepare.Settings:
    golden = qemu.Golden(tmp_path / "kernel", tmp_path / "rootfs.cpio", "KEY")
    golden.kernel.write_bytes(b"kernel")
    golden.rootfs.write_bytes(b"image")
    return prepare.Settings(
        ROOT,
        tmp_path / "rehearsal",
        tmp_path / "state",
        {"x86_64": golden, "arm64": golden},
        "tcg",
        "local",
        tmp_path / "cache",
    )


@pytest.fixture
def prepared(settings: prepare.Settings) -> prepare.Settings:
    settings.folder.mkdir()
    prepare.write_data(list(MACHINES), settings)
    return settings


@pytest.mark.parametrize("name", MACHINES)
def test_device_types_and_exporters_are_those_of_the_documentation(prepared: prepare.Settings, name: str) -> None:
    machine = MACHINES[name]
    for folder, file, copied in (
        ("device-types", f"{machine.device_type}.yaml", prepared.data / "device-types"),
        ("labgrid", machine.exporter, prepared.exporters),
    ):
        assert (copied / file).read_text() == (ROOT / "docs/hardware" / folder / file).read_text()


@pytest.mark.parametrize("name", MACHINES)
def test_a_rehearsal_machine_is_no_hardware_but_gets_its_kernels(settings: prepare.Settings, name: str) -> None:
    settings.folder.mkdir()
    device_type = prepare.write_data([name], settings)[name]
    assert device_type.emulated
    assert not device_type.on_bench
    assert device_type.units[0].lab == "local"
    assert "wqlab.ip" not in device_type.kernel_arguments


@pytest.mark.parametrize("name", MACHINES)
def test_the_ports_are_kept(settings: prepare.Settings, name: str) -> None:
    settings.folder.mkdir()
    first = prepare.write_data([name], settings)[name]
    addresses = (settings.data / "device-types/addresses.env").read_text()
    prepare.write_data([name], replace(settings, lab="local"))
    assert (settings.data / "device-types/addresses.env").read_text() == addresses
    assert first.units[0].scratch == [f"/dev/disk/by-id/{MACHINES[name].disks[0].link}"]


def test_a_machine_without_serial_port_starts_from_its_disk(settings: prepare.Settings) -> None:
    """The golden system is in the disk's file system, and its log goes where the variants' does."""
    settings.folder.mkdir()
    device_type = prepare.write_data(["ssh-only"], settings)["ssh-only"]
    prepare.write_machine("ssh-only", device_type, settings)
    folder = settings.folder / "ssh-only"
    disk = f"{folder}/guest/{MACHINES['ssh-only'].system_disk.serial}.raw@@1M"
    environment = {**os.environ, "MTOOLS_SKIP_CHECK": "1"}

    def read(name: str) -> bytes:
        return subprocess.run(
            ["mtype", "-i", disk, f"::{name}"], check=True, capture_output=True, env=environment
        ).stdout

    assert read("/wqlab/kernel") == b"kernel"
    assert read("/wqlab/rootfs.cpio") == b"image"
    menu = read("/grub/grub.cfg").decode()
    assert f"netconsole={device_type.units[0].netconsole}" in menu
    assert "console=ttyS" not in menu
    assert read("/grub/grubenv").startswith(b"# GRUB Environment Block")
    start = (folder / "power-on").read_text()
    assert "-serial" not in start
    assert start.count("bootindex=0") == 1


def test_a_system_of_its_own_is_the_default_and_knows_the_lab(
    settings: prepare.Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty file system replaces the Debian, whose installation takes minutes. A nightly test boots the real one."""
    system = tmp_path / "system.ext4"
    tree = tmp_path / "tree"
    (tree / "root/.ssh").mkdir(parents=True)
    (tree / "boot/grub").mkdir(parents=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, system, "16M"], check=True)
    monkeypatch.setattr(prepare.debian_system, "build", lambda cache: system)
    settings.folder.mkdir()
    device_type = prepare.write_data(["dual-boot"], settings)["dual-boot"]
    prepare.write_machine("dual-boot", device_type, settings)
    disk = settings.folder / "dual-boot/guest" / f"{MACHINES['dual-boot'].system_disk.serial}.raw"
    start = system_disk.FIRST_MIB + system_disk.ESP_MIB

    def debugfs(request: str) -> str:
        place = f"{disk}?offset={start << 20}"
        return subprocess.run(
            ["debugfs", "-R", request, place], check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ).stdout

    assert debugfs("cat /root/.ssh/authorized_keys") == "ssh-ed25519 KEY lab\n"
    owner = debugfs("stat /root/.ssh/authorized_keys")
    assert "Mode:  0600" in owner and "User:     0   Group:     0" in owner, "or sshd refuses the file"
    menu = debugfs("cat /boot/grub/grub.cfg")
    assert 'set default="debian"\n' in menu and "--id debian {" in menu and "--id wqlab {" in menu
    assert f"netconsole={device_type.units[0].netconsole}" in menu
    own = device_type.units[0].own_system
    assert own is not None
    assert own.choose_golden == f"grub-reboot {system_disk.ENTRY}"


def test_the_menu_chooses_as_debians_does() -> None:
    """`grub-reboot` works with the lines that `update-grub` writes."""
    given = {"GRUB_DEFAULT": "debian", "GRUB_TERMINAL_OUTPUT": "console", "pkgdatadir": "/usr/share/grub"}
    header = subprocess.run(
        ["sh", "/etc/grub.d/00_header"], check=True, capture_output=True, text=True, env={**os.environ, **given}
    ).stdout
    choice, end, _ = header.partition('set default="debian"\nfi\n')
    assert end
    assert system_disk.menu("quiet", "debian").startswith(choice + end)


@pytest.mark.parametrize(("model", "chosen"), [("no-such-card", "e1000"), ("e1000e", "e1000e")])
def test_card_that_this_qemu_lacks_is_replaced(settings: prepare.Settings, model: str, chosen: str) -> None:
    settings.folder.mkdir()
    device_type = prepare.write_data(["ryzen"], settings)["ryzen"]
    machine = replace(MACHINES["ryzen"], cards=(Card(model, "52:54:00:39:00:01", instead="e1000"),))
    command = qemu_command.command(machine, device_type, settings.folder, "tcg", [])
    assert f"{chosen},netdev=net0,mac=52:54:00:39:00:01,bootindex=0" in command


def test_an_unknown_machine_is_refused(settings: prepare.Settings) -> None:
    settings.folder.mkdir()
    with pytest.raises(prepare.RehearsalError, match="no rehearsal machine 'toaster'; there are: xeon, ryzen, "):
        prepare.write_data(["toaster"], settings)


def test_a_machine_starts_without_the_environment_of_its_bmc(tmp_path: Path) -> None:
    start = tmp_path / "power-on"
    qemu_command.write_start(start, ["env"], 0)
    marks = {"WQLAB_STATE": "/var/my lab", "WQLAB_DATA_DIR": "/data"}
    environment = {**os.environ, **marks, "WQLAB_WORKER_TOKEN": "secret", "WQLAB_BROKER_URL": "redis://:secret@host"}
    seen = subprocess.run([start], env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout
    assert dict(line.split("=", 1) for line in seen.splitlines()) == {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        **marks,
    }
