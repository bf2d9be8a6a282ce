"""Read a kernel's installed modules (`/lib/modules/RELEASE`) and write the indexes that modprobe needs.

The indexes are made anew, because a package that was only unpacked has none, and busybox's modprobe reads no binary
ones. Formats: modules.dep(5), modprobe.d(5).
"""

from __future__ import annotations

import gzip
import io
import lzma
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

MODULE_LIMIT = 64 << 20
"""Most bytes of one module."""
_SUFFIXES = (".ko", ".ko.gz", ".ko.xz", ".ko.zst")
NO_PLAN_NEEDS = (
    "drivers/accel", "drivers/bluetooth", "drivers/gpu", "drivers/iio", "drivers/infiniband", "drivers/isdn",
    "drivers/media", "drivers/net/wireless", "drivers/staging", "net/bluetooth", "net/mac80211", "net/wireless",
    "sound",
)  # fmt: skip
"""Folders below `kernel/` that no plan needs: displays, sound, radio. They have most of a distribution's modules."""


class ModuleError(ValueError):
    """A folder has no modules, or one of them cannot be read; the message says what to do."""


@dataclass(frozen=True)
class ModuleInfo:
    """Fields of a module's section .modinfo."""

    depends: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Modules that its `softdep` wants to be loaded before it."""
    firmware: tuple[str, ...] = ()
    """Files below /lib/firmware."""


@dataclass(frozen=True)
class ModuleTree:
    """The modules of one kernel in `folder`, without those in folders of `skipped`. Names have `_` in place of `-`."""

    folder: Path
    skipped: Collection[str] = NO_PLAN_NEEDS
    named: Collection[str] = ()
    """Modules that are kept although their folder is skipped, with those that they need."""

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """Name -> file. The folder may also be one in which a kernel was built."""
        found: dict[str, Path] = {}
        skipped: dict[str, Path] = {}
        for path in self._all_files():
            relative = path.relative_to(self.folder).as_posix().removeprefix("kernel/")
            is_skipped = any(relative.startswith(f"{each}/") for each in self.skipped)
            (skipped if is_skipped else found).setdefault(module_name(path.name), path)
        waiting = list(self.named) if skipped else []
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            kept = found.get(name) or skipped.get(name)
            if kept is not None and name not in seen:
                seen.add(name)
                found[name] = kept
                info = module_info(unpacked(kept), str(kept))
                waiting += [*info.before, *info.depends]
        return found

    def _all_files(self) -> list[Path]:
        built = self.folder / "modules.order"
        if not ((self.folder / ".config").exists() and built.exists()):
            return sorted(path for path in self.folder.rglob("*.ko*") if path.name.endswith(_SUFFIXES))
        # A build lists NAME.o since Linux 6.3, before that NAME.ko.
        listed = [self.folder / f"{line.rpartition('.')[0]}.ko" for line in built.read_text().split()]
        return [path for path in listed if path.exists()]

    @cached_property
    def contents(self) -> Mapping[str, bytes]:
        """Name -> module, unpacked. Raises ModuleError."""
        return {name: unpacked(path) for name, path in self.files.items()}

    @cached_property
    def infos(self) -> Mapping[str, ModuleInfo]:
        """Name -> fields of the module's section .modinfo. Raises ModuleError."""
        return {name: module_info(data, str(self.files[name])) for name, data in self.contents.items()}

    @property
    def builtin(self) -> str:
        """The list of modules that are built into the kernel; empty if the folder has none."""
        try:
            return (self.folder / "modules.builtin").read_text()
        except FileNotFoundError:
            return ""

    def path(self, name: str) -> str:
        """Return the path of a module below `/lib/modules/RELEASE`, unpacked."""
        relative = self.files[name].relative_to(self.folder)
        return (relative.parent / f"{relative.name.partition('.ko')[0]}.ko").as_posix()

    def needed(self, name: str, *, soft: bool = True) -> list[str]:
        """Return the names of the modules in this tree that must be loaded before a module, in that order.

        Without `soft`, its soft dependencies are left out.
        """
        order: list[str] = []
        seen = {name}

        def visit(each: str) -> None:
            info = self.infos[each]
            for other in (*(info.before if soft else ()), *info.depends):
                if other in self.infos and other not in seen:
                    seen.add(other)
                    visit(other)
                    order.append(other)

        visit(name)
        return order

    def indexes(self) -> dict[str, str]:
        """Return modules.dep, modules.alias, modules.softdep and modules.builtin: file -> text."""
        dependencies = [
            f"{self.path(name)}:{''.join(f' {self.path(each)}' for each in reversed(self.needed(name, soft=False)))}\n"
            for name in self.files
        ]
        aliases = [f"alias {alias} {name}\n" for name, info in self.infos.items() for alias in info.aliases]
        soft = [f"softdep {name} pre: {' '.join(info.before)}\n" for name, info in self.infos.items() if info.before]
        return {
            "modules.dep": "".join(dependencies),
            "modules.alias": "".join(aliases),
            "modules.softdep": "".join(soft),
            "modules.builtin": self.builtin,
        }

    def archive(self) -> bytes:
        """Return a tar archive of the modules and indexes, as builds of the lab store a kernel's own modules."""
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, data in self.installed():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return stream.getvalue()

    def installed(self) -> Iterator[tuple[str, bytes]]:
        """Yield path below `/lib/modules/RELEASE` and content of each index and module."""
        for name, text in self.indexes().items():
            yield name, text.encode()
        for name, data in self.contents.items():
            yield self.path(name), data


def module_name(file: str) -> str:
    """Return the name of a module in /sys/module: `dm-crypt.ko.xz` is dm_crypt."""
    return file.partition(".ko")[0].replace("-", "_")


def module_info(data: bytes, name: str) -> ModuleInfo:
    """Parse the section .modinfo, which has NUL-terminated `key=value`. Raises ModuleError."""
    try:
        section = ELFFile(io.BytesIO(data)).get_section_by_name(".modinfo")
        text = section.data().decode("utf-8", errors="replace") if section is not None else ""
    except ELFError as error:
        raise ModuleError(f"{name} is no kernel module: {error}") from error
    values: dict[str, list[str]] = {}
    for field in text.split("\0"):
        key, _, value = field.partition("=")
        values.setdefault(key, []).append(value)
    before = [word for each in values.get("softdep", []) for word in _before(each)]
    return ModuleInfo(
        depends=tuple(module_name(each) for line in values.get("depends", []) for each in line.split(",") if each),
        aliases=tuple(alias for alias in values.get("alias", []) if alias),
        before=tuple(module_name(each) for each in before),
        firmware=tuple(values.get("firmware", [])),
    )


def _before(softdep: str) -> list[str]:
    """Return the modules after `pre:` in a soft dependency: `pre: crc32c post: ext4`."""
    _, _, after = softdep.partition("pre:")
    return after.partition("post:")[0].split()


def unpacked(path: Path) -> bytes:
    """Return the uncompressed content of a module's file. Raises ModuleError."""
    data = path.read_bytes()
    try:
        unpack = next(unpack for suffix, unpack in _UNPACK.items() if path.name.endswith(suffix))
        found = unpack(data)
    except (OSError, EOFError, lzma.LZMAError, ValueError, subprocess.CalledProcessError) as error:
        raise ModuleError(f"module {path} cannot be unpacked: {error}") from error
    if len(found) > MODULE_LIMIT:
        raise ModuleError(f"module {path} has more than {MODULE_LIMIT >> 20} MiB")
    return found


def _zstd(data: bytes) -> bytes:
    if shutil.which("zstd") is None:
        raise ValueError("install the program zstd")
    return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".zst": _zstd,
    ".ko": bytes,
}
