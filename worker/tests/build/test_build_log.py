"""Progress, warnings and errors in the output of make and the compiler."""

from __future__ import annotations

import timeit
import tracemalloc
from pathlib import Path

import pytest

from wqlab_worker.build import build_log

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


def test_parse_step_returns_file_of_make_line() -> None:
    assert [build_log.parse_step(line) for line in LOG if build_log.parse_step(line)] == [
        "kernel/fork.o",
        "drivers/block/brd.o",
    ]


def test_repeated_warning_is_listed_once_with_relative_path() -> None:
    (warning,) = build_log.warnings(LOG)
    assert warning.model_dump() == {
        "where": "kernel/fork.c:12:5",
        "text": "unused variable 'x'",
        "option": "-Wunused-variable",
    }


def test_first_error_is_returned_with_excerpt() -> None:
    first, excerpt = build_log.first_errors(LOG)
    assert first == "kernel/fork.c:20:9: error: 'y' undeclared (first use in this function)"
    assert "y = 1;" in excerpt and "make[3]: ***" not in excerpt and "CC [M]" not in excerpt


def test_excerpt_begins_with_the_place_of_the_error() -> None:
    log = ["      |      ^~~~", "a.c: In function 'f':", "a.c:8:16: error: 'x' undeclared", "    8 | return x;"]
    noise = ["make[4]: *** [scripts/Makefile.build:234: a.o] Error 1", "I: kernel: SKIP in 0:00:00.000001"]
    assert build_log.first_errors([*log, *noise])[1].splitlines() == log[1:]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ld: kernel/fork.o: in function `f': undefined reference to `g'", "undefined reference"),
        ('ERROR: modpost: "g" [drivers/block/brd.ko] undefined!', "modpost"),
        ("make[1]: *** [Makefile:7: all] Error 2", "Error 2"),
    ],
)
def test_linker_and_make_errors_are_recognized(line: str, expected: str) -> None:
    assert expected in build_log.first_errors(["  CC      a.o", line])[0]


def test_log_without_errors_gives_its_last_lines() -> None:
    assert build_log.first_errors(["one", "two"]) == ("", "one\ntwo")


def test_lines_of_a_log_are_cut(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_bytes(b"a" * 3 * build_log.LINE_LIMIT + b"\nb\r\n\n" + b"c" * build_log.LINE_LIMIT + b"\n\xffd")
    assert list(build_log.read_lines(log)) == [
        "a" * build_log.LINE_LIMIT,
        "b",
        "",
        "c" * build_log.LINE_LIMIT,
        "\ufffdd",
    ]
    assert build_log.last_lines(log).splitlines()[-1] == "\ufffdd"


def test_make_error_is_returned_if_no_other_follows() -> None:
    lines = ["one", "two", "make: *** [x] Error 1", "three"]
    assert build_log.first_errors(lines) == ("make: *** [x] Error 1", "\n".join(lines))
    assert build_log.first_errors([*lines, "a.c:1: error: x"])[0] == "a.c:1: error: x"


def test_log_is_not_read_into_memory(tmp_path: Path) -> None:
    """A log of 64 MiB that consists of line ends would be a list of 64 million strings."""
    log = tmp_path / "build.log"
    log.write_bytes(b"ab\n" * (1 << 18))
    tracemalloc.start()
    try:
        build_log.first_errors(build_log.read_lines(log))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("start", "pump"),
    [
        ("", "a:1"),
        ("", "make[1"),
        ("", "/a"),
        ("a.c:1: warning: ", " [-W"),
        ("a.c:1: warning: ", "x"),
        ("", "x: undefined reference to"),
        ("", " ld"),
        ("", "a:1:1: fatal "),
    ],
)
def test_hostile_line_takes_about_the_time_of_an_ordinary_one(start: str, pump: str) -> None:
    """Before, ` [-W [-W...` took quadratic time: 22 seconds for 80 KB."""

    def seconds(text: str) -> float:
        return min(
            timeit.repeat(lambda: (build_log.warnings([text]), build_log.first_errors([text])), number=1, repeat=3)
        )

    size = 1 << 16
    assert seconds(start + pump * (size // len(pump))) < 1000 * seconds("x.c:1:2: warning: ordinary " + "x" * size)
