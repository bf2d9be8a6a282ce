"""Building the QEMU of modelled devices, with a small program in place of QEMU's source."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from wqlab_bench.device_types import load_device_types
from wqlab_bench.instrument import support
from wqlab_bench.instrument.build_plugin import InstrumentUnsupported
from wqlab_bench.model import build_qemu
from wqlab_bench.qemu import UnsupportedTypeError
from wqlab_bench.qemu_program import PROGRAM

TYPES = load_device_types(Path(__file__).resolve().parents[4])

CONFIGURE = """\
#!/bin/sh
echo "configured with $*"
test ! -e /etc/passwd || echo "sees the host's files"
cat > build.ninja <<'END'
rule cc
  command = gcc $in -o $out
build qemu-system-x86_64: cc ../main.c
END
"""
MAIN = '#include <stdio.h>\nint main(void)\n{\n\tputs("plain");\n}\n'
PATCH = """\
--- a/main.c
+++ b/main.c
@@ -1,5 +1,5 @@
 #include <stdio.h>
 int main(void)
 {
-\tputs("plain");
+\tputs("patched");
 }
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache whose source archive is the small program, and patch that."""
    source = tmp_path / "source" / "qemu-1"
    source.mkdir(parents=True)
    (source / "configure").write_text(CONFIGURE)
    (source / "configure").chmod(0o755)
    (source / "main.c").write_text(MAIN)
    cache = tmp_path / "cache"
    tarball = cache / "model-qemu" / Path(build_qemu.SOURCE).name
    tarball.parent.mkdir(parents=True)
    with tarfile.open(tarball, "w:xz") as archive:
        archive.add(source, source.name)
    patches = tmp_path / "patches"
    patches.mkdir()
    (patches / "qemu.patch").write_text(PATCH)
    monkeypatch.setattr(build_qemu, "SHA256", hashlib.sha256(tarball.read_bytes()).hexdigest())
    monkeypatch.setattr(build_qemu, "_PATCHES", patches)
    monkeypatch.setattr(build_qemu, "_TOOLS", ("ninja", "patch", "xz"))
    monkeypatch.setattr(build_qemu, "_LIBRARIES", ())
    forget()
    yield cache  # type: ignore[misc]
    forget()


def forget() -> None:
    build_qemu.content_key.cache_clear()
    build_qemu.patch_hash.cache_clear()


needs_ninja = pytest.mark.skipif(shutil.which("ninja") is None, reason="lab/packages-model.txt is not installed")


@needs_ninja
def test_patched_source_is_built_once(cache: Path) -> None:
    with pytest.raises(InstrumentUnsupported, match="`make model` builds it"):
        build_qemu.find_program(cache, "x86_64")
    (cache / "model-qemu" / "build-killed" / "source").mkdir(parents=True)
    folder = build_qemu.build(cache)
    assert [path.name for path in folder.iterdir()] == [PROGRAM["x86_64"]]
    program = build_qemu.find_program(cache, "x86_64")
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "patched\n"
    log = build_qemu.log_file(cache).read_text()
    assert f"configured with {' '.join(build_qemu.CONFIGURATION)}" in log
    assert "sees the host's files" not in log
    changed = program.stat().st_mtime_ns
    assert build_qemu.build(cache) == folder
    assert program.stat().st_mtime_ns == changed
    assert {path.name for path in folder.parent.iterdir()} == {
        folder.name, "build.log", "lock", Path(build_qemu.SOURCE).name,
    }  # fmt: skip


@needs_ninja
def test_failed_build_shows_the_end_of_its_log(cache: Path) -> None:
    (build_qemu._PATCHES / "qemu.patch").write_text(PATCH.replace("plain", "other"))
    with pytest.raises(build_qemu.BuildError, match=r"the end of .*build\.log:(.|\n)*main\.c\.rej"):
        build_qemu.build(cache)
    assert not [path for path in (cache / "model-qemu").iterdir() if path.is_dir()]


def test_second_builder_does_not_race(cache: Path) -> None:
    with (cache / "model-qemu" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError):
            build_qemu.build(cache, wait=False)


def test_missing_package_is_named_with_the_command(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_qemu, "_TOOLS", ("no-such-tool",))
    with pytest.raises(build_qemu.BuildError, match="no-such-tool missing; `make model` installs the packages"):
        build_qemu.build(cache)


@pytest.mark.parametrize("changed", ["patch", "SHA256", "CONFIGURATION"])
def test_what_determines_the_program_determines_its_folder(
    cache: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    before = build_qemu.content_key()
    if changed == "patch":
        (build_qemu._PATCHES / "qemu.patch").write_text(PATCH.replace("patched", "changed"))
    else:
        monkeypatch.setattr(build_qemu, changed, ("other",) if changed == "CONFIGURATION" else "0" * 64)
    forget()
    assert build_qemu.content_key() != before


def test_archive_with_another_hash_is_downloaded_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def download(self: object, path: str, sha256: str, target: Path) -> None:
        asked.append(path)
        raise build_qemu.AptError("no network")

    monkeypatch.setattr(build_qemu, "SHA256", "0" * 64)
    monkeypatch.setattr(build_qemu.Apt, "download_from_pool", download)
    forget()
    with pytest.raises(build_qemu.BuildError, match="cannot download the source of QEMU: no network"):
        build_qemu.build(cache)
    assert asked == [build_qemu.SOURCE]


def test_modelled_types_are_refused_without_the_program(cache: Path) -> None:
    with pytest.raises(UnsupportedTypeError, match="modelled-tiny: the QEMU of modelled devices is not built; `make m"):
        support.check(TYPES["modelled-tiny"], cache)
    support.check(TYPES["instrumented-tiny"], cache)


def test_version_without_patch_says_so(cache: Path) -> None:
    (build_qemu._PATCHES / "qemu.patch").unlink()
    with pytest.raises(InstrumentUnsupported, match="no patch"):
        build_qemu.find_program(cache, "x86_64")


def test_other_architecture_is_named(cache: Path) -> None:
    with pytest.raises(InstrumentUnsupported, match="architecture x86_64, not arm64"):
        build_qemu.find_program(cache, "arm64")
