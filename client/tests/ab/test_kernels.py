"""Kernels of the command line: an installed one, an unpacked package, the folder of a build."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from wqlab_client.ab import kernels
from wqlab_client.ab.kernels import find_kernel
from wqlab_client.errors import UsageError
from wqlab_worker.build.kernel_image import ImageError, KernelImage

RELEASE = "6.12.1"


@pytest.fixture(autouse=True)
def _readable_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images of these tests hold their release."""

    def read(path: Path) -> KernelImage:
        if not (text := path.read_text()):
            raise ImageError(f"{path} is no x86 kernel image")
        return KernelImage(text, "ab" * 20)

    monkeypatch.setattr(kernels, "read_kernel_image", read)


def files(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(RELEASE)


@pytest.mark.parametrize(
    ("present", "given", "modules", "config"),
    [
        (
            ["boot/vmlinuz-6.12.1", "boot/config-6.12.1", "lib/modules/6.12.1/modules.dep"],
            "boot/vmlinuz-6.12.1",
            "lib/modules/6.12.1",
            "boot/config-6.12.1",
        ),
        (["boot/vmlinuz-6.12.1", "usr/lib/modules/6.12.1/modules.dep"], ".", "usr/lib/modules/6.12.1", None),
        (
            ["lib/modules/6.12.1/vmlinuz", "lib/modules/6.12.1/config", "lib/modules/6.12.1/modules.dep"],
            "lib/modules/6.12.1/vmlinuz",
            "lib/modules/6.12.1",
            "lib/modules/6.12.1/config",
        ),
        (["arch/x86/boot/bzImage", ".config", "modules.order"], ".", ".", ".config"),
        (["arch/x86/boot/bzImage", ".config"], "arch/x86/boot/bzImage", None, ".config"),
        (["somewhere/bzImage"], "somewhere/bzImage", None, None),
    ],
    ids=["debian", "unpacked, merged usr", "fedora", "build", "build without modules", "image alone"],
)
def test_modules_and_configuration_are_found_beside_the_image(
    tmp_path: Path, present: list[str], given: str, modules: str | None, config: str | None
) -> None:
    files(tmp_path, *present)
    found = find_kernel(str(tmp_path / given), tmp_path)
    assert (found.release, found.build_id_gnu) == (RELEASE, "ab" * 20)
    assert found.modules == (tmp_path / modules if modules is not None else None)
    assert found.config == (tmp_path / config if config is not None else None)


def test_given_modules_replace_those_that_were_found(tmp_path: Path) -> None:
    files(tmp_path, "bzImage", "staging/lib/modules/6.12.1/modules.dep")
    found = find_kernel(str(tmp_path / "bzImage"), tmp_path, tmp_path / "staging")
    assert found.modules == tmp_path / "staging/lib/modules/6.12.1"
    with pytest.raises(UsageError, match=r"no modules of 6\.12\.1"):
        find_kernel(str(tmp_path / "bzImage"), tmp_path, tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("present", "given", "reason"),
    [
        ([], "absent", "No such file"),
        ([], ".", "has no kernel"),
        (["boot/vmlinuz-1", "boot/vmlinuz-2"], ".", "2 kernels: vmlinuz-1, vmlinuz-2"),
    ],
)
def test_what_is_no_kernel_is_refused(tmp_path: Path, present: list[str], given: str, reason: str) -> None:
    files(tmp_path, *present)
    with pytest.raises(UsageError, match=reason):
        find_kernel(str(tmp_path / given), tmp_path)


def test_a_file_that_is_no_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match="no x86 kernel image"):
        find_kernel(str(tmp_path / "notes.txt"), tmp_path)


def test_a_package_that_has_no_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="bash is no package of a kernel"):
        find_kernel("deb:bash", tmp_path)


@pytest.mark.skipif(shutil.which("bsdtar") is None, reason="no bsdtar here")
def test_kernel_and_modules_may_be_in_several_packages(tmp_path: Path) -> None:
    """The files are plain archives; bsdtar reads RPM packages in the same way."""
    files(tmp_path / "core", f"lib/modules/{RELEASE}/vmlinuz", f"lib/modules/{RELEASE}/config")
    files(tmp_path / "modules", f"lib/modules/{RELEASE}/modules.dep", f"lib/modules/{RELEASE}/kernel/xfs.ko")
    names = []
    for each in ("core", "modules"):
        names.append(str(tmp_path / f"kernel-{each}.rpm"))
        subprocess.run(["bsdtar", "-cf", names[-1], "-C", str(tmp_path / each), "lib"], check=True)
    found = find_kernel(f"rpm:{','.join(names)}", tmp_path / "cache")
    assert found.release == RELEASE and found.modules is not None and found.config is not None
    assert (found.modules / "kernel/xfs.ko").exists()
    with pytest.raises(UsageError, match=r"absent\.rpm: No such file"):
        find_kernel("rpm:absent.rpm", tmp_path / "cache")
