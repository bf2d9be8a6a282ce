"""Faults that a rehearsal machine has from power on: changes of the command line that starts QEMU. Each takes the words
of the command line and returns the changed ones."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from . import faults, qemu_command, thermal_zone

_KEPT = "machine.json"
HOT_S = 90.0
"""Time after which the sensor of `hot-at-first` shows that the machine has cooled."""
_DISK_SYSTEM = """\
echo "Debian GNU/Linux 12 build7 ttyS1"
echo
echo -n "build7 login: "
sleep 3600
"""
"""What the system on the disk shows, as a GRUB script: someone's installation, which is not the golden system."""


@dataclass(frozen=True)
class Start:
    """How a machine starts without faults."""

    command: list[str]
    training_s: int
    scratch: str
    """Serial number of the scratch disk."""


def keep(folder: Path, start: Start) -> None:
    """Keep the machine's command line in its folder, and write the script that runs it at power on."""
    (folder / _KEPT).write_text(json.dumps(asdict(start)))
    apply(folder)


def apply(folder: Path) -> None:
    """Write the script that starts the machine with the faults that it has now.

    Raises faults.FaultError if a machine of its kind cannot have one of them.
    """
    start = Start(**json.loads((folder / _KEPT).read_text()))
    command = start.command
    for name in sorted(faults.read(faults.file_of(folder)) & set(faults.MACHINE_FAULTS)):
        try:
            command = _CHANGES[name](command, start, folder / "guest")
        except ValueError as error:
            raise faults.FaultError(f"this machine cannot have the fault {name}: QEMU has no way to make it") from error
    qemu_command.write_start(folder / "power-on", command, start.training_s)


def _replace(words: Sequence[str], old: str, new: str) -> list[str]:
    """Replace a text in the one word that has it. Raises ValueError if none or several have it."""
    (at,) = (number for number, word in enumerate(words) if old in word)
    return [*words[:at], words[at].replace(old, new), *words[at + 1 :]]


def _without_disk(words: list[str], start: Start, guest: Path) -> list[str]:
    (at,) = (number for number, word in enumerate(words) if f"serial={start.scratch}" in word)
    return [*words[: at - 1], *words[at + 1 :]]


def _renamed_disk(words: list[str], start: Start, guest: Path) -> list[str]:
    return _replace(words, f"serial={start.scratch}", "serial=REPLACED0001")


def _read_only_disk(words: list[str], start: Start, guest: Path) -> list[str]:
    return _replace(words, f"{start.scratch}.raw,", f"{start.scratch}.raw,readonly=on,")


def _full_disk(words: list[str], start: Start, guest: Path) -> list[str]:
    rules = guest / "disk-full"
    no_space = 28
    rules.write_text(f'[inject-error]\nevent = "pwritev"\nerrno = "{no_space}"\n')
    file = str(guest / start.scratch)
    return _replace(words, f"file={file}.raw", f"file=blkdebug:{rules}:{file}.raw,werror=report")


def _clock(words: list[str], start: Start, guest: Path) -> list[str]:
    return [*words, "-rtc", "base=1970-01-01T00:00:10"]


def _hot_at_first(words: list[str], start: Start, guest: Path) -> list[str]:
    return _with_sensor(words, guest, HOT_S)


def _hot(words: list[str], start: Start, guest: Path) -> list[str]:
    return _with_sensor(words, guest, 30 * 24 * 3600)


def _with_sensor(words: list[str], guest: Path, hot_s: float) -> list[str]:
    file = guest / "sensor.aml"
    file.write_bytes(thermal_zone.table(hot_s))
    return [*words, *thermal_zone.qemu_arguments(str(file))]


def _no_smt(words: list[str], start: Start, guest: Path) -> list[str]:
    """Take the second thread of each core, as firmware does that switches SMT off."""
    at = words.index("-smp") + 1
    cpus, *levels = words[at].split(",")
    fields = dict(level.split("=") for level in levels)
    number = str(int(cpus) // int(fields["threads"]))
    fields |= {"maxcpus": number, "threads": "1"}
    return [*words[:at], ",".join([number, *(f"{name}={value}" for name, value in fields.items())]), *words[at + 1 :]]


def _disk_first(words: list[str], start: Start, guest: Path) -> list[str]:
    """Put a bootable disk before the network in the boot order. QEMU makes its FAT file system from a folder.

    Raises ValueError if the machine has no boot order.
    """
    if not any(",bootindex=0" in word for word in words):
        raise ValueError("no boot order")
    boot = guest / "efi" / "EFI" / "BOOT"
    boot.mkdir(parents=True, exist_ok=True)
    (guest / "disk.cfg").write_text(_DISK_SYSTEM)
    subprocess.run(
        [
            *("grub-mkimage", "-d", "/usr/lib/grub/x86_64-efi", "-O", "x86_64-efi", "-c", str(guest / "disk.cfg")),
            *("-p", "/EFI/BOOT", "-o", str(boot / "BOOTX64.EFI"), "normal", "echo", "sleep", "fat", "part_msdos"),
        ],
        check=True,
    )
    words = [word.replace(",bootindex=0", ",bootindex=1") for word in words]
    drive = f"if=none,id=system,format=raw,readonly=on,file=fat:{guest / 'efi'}"
    return [*words, "-drive", drive, "-device", "nvme,drive=system,serial=SYSTEM0001,bootindex=0"]


_CHANGES: Mapping[str, Callable[[list[str], Start, Path], list[str]]] = {
    "boots-disk": _disk_first,
    "disk-missing": _without_disk,
    "disk-renamed": _renamed_disk,
    "disk-read-only": _read_only_disk,
    "disk-full": _full_disk,
    "clock-1970": _clock,
    "smt-off": _no_smt,
    "hot-at-first": _hot_at_first,
    "hot": _hot,
}
