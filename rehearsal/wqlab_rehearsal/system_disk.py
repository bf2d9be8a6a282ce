"""Make the disk from which a machine starts: an EFI system partition with GRUB and the golden system.

GRUB starts the golden system by default, or the machine's own operating system if it has one.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from wqlab_host import tool

from . import debian_system, ext4
from .netboot import UEFI, NetbootError, Served

FIRST_MIB = 1
ESP_MIB = 254
_END_MIB = 1
"""Space for the copy of the partition table."""
ENTRY = "wqlab"
"""Name of the golden system's entry, for `grub-reboot` and `grub-set-default`."""
_MODULES = "part_gpt fat ext2 normal linux loadenv configfile echo test search search_label"
_ESP_LABEL = "EFI"


def menu(command_line: str, default: str = ENTRY) -> str:
    """Return the text of grub.cfg: the entry `default`, unless `grub-reboot` chose another one for this start.

    The choice is made in the words of Debian's own grub.cfg (/etc/grub.d/00_header).
    """
    return f"""\
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="{default}"
fi
set timeout=0
menuentry "golden system of wqlab" --id {ENTRY} {{
    search --no-floppy --label {_ESP_LABEL} --set=root
    linux /wqlab/kernel {command_line}
    initrd /wqlab/rootfs.cpio
}}
"""


def _own_entry() -> str:
    return f"""\
menuentry "Debian" --id debian {{
    search --no-floppy --label {debian_system.LABEL} --set=root
    linux /vmlinuz root=LABEL={debian_system.LABEL} ro quiet
    initrd /initrd.img
}}
"""


def make(folder: Path, disk: Path, served: Served) -> None:
    """Write the disk image `disk`, with its parts in `folder`; the golden system is the default.

    Raises NetbootError with a failed command's output.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment, configuration = folder / "grubenv", folder / "grub.cfg"
    tool.output(["grub-editenv", str(environment), "create"], NetbootError)
    configuration.write_text(menu(served.command_line))
    files = {environment: "grub/grubenv", configuration: "grub/grub.cfg"}
    esp = _make_esp(folder, served, files, "set prefix=($root)/grub\n", _ESP_LABEL)
    _write_disk(disk, [esp])
    esp.unlink()


def make_with_own_system(folder: Path, disk: Path, served: Served, system: Path, key: str) -> None:
    """Write the disk image `disk` with a copy of the Debian in `system`, which is the default and lets `key` log in.

    Raises NetbootError and ext4.Ext4Error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root, keys = folder / "root.ext4", folder / "authorized_keys"
    environment, configuration = folder / "grubenv", folder / "grub.cfg"
    tool.output(["cp", "--sparse=always", str(system), str(root)], NetbootError)
    keys.write_text(f"ssh-ed25519 {key} lab\n")
    tool.output(["grub-editenv", str(environment), "create"], NetbootError)
    configuration.write_text(menu(served.command_line, "debian") + _own_entry())
    own_files = {
        "/root/.ssh/authorized_keys": keys,
        "/boot/grub/grubenv": environment,
        "/boot/grub/grub.cfg": configuration,
    }
    ext4.write(root, own_files, folder)
    esp = _make_esp(folder, served, {}, "set prefix=($root)/boot/grub\n", debian_system.LABEL)
    _write_disk(disk, [esp, root])
    esp.unlink()
    root.unlink()


def _make_esp(folder: Path, served: Served, files: dict[Path, str], prefix: str, label: str) -> Path:
    """Return an EFI system partition with the golden system and `files` (source -> path).

    Its GRUB takes its configuration from the file system with `label`; `prefix` sets the folder there.
    """
    loader, early = folder / "BOOTX64.EFI", folder / "early.cfg"
    early.write_text(f"search --no-floppy --label {label} --set=root\n{prefix}configfile $prefix/grub.cfg\n")
    tool.output(
        [
            "grub-mkimage", "-d", f"/usr/lib/grub/{UEFI}", "-O", UEFI, "-p", "/grub", "-c", str(early),
            "-o", str(loader), *_MODULES.split(),
        ],
        NetbootError,
    )  # fmt: skip
    partition = folder / "partition.fat"
    with partition.open("wb") as file:
        file.truncate(ESP_MIB << 20)
    tool.output(["mkfs.fat", "-F", "32", "-n", _ESP_LABEL, str(partition)], NetbootError)
    folders = ["::/EFI", "::/EFI/BOOT", "::/wqlab", *(["::/grub"] if files else [])]
    tool.output(["mmd", "-i", str(partition), *folders], NetbootError)
    golden = {loader: "EFI/BOOT/BOOTX64.EFI", served.kernel: "wqlab/kernel", served.rootfs: "wqlab/rootfs.cpio"}
    for source, target in (golden | files).items():
        tool.output(["mcopy", "-i", str(partition), str(source), f"::/{target}"], NetbootError)
    return partition


def _write_disk(disk: Path, partitions: list[Path]) -> None:
    """Write a disk whose first partition is the EFI system partition; the partitions are whole MiB long."""
    table = "label: gpt\n"
    start = FIRST_MIB
    for number, partition in enumerate(partitions):
        size = partition.stat().st_size >> 20
        table += f"start={start}MiB, size={size}MiB, type={'linux' if number else 'uefi'}\n"
        start += size
    with disk.open("wb") as file:
        file.truncate(start + _END_MIB << 20)
    made = subprocess.run(["sfdisk", "--quiet", str(disk)], input=table, capture_output=True, text=True, check=False)
    if made.returncode:
        raise NetbootError(f"sfdisk: {(made.stderr or made.stdout).strip()}")
    start = FIRST_MIB
    for partition in partitions:
        options = ["bs=1M", f"seek={start}", "conv=notrunc,sparse", "status=none"]
        tool.output(["dd", f"if={partition}", f"of={disk}", *options], NetbootError)
        start += partition.stat().st_size >> 20
