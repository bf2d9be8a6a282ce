"""Wrapping of shell commands."""

from __future__ import annotations

import shlex
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st
from report_parts import REPRODUCER
from report_support import one_word

from wqlab_report.document.shell import shell_lines


def run(script):
    """Run a script with a `tuxmake` that prints its arguments and flags, and return the output."""
    stand_in = 'tuxmake() { printf "<%s>" "$KCFLAGS" "$KAFLAGS" "$@"; }\n'
    done = subprocess.run(["sh", "-euc", stand_in + script], capture_output=True, text=True, check=True, cwd="/")
    return done.stdout


@settings(max_examples=40)
@given(st.lists(st.text("abc-=/ '\"\\$`*#;&|", max_size=30), min_size=1, max_size=20))
def test_wrapped_command_is_the_same_command(arguments):
    lines = shell_lines(f"tuxmake {shlex.join(arguments)}", "    ")
    assert run("KCFLAGS= KAFLAGS=\n" + "\n".join(lines)) == "".join(f"<{each}>" for each in ["", "", *arguments])
    assert all(len(line) <= 76 or one_word(line) for line in lines)


def test_reproducer_can_be_pasted_into_a_shell():
    lines = shell_lines(REPRODUCER, "    ")
    assert max(map(len, lines)) <= 76
    assert run("\n".join(lines)) == run(REPRODUCER)
    assert "<--environment=KBUILD_BUILD_TIMESTAMP=2026-01-01 00:00:00 UTC>" in run("\n".join(lines))


def test_comment_does_not_hide_a_command():
    assert shell_lines("# linux/ is linux-6.12\nmake") == ["make"]


def test_text_that_is_not_a_command_is_wrapped():
    lines = shell_lines("it's " + "no command " * 12, "    ")
    assert max(map(len, lines)) <= 76
    assert " ".join(" ".join(lines).split()) == "it's " + " ".join(["no command"] * 12)
