"""Write the initramfs of a given kernel: the lab's root filesystem, followed by the kernel's modules."""

from __future__ import annotations

import gzip
import io
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from wqlab_bench import cpio

from ...build.module_tree import NO_PLAN_NEEDS, ModuleTree

SKIPPED = (
    *NO_PLAN_NEEDS, "drivers/ata", "drivers/bus", "drivers/comedi", "drivers/cxl", "drivers/hid", "drivers/hv",
    "drivers/i2c", "drivers/input", "drivers/media", "drivers/mfd", "drivers/net/ethernet", "drivers/net/usb",
    "drivers/nvdimm", "drivers/platform", "drivers/scsi", "drivers/target", "drivers/usb", "drivers/vfio",
    "drivers/video", "drivers/xen", "fs/ceph", "fs/nfs", "fs/nfsd", "fs/nls", "fs/smb", "net/ceph", "net/netfilter",
    "net/sctp", "net/sunrpc",
)  # fmt: skip
"""Folders below `kernel/` of which only the modules that are named are in the initramfs: those of hardware, of which a
plan uses none, and of file systems and protocols that no plan measures. Unpacking them takes an emulator minutes."""
VIRTIO = ("virtio_pci", "virtio_net", "virtio_rng")
"""Modules that an emulated device loads before its network comes up; a kernel may have them built in."""
MODULES_ARGUMENT = "wqlab.modules="
"""Kernel argument with the modules that the root filesystem loads first, separated by commas."""


def module_arguments(names: Sequence[str]) -> str:
    """Return the kernel argument for these modules; empty for none."""
    return f"{MODULES_ARGUMENT}{','.join(names)}" if names else ""


def write(
    rootfs: Path,
    release: str,
    tree: ModuleTree | None,
    path: Path,
    firmware: Mapping[str, bytes] | None = None,
    *,
    compressed: bool = False,
) -> None:
    """Write the initramfs, `compressed` by gzip if the kernel can unpack that. `firmware`: path below /lib/firmware ->
    content. Raises ModuleError.

    The kernel unpacks archives one after the other (Documentation/driver-api/early-userspace/buffer-format.rst).
    """
    files = {f"usr/lib/modules/{release}/{name}": data for name, data in tree.installed()} if tree else {}
    files |= {f"usr/lib/firmware/{name}": data for name, data in (firmware or {}).items()}
    folders = {str(folder) for name in files for folder in PurePosixPath(name).parents} - {"."}
    entries = [cpio.directory(name) for name in sorted(folders)]
    entries += [cpio.file(name, data) for name, data in sorted(files.items())]
    appended = io.BytesIO()
    cpio.write_archive(entries, appended)
    with gzip.open(path, "wb", compresslevel=1) if compressed else path.open("wb") as image:
        with rootfs.open("rb") as base:
            shutil.copyfileobj(base, image)
        image.write(b"\0" * (-rootfs.stat().st_size % 4))  # an archive begins at a multiple of four bytes
        image.write(appended.getvalue())
