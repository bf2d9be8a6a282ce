"""Progress, warnings and errors in the output of make and the compiler."""

from __future__ import annotations

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
