"""The initramfs of a kernel with modules: the root filesystem, followed by modules and firmware."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wqlab_bench import cpio
from wqlab_worker.backends.ab import initramfs
from wqlab_worker.build.module_tree import ModuleTree


def test_modules_and_firmware_follow_the_root_filesystem(tmp_path: Path) -> None:
    """cpio reads both archives as one, as the kernel does."""
    (tmp_path / "a.c").write_text('static const char f[] __attribute__((section(".modinfo"), used)) = "depends=";\n')
    subprocess.run(["gcc", "-c", str(tmp_path / "a.c"), "-o", str(tmp_path / "a.o")], check=True)
    module = tmp_path / "modules/kernel/drivers/net/virtio_net.ko"
    module.parent.mkdir(parents=True)
    module.write_bytes((tmp_path / "a.o").read_bytes())
    rootfs = tmp_path / "rootfs.cpio"
    with rootfs.open("wb") as file:
        cpio.write_archive([cpio.directory("usr"), cpio.file("init", b"x", executable=True)], file)
    image = tmp_path / "initramfs"
    initramfs.write(rootfs, "6.12.1", ModuleTree(tmp_path / "modules"), image, {"e100/a.bin": b"firmware"})
    content = image.read_bytes()
    first = rootfs.stat().st_size
    assert content[:first] == rootfs.read_bytes() and content[first + -first % 4 :].startswith(b"070701")
    for name in (
        b"usr/lib/modules/6.12.1/kernel/drivers/net/virtio_net.ko\0",
        b"usr/lib/modules/6.12.1/modules.dep\0",
        b"usr/lib/firmware/e100/a.bin\0",
    ):
        assert name in content


def test_a_kernel_without_modules_boots_the_root_filesystem_alone(tmp_path: Path) -> None:
    rootfs = tmp_path / "rootfs.cpio"
    with rootfs.open("wb") as file:
        cpio.write_archive([cpio.file("init", b"x", executable=True)], file)
    initramfs.write(rootfs, "6.12.1", None, tmp_path / "initramfs")
    assert b"usr/lib/modules" not in (tmp_path / "initramfs").read_bytes()
    assert initramfs.module_arguments([]) == ""
    assert initramfs.module_arguments(initramfs.VIRTIO) == "wqlab.modules=virtio_pci,virtio_net,virtio_rng"
