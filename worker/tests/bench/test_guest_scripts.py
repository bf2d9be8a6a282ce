"""The scripts of the image, run on copies of the /sys of other devices."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from wqlab_bench import cpio, rootfs
from wqlab_bench.device_types import load_device_types
from wqlab_worker.backends import crash_kernel

GUEST = Path(rootfs.__file__).parent / "guest"
ROOT = Path(__file__).resolve().parents[3]


def write(folder: Path, **values: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (folder / name).write_bytes(value if isinstance(value, bytes) else f"{value}\n".encode())
    return folder


class Disks:
    """Block devices of a device, and the links that disks.sh makes for them."""

    def __init__(self, folder: Path) -> None:
        self._sys, self._dev = folder / "sys", folder / "dev"
        self._dev.mkdir()

    def add(self, name: str, /, *parts: str, disk: dict[str, str] | None = None, **device: str | bytes) -> None:
        folder = write(self._sys / "class/block" / name, **(disk or {}))
        if device:
            write(folder / "device", **device)
        for number, part in enumerate(parts, start=1):
            write(folder / part, partition=str(number))
            write(self._sys / "class/block" / part, partition=str(number))
        for node in (name, *parts):
            (self._dev / node).touch()

    def links(self) -> dict[str, str]:
        self.output = run("disks.sh", SYS=self._sys, DEV=self._dev)
        folder = self._dev / "disk/by-id"
        return {link.name: str(link.readlink()) for link in folder.iterdir()} if folder.exists() else {}


def run(script: str, **environment: object) -> str:
    variables = {"PATH": os.environ["PATH"], **{name: str(value) for name, value in environment.items()}}
    return subprocess.run(["sh", str(GUEST / script)], env=variables, capture_output=True, text=True, check=True).stdout


def test_disks_get_the_names_of_udev(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    disks.add(
        "nvme0n1", "nvme0n1p1", "nvme0n1p2", disk={"nsid": "1", "wwid": "eui.0025385b9150b2a1"},
        model="Samsung SSD 970 EVO  1TB             ", serial="S467NX0K7\\012/3   ",
    )  # fmt: skip
    naa = b"\x01\x03\x00\x08\x50\x02\x53\x8e\x40\x12\x34\x56"
    serial, model = b"S3Z8NB0K123456A     ", b"Samsung SSD 860 EVO 500GB               "
    page = b"\x00\x83\x00\x68\x02\x00\x00\x14" + serial + b"\x02\x01\x00\x44ATA     " + model + serial + naa
    disks.add("sda", "sda1", vpd_pg83=page, wwid="naa.5002538e40123456")
    disks.add("mmcblk0", "mmcblk0p1", name="DA4064", serial="0x1a2b3c4d")
    disks.add("mmcblk0boot0", name="DA4064", serial="0x1a2b3c4d")
    disks.add("nullb0")
    disks.add("loop0")
    nvme, sata = "nvme-Samsung_SSD_970_EVO_1TB_S467NX0K7_012_3", "ata-Samsung_SSD_860_EVO_500GB_S3Z8NB0K123456A"
    wholes = {
        nvme: "nvme0n1", f"{nvme}_1": "nvme0n1", "nvme-eui.0025385b9150b2a1": "nvme0n1",
        sata: "sda", "wwn-0x5002538e40123456": "sda", "mmc-DA4064_0x1a2b3c4d": "mmcblk0",
    }  # fmt: skip
    expected = {name: f"../../{disk}" for name, disk in wholes.items()}
    for name, disk in wholes.items():
        expected[f"{name}-part1"] = f"../../{disk}{'' if disk == 'sda' else 'p'}1"
        if disk == "nvme0n1":
            expected[f"{name}-part2"] = "../../nvme0n1p2"
    assert disks.links() == expected
    assert disks.links() == expected, "a second run gives the same links"
    assert disks.output == ""


def test_sata_disk_without_wwn_is_named(tmp_path: Path) -> None:
    """Its page 0x83 ends with the serial number."""
    disks = Disks(tmp_path)
    serial, model = b"SERIAL0004          ", b"QEMU HARDDISK                           "
    page = b"\x00\x83\x00\x60\x02\x00\x00\x14" + serial + b"\x02\x01\x00\x44ATA     " + model + serial
    disks.add("sda", "sda1", vpd_pg83=page, wwid="t10.ATA     QEMU HARDDISK")
    name = "ata-QEMU_HARDDISK_SERIAL0004"
    assert disks.links() == {name: "../../sda", f"{name}-part1": "../../sda1"}


def test_name_of_two_disks_is_linked_to_neither(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    for number in range(3):
        disks.add(f"nvme{number}n1", disk={"nsid": "1", "wwid": f"eui.{number}"}, model="Cheap", serial="0")
    links = disks.links()
    assert links.pop("nvme-Cheap_0") == links.pop("nvme-Cheap_0_1") == "../../ambiguous"
    assert links == {f"nvme-eui.{number}": f"../../nvme{number}n1" for number in range(3)}
    assert "disks: more than one disk has the name nvme-Cheap_0, so it is not used" in disks.output


def test_device_without_disks_gets_no_folder(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    disks.add("nullb0")
    assert disks.links() == {}
    assert not (tmp_path / "dev/disk").exists()


CLIENT = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in -i) interface=$2 ;; -s) script=$2 ;; esac
    shift
done
case $interface in
eth0) env interface=eth0 ip=192.0.2.15 mask=24 router=192.0.2.2 serverid=192.0.2.1 sh "$script" bound ;;
*) exec sleep 60 ;;
esac
"""
"""Program in place of udhcpc: a DHCP server answers only on eth0."""


class Network:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "ip.log"
        write(folder / "bin", udhcpc=CLIENT, ip=f'#!/bin/sh\necho "$@" >> {self._log}\n')
        for name in ("udhcpc", "ip"):
            (folder / "bin" / name).chmod(0o755)
        (folder / "sys/class/net").mkdir(parents=True)

    def add(self, name: str, *, link: bool = True, hardware: bool = True, kind: str = "1") -> Path:
        folder = write(self._folder / "sys/class/net" / name, flags="0x1002", type=kind, carrier="1" if link else "0")
        if hardware:
            (folder / "device").mkdir()
        return folder

    def configure(self) -> tuple[list[str], list[str]]:
        """Run network.sh; return its output and the calls of `ip`."""
        output = run(
            "network.sh", SYS=self._folder / "sys", RUN=self._folder / "run", WAIT_S=2, OTHERS_S=1,
            PATH=f"{self._folder / 'bin'}:{os.environ['PATH']}",
        ).splitlines()  # fmt: skip
        return output, self._log.read_text().splitlines() if self._log.exists() else []


def test_interface_with_link_gets_dhcp_address(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.add("eth0")
    network.add("lo", hardware=False, kind="772")
    network.add("veth0", hardware=False)
    (network.add("wlan0") / "phy80211").mkdir()
    output, done = network.configure()
    assert output == ["network: eth0: 192.0.2.15/24, router 192.0.2.2, from 192.0.2.1"]
    assert set(done[:-3]) == {"link set eth0 up"}
    assert done[-3:] == [
        "address flush dev eth0", "address add 192.0.2.15/24 dev eth0", "route add default via 192.0.2.2 dev eth0",
    ]  # fmt: skip


def test_reason_for_missing_address_is_printed(tmp_path: Path) -> None:
    network = Network(tmp_path)
    assert network.configure()[0] == [
        "network: no Ethernet interface found in 2 s: not plugged in, or this kernel lacks its driver or firmware"
    ]
    network.add("eth1", link=False)
    network.add("eth2")
    assert network.configure()[0] == [
        "network: eth1: no address: no link",
        "network: eth2: no address: no DHCP server answered",
    ]
    network.add("eth0")
    assert network.configure()[0][0].startswith("network: eth0: 192.0.2.15/24")


def test_only_emulated_devices_have_a_fixed_address() -> None:
    emulated = load_device_types(ROOT)["tiny"]
    assert emulated.kernel_arguments.startswith("wqlab.ip=10.0.2.15/24 tsc=reliable")
    assert "wqlab.ip" not in emulated.model_copy(update={"emulation": None}).kernel_arguments


def test_guest_scripts_are_in_the_image() -> None:
    assert set(rootfs.OWN) == {path.name for path in GUEST.iterdir() if path.suffix not in {".c", ".h"}}
    folders = {entry.name for entry in map(cpio.directory, rootfs.FOLDERS)} | {"."}
    assert {str(Path(target).parent) for target in rootfs.OWN.values()} <= folders
    callers = (GUEST / "init").read_text() + (GUEST / "crash_kernel.sh").read_text() + crash_kernel.LOADER
    assert all(Path(target).name in callers for target in rootfs.OWN.values() if target != "init")


KEXEC = """\
#!/bin/sh
for argument; do
	echo "$argument"
	case $argument in --initrd=*) cp "${argument#*=}" "$RECORD/rootfs.cpio" ;; esac
done >"$RECORD/arguments"
"""


def load_crash_kernel(folder: Path, reserved: str) -> subprocess.CompletedProcess[str]:
    """Run crash_kernel.sh with a kexec that records what it would load. `dash` stands for the reader of the log."""
    write(folder / "sys/kernel", kexec_crash_size=reserved)
    write(folder / "proc/sys/kernel", panic_on_oops="0")
    (folder / "kexec").write_text(KEXEC)
    (folder / "kexec").chmod(0o755)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}", "RECORD": str(folder), "SYS": str(folder / "sys"),
        "PROC": str(folder / "proc"),
        "INIT": str(GUEST / "crash_init"), "LOG_READER": "/bin/dash", "TMPDIR": str(folder),
    }  # fmt: skip
    command = ["sh", str(GUEST / "crash_kernel.sh"), "/lab/variant", "console=ttynull nr_cpus=1"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_crash_kernel_gets_a_root_filesystem_of_what_it_runs(tmp_path: Path) -> None:
    done = load_crash_kernel(tmp_path, "268435456")
    assert (done.returncode, done.stderr) == (0, "")
    first, kernel, _, command_line = (tmp_path / "arguments").read_text().splitlines()
    assert (first, kernel, command_line) == ("-p", "/lab/variant", "--command-line=console=ttynull nr_cpus=1")
    with (tmp_path / "rootfs.cpio").open("rb") as archive:
        listed = subprocess.run(["cpio", "-t"], stdin=archive, capture_output=True, text=True, check=True).stdout
    names = set(listed.splitlines())
    assert {"init", "proc", "dev", "bin/busybox", "usr/sbin/vmcore-dmesg"} <= names
    assert {Path(name).name for name in names} >= {"libc.so.6", "ld-linux-x86-64.so.2"}
    assert (tmp_path / "proc/sys/kernel/panic_on_oops").read_text() == "1\n"
    assert not list(tmp_path.glob("tmp.*")), "nothing stays in the variant's memory"


def test_a_kernel_without_reserved_memory_loads_no_crash_kernel(tmp_path: Path) -> None:
    done = load_crash_kernel(tmp_path, "0")
    assert done.returncode == 1
    assert done.stderr == "the running kernel reserved no memory for a crash kernel\n"
    assert not (tmp_path / "arguments").exists()
    assert (tmp_path / "proc/sys/kernel/panic_on_oops").read_text() == "0\n"
