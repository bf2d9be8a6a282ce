"""Make the disk from which a machine starts: an EFI system partition with GRUB, whose default is the golden system."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wqlab_host import tool

from .netboot import UEFI, NetbootError, Served

SIZE_MIB = 256
FIRST_MIB = 1
_PARTITION_MIB = SIZE_MIB - 2
ENTRY = "wqlab"
"""Name of the golden system's entry, for `grub-reboot` and `grub-set-default`."""
_MODULES = "part_gpt fat normal linux loadenv configfile echo test"


def menu(command_line: str) -> str:
    """Return the text of grub.cfg: the golden system, unless `grub-reboot` chose another entry for this start."""
    return f"""\
load_env
set default={ENTRY}
if [ "$next_entry" ]; then
    set default="$next_entry"
    set next_entry=
    save_env next_entry
fi
set timeout=0
menuentry "golden system of wqlab" --id {ENTRY} {{
    linux /wqlab/kernel {command_line}
    initrd /wqlab/rootfs.cpio
}}
"""


def make(folder: Path, disk: Path, served: Served) -> None:
    """Write the disk image `disk`, with its parts in `folder`. Raises NetbootError with a failed command's output."""
    folder.mkdir(parents=True, exist_ok=True)
    loader, environment, configuration = folder / "BOOTX64.EFI", folder / "grubenv", folder / "grub.cfg"
    tool.output(
        [
            "grub-mkimage", "-d", f"/usr/lib/grub/{UEFI}", "-O", UEFI, "-p", "/grub", "-o", str(loader),
            *_MODULES.split(),
        ],
        NetbootError,
    )  # fmt: skip
    tool.output(["grub-editenv", str(environment), "create"], NetbootError)
    configuration.write_text(menu(served.command_line))
    partition = folder / "partition.fat"
    with partition.open("wb") as file:
        file.truncate(_PARTITION_MIB << 20)
    tool.output(["mkfs.fat", "-F", "32", "-n", "EFI", str(partition)], NetbootError)
    tool.output(["mmd", "-i", str(partition), "::/EFI", "::/EFI/BOOT", "::/grub", "::/wqlab"], NetbootError)
    for source, target in (
        (loader, "EFI/BOOT/BOOTX64.EFI"),
        (environment, "grub/grubenv"),
        (configuration, "grub/grub.cfg"),
        (served.kernel, "wqlab/kernel"),
        (served.rootfs, "wqlab/rootfs.cpio"),
    ):
        tool.output(["mcopy", "-i", str(partition), str(source), f"::/{target}"], NetbootError)
    with disk.open("wb") as file:
        file.truncate(SIZE_MIB << 20)
    table = f"label: gpt\nstart={FIRST_MIB}MiB, size={_PARTITION_MIB}MiB, type=uefi\n"
    made = subprocess.run(["sfdisk", "--quiet", str(disk)], input=table, capture_output=True, text=True, check=False)
    if made.returncode:
        raise NetbootError(f"sfdisk: {(made.stderr or made.stdout).strip()}")
    copy = ["dd", f"if={partition}", f"of={disk}", "bs=1M", f"seek={FIRST_MIB}", "conv=notrunc,sparse", "status=none"]
    tool.output(copy, NetbootError)
    partition.unlink()
