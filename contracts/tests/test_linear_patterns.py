"""Patterns for untrusted text are RE2's, which take linear time; Python's are used only in the modules listed here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import re2

from wqlab_contracts.linear_patterns import LinearPattern

ROOT = Path(__file__).parents[2]
FOLDERS = ("worker/wqlab_worker", "worker/wqlab_bench", "worker/wqlab_host", "contracts/wqlab_contracts/consoles")
PYTHON_PATTERNS = {
    "wqlab_bench/qemu.py": "version of the installed QEMU",
    "wqlab_host/apt.py": "output of apt on this host",
    "wqlab_host/netconsole.py": "four bytes, replaced one by one",
    "wqlab_worker/apply/debian.py": "a set of characters replaced one by one, in the version of a package",
    "wqlab_worker/backends/session_messages.py": "holder of a place, written by this software",
    "wqlab_worker/build/kernel_image.py": "a set of characters, 64 at most",
    "wqlab_worker/build/shift_layout.py": "runs in the sandbox; each repetition is bounded",
    "wqlab_worker/build/toolchain.py": "compiler of a recipe",
    "wqlab_worker/intake/read_commits.py": "runs in the sandbox; each repetition is bounded",
    "wqlab_worker/measure/device_text.py": "a set of characters replaced one by one; RE2 has no surrogates",
    "wqlab_worker/retention.py": "name of this host",
    "consoles/console_lines.py": "matches at the beginning of a line only; each repetition is bounded",
    "consoles/call_trace.py": "400 characters of a line at most; the pattern looks behind, which RE2 cannot",
    "wqlab_worker/workspace.py": "setting of the operator",
}
"""Module -> reason why its text is trusted, or the pattern is linear by its form."""


def importing_re() -> set[str]:
    found = set()
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import)]
            if any(alias.name == "re" for node in imports for alias in node.names):
                found.add(str(path.relative_to((ROOT / folder).parent)))
    return found


def test_python_patterns_are_used_only_where_listed() -> None:
    assert importing_re() == set(PYTHON_PATTERNS)


@pytest.mark.parametrize("pattern", [r"(a)\1", r"(?=a)b", r"(?<!a)b", "("])
def test_pattern_that_may_take_more_than_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(re2.error):
        LinearPattern(pattern)


def test_methods_are_those_of_python() -> None:
    pattern = LinearPattern(r"(?P<name>\w+)=(\d+)")
    match = pattern.search("ä x=12 y=3")
    assert match is not None
    assert (match["name"], match[2], match.start(), match.groups()) == ("x", "12", 2, ("x", "12"))
    assert pattern.match("ä x=12") is None
    assert pattern.fullmatch("x=1 ") is None
    assert [found[1] for found in pattern.finditer("ä x=12 y=3")] == ["x", "y"]
    assert pattern.sub("-", "x=1 ö y=2") == "- ö -"


def test_text_without_what_a_match_needs_is_no_match() -> None:
    pattern = LinearPattern(r"end of (\w+)", needs=["end of a", "end of b"])
    assert pattern.search("the end of bees") and pattern.match("end of ants")
    assert pattern.search("the end of cats") is None and pattern.match("cats") is None


def test_lone_surrogate_matches_as_question_mark() -> None:
    match = LinearPattern(r"a.b(c)").search("\udc80 a\ud800bc")
    assert match is not None
    assert (match[0], match.start(1)) == ("a?bc", 5)
