"""What is read out of logs, configurations and ELF notes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from wqlab_worker.build import kconfig
from wqlab_worker.build import log as buildlog
from wqlab_worker.build.build_id import build_id, build_id_in_notes
from wqlab_worker.build.prepare import progress_text

LOG = """\
make --jobs=2 O=/build
  CC      kernel/fork.o
/src/kernel/fork.c:12:5: warning: unused variable 'x' [-Wunused-variable]
../src/kernel/fork.c:12:5: warning: unused variable 'x' [-Wunused-variable]
  CC [M]  drivers/block/brd.o
/src/kernel/fork.c: In function 'f':
/src/kernel/fork.c:20:9: error: 'y' undeclared (first use in this function)
   20 |         y = 1;
make[3]: *** [/src/scripts/Makefile.build:229: kernel/fork.o] Error 1
""".splitlines()


def test_steps() -> None:
    assert [buildlog.step(line) for line in LOG if buildlog.step(line)] == ["kernel/fork.o", "drivers/block/brd.o"]


def test_a_warning_counts_once_and_is_relative() -> None:
    (warning,) = buildlog.warnings(LOG)
    assert warning.model_dump() == {
        "where": "kernel/fork.c:12:5",
        "text": "unused variable 'x'",
        "option": "-Wunused-variable",
    }


def test_the_first_error_and_its_surroundings() -> None:
    first, excerpt = buildlog.first_errors(LOG)
    assert first == "kernel/fork.c:20:9: error: 'y' undeclared (first use in this function)"
    assert "y = 1;" in excerpt and "make[3]: ***" in excerpt and "CC [M]" not in excerpt


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ld: kernel/fork.o: in function `f': undefined reference to `g'", "undefined reference"),
        ('ERROR: modpost: "g" [drivers/block/brd.ko] undefined!', "modpost"),
        ("make[1]: *** [Makefile:7: all] Error 2", "Error 2"),
    ],
)
def test_linker_and_make_errors_are_errors(line: str, expected: str) -> None:
    assert expected in buildlog.first_errors(["  CC      a.o", line])[0]


def test_a_log_without_errors_gives_its_end() -> None:
    assert buildlog.first_errors(["one", "two"]) == ("", "one\ntwo")


def test_unmet_options() -> None:
    fragments = ["CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\n", "CONFIG_B=y\nCONFIG_D=64\nCONFIG_E=n\n"]
    config = "CONFIG_A=y\nCONFIG_B=m\nCONFIG_C=y\nCONFIG_D=8\n"
    assert kconfig.unmet(fragments, config) == [
        "CONFIG_B=y (is m)",
        "CONFIG_C=n (is y)",
        "CONFIG_D=64 (is 8)",
    ]


def note(kind: int, name: bytes, description: bytes) -> bytes:
    def padded(text: bytes) -> bytes:
        return text + b"\0" * (-len(text) % 4)

    return struct.pack("<III", len(name), len(description), kind) + padded(name) + padded(description)


def test_the_build_id_is_found_among_other_notes() -> None:
    notes = note(1, b"Xen\0", b"abc") + note(3, b"GNU\0", bytes(range(20))) + note(6, b"Linux\0", b"")
    assert build_id_in_notes(notes) == bytes(range(20)).hex()
    assert build_id_in_notes(note(3, b"Xen\0", bytes(20))) is None
    assert build_id_in_notes(struct.pack("<III", 4, 1 << 31, 3) + b"GNU\0") is None


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200])
def test_what_is_no_elf_file_has_no_build_id(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "vmlinux").write_bytes(content)
    with pytest.raises(ValueError):
        build_id(tmp_path / "vmlinux")


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s", "expected"),
    [
        (0, 0, 5, "compiling x"),
        (1, 100, 5, "compiling x  1%"),
        (25, 100, 60, "compiling x  25%, about 3 min left"),
        (90, 100, 90, "compiling x  90%, about 10 s left"),
    ],
)
def test_progress(done: int, total: int, elapsed_s: float, expected: str) -> None:
    assert progress_text("compiling x", done, total, elapsed_s) == expected
