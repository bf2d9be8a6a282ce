"""Make the initramfs of an instrumented boot: the root filesystem image, and behind it what the boot runs."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath

from wqlab_bench import cpio
from wqlab_contracts.messages import RunJob

from ..unattended.boot_files import boot_files


def write(rootfs: Path, job: RunJob, blocks: Iterable[int], modules: Mapping[str, bytes], path: Path) -> None:
    """Write the initramfs for one kernel, for which `modules` are the modules (name -> content).

    The kernel unpacks archives one behind the other (Documentation/driver-api/early-userspace/buffer-format.rst).
    """
    content = boot_files(job, blocks)
    content["run"] = (files(__package__) / "onboard" / "run").read_bytes()
    content |= {f"for/kernel/{name}": data for name, data in modules.items()}
    names = {f"lab/{name}": data for name, data in content.items()}
    folders = {str(folder) for name in names for folder in PurePosixPath(name).parents} - {"."}
    entries = [cpio.directory(name) for name in sorted(folders)]
    entries += [cpio.file(name, data, executable=True) for name, data in sorted(names.items())]
    appended = io.BytesIO()
    cpio.write_archive(entries, appended)
    with path.open("wb") as image:
        with rootfs.open("rb") as base:
            shutil.copyfileobj(base, image)
        # An archive begins at a multiple of four bytes.
        image.write(b"\0" * (-image.tell() % 4))
        image.write(appended.getvalue())
