"""Modules of a kernel: what they need, the indexes for modprobe, and folders of builds and distributions."""

from __future__ import annotations

import gzip
import lzma
import subprocess
from pathlib import Path

import pytest

from wqlab_worker.build.module_tree import ModuleError, ModuleTree, module_info


def module(folder: Path, *fields: str) -> bytes:
    """Return an object file with these fields in its section .modinfo."""
    source = folder / "module.c"
    lines = [
        f'static const char f{number}[] __attribute__((section(".modinfo"), used)) = "{field}";'
        for number, field in enumerate(fields)
    ]
    source.write_text("\n".join(lines) + "\n")
    subprocess.run(["gcc", "-c", str(source), "-o", str(folder / "module.o")], check=True)
    return (folder / "module.o").read_bytes()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The modules of a distribution: dm-crypt needs dm-mod and wants a cipher before it."""
    folder = tmp_path / "lib/modules/6.12.1"
    files = {
        "kernel/drivers/md/dm-crypt.ko": module(tmp_path, "depends=dm-mod", "softdep=pre: aes-x post: late"),
        "kernel/drivers/md/dm-mod.ko.xz": lzma.compress(module(tmp_path, "alias=devname:mapper/control", "depends=")),
        "kernel/crypto/aes-x.ko.gz": gzip.compress(module(tmp_path, "alias=crypto-aes")),
        "kernel/drivers/gpu/drm/drm.ko": module(tmp_path, "firmware=gpu/a.bin"),
        "extra/ring_a.ko": module(tmp_path, "depends=ring_b"),
        "extra/ring_b.ko": module(tmp_path, "depends=ring_a"),
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\n")
    return folder


def test_what_a_module_needs_is_listed_in_the_order_of_loading(installed: Path) -> None:
    tree = ModuleTree(installed)
    assert tree.needed("dm_crypt") == ["aes_x", "dm_mod"]
    assert tree.needed("dm_crypt", soft=False) == ["dm_mod"]
    assert tree.needed("ring_a") == ["ring_b"], "a circle ends"


def test_indexes_name_the_unpacked_files(installed: Path) -> None:
    indexes = ModuleTree(installed).indexes()
    assert "kernel/drivers/md/dm-crypt.ko: kernel/drivers/md/dm-mod.ko\n" in indexes["modules.dep"]
    assert "alias crypto-aes aes_x\n" in indexes["modules.alias"]
    assert indexes["modules.softdep"] == "softdep dm_crypt pre: aes_x\n"
    assert indexes["modules.builtin"] == "kernel/fs/ext4/ext4.ko\n"
    assert all(".xz" not in text and ".gz" not in text for text in indexes.values())


def test_folders_that_no_plan_needs_are_skipped(installed: Path) -> None:
    assert "drm" not in ModuleTree(installed).files
    assert "drm" in ModuleTree(installed, skipped=()).files


def test_named_modules_of_skipped_folders_come_with_what_they_need(installed: Path) -> None:
    tree = ModuleTree(installed, skipped=("crypto", "drivers", "extra"), named=("dm_crypt", "absent"))
    assert set(tree.files) == {"dm_crypt", "dm_mod", "aes_x"}
    assert tree.needed("dm_crypt") == ["aes_x", "dm_mod"]


def test_modules_of_a_build_are_those_of_its_list(tmp_path: Path) -> None:
    """A build folder has a folder kernel/ too, and object files of earlier configurations."""
    (tmp_path / ".config").touch()
    for name in ("drivers/md/dm-mod.ko", "drivers/md/stale.ko", "kernel/torture.ko"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "modules.order").write_text("drivers/md/dm-mod.o\nkernel/torture.ko\ndrivers/absent.o\n")
    tree = ModuleTree(tmp_path)
    assert {name: tree.path(name) for name in tree.files} == {
        "dm_mod": "drivers/md/dm-mod.ko",
        "torture": "kernel/torture.ko",
    }


@pytest.mark.parametrize(("name", "reason"), [("a.ko", "no kernel module"), ("a.ko.xz", "cannot be unpacked")])
def test_a_damaged_module_is_named(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / name).write_bytes(b"damaged")
    with pytest.raises(ModuleError, match=reason) as caught:
        ModuleTree(tmp_path).indexes()
    assert name in str(caught.value)


def test_firmware_of_a_module_is_listed(tmp_path: Path) -> None:
    assert module_info(module(tmp_path, "firmware=e100/a.bin", "firmware=e100/b.bin"), "e100").firmware == (
        "e100/a.bin",
        "e100/b.bin",
    )
