"""The files that a Chromebook's firmware loads: a FIT image, the kernel's arguments, and U-Boot's script."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import pytest

from wqlab_bench import qemu
from wqlab_rehearsal import faults, machine_faults, prepare, u_boot

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.integration


def output(*words: str) -> str:
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prepared folder of the rehearsal machine."""
    own = tmp_path_factory.mktemp("rehearsal")
    golden = qemu.Golden(own / "kernel", own / "rootfs.cpio", "KEY")
    golden.kernel.write_bytes(gzip.compress(b"kernel" * 1000))
    golden.rootfs.write_bytes(b"image" * 1000)
    settings = prepare.Settings(ROOT, own, own / "state", {"arm64": golden}, "tcg", "local", own / "cache")
    device_type = prepare.write_data(["chromebook"], settings)["chromebook"]
    prepare.write_machine("chromebook", device_type, settings)
    return own


def part(folder: Path, number: int) -> Path:
    """Take one part out of the FIT image, as U-Boot does."""
    image = folder / "chromebook/tftp" / u_boot.IMAGE
    found = folder / f"part{number}"
    output("dumpimage", "-T", "flat_dt", "-p", str(number), "-o", str(found), str(image))
    return found


def test_the_image_has_kernel_tree_and_root_filesystem(folder: Path) -> None:
    kernel, tree, rootfs = (part(folder, number) for number in range(3))
    assert output("lz4", "-d", "-c", str(kernel)) == "kernel" * 1000
    assert output("zstd", "-d", "-c", str(rootfs)) == "image" * 1000
    assert output("fdtget", str(tree), "/cpus/cpu@0", "capacity-dmips-mhz").strip() == "741"
    assert "pl061@" not in output("fdtget", "-l", str(tree), "/"), "with firmware QEMU has no such device"
    assert output("fdtget", str(tree), "/cpus/cpu@7", "capacity-dmips-mhz").strip() == "1024"


def test_the_arguments_are_those_of_the_documentation(folder: Path) -> None:
    text = (folder / "chromebook/tftp" / u_boot.ARGUMENTS).read_text()
    assert text == "console=ttyAMA0,115200 panic=10 retain_initrd wqlab.ssh=KEY\n"


def test_the_documentation_shows_the_same_image() -> None:
    """A maintainer writes golden.its by it."""
    text = (ROOT / "docs/hardware/chromebooks.md").read_text()
    assert u_boot.fit_source() in text
    assert u_boot.IMAGE in text
    assert u_boot.ARGUMENTS in text


def test_the_script_names_the_arguments(folder: Path) -> None:
    """U-Boot's `env import` reads NAME=TEXT, so it writes `bootargs=` right before the file's text in memory."""
    lines = u_boot.script().splitlines()
    written = {int(words[1], 16): int(words[2], 16) for line in lines if (words := line.split())[0] == "mw.b"}
    (load,) = (line for line in lines if u_boot.ARGUMENTS in line)
    at = int(load.split()[1], 16)
    assert bytes(written[place] for place in range(min(written), at)) == b"bootargs="
    assert (folder / "chromebook/tftp/boot.scr.uimg").read_bytes().endswith(u_boot.script().encode())


def test_the_machine_has_a_usb_network_and_a_card_reader(folder: Path) -> None:
    start = (folder / "chromebook/power-on").read_text()
    assert "-bios /usr/lib/u-boot/qemu_arm64/u-boot.bin " in start
    assert start.index("-device qemu-xhci") < start.index("-device usb-net")
    assert "-device usb-net,netdev=net0,mac=00:e0:4c:81:83:01 " in start
    assert start.index("-device sdhci-pci") < start.index("-device sd-card,drive=disk0")
    dhcp = (folder / "chromebook/dnsmasq.conf").read_text()
    assert "dhcp-host=00:e0:4c:81:83:01,chromebook-mt8183-1,192.0.2.11\n" in dhcp


def test_only_the_rehearsal_finds_the_stand_in(folder: Path) -> None:
    command = folder / "bin/dut-control"
    assert os.access(command, os.X_OK)
    assert output(str(command), "--help").startswith("usage: dut-control [-h] [--host HOST] [-p PORT]")


@pytest.mark.parametrize("name", ["disk-renamed", "disk-missing", "boots-disk"])
def test_a_fault_that_it_cannot_have_is_refused(folder: Path, name: str) -> None:
    own = folder / "chromebook"
    faults.write(own, [name])
    try:
        with pytest.raises(faults.FaultError, match=f"this machine cannot have the fault {name}"):
            machine_faults.apply(own)
    finally:
        faults.write(own, [])


def test_a_chromebook_needs_a_golden_system_of_its_own(tmp_path: Path) -> None:
    settings = prepare.Settings(ROOT, tmp_path, tmp_path / "state", {}, "tcg", "local", tmp_path / "cache")
    device_type = prepare.write_data(["chromebook"], settings)["chromebook"]
    with pytest.raises(prepare.RehearsalError, match="needs a golden system for arm64; run `make arm64`"):
        prepare.write_machine("chromebook", device_type, settings)
