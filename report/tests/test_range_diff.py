"""Range-diffs of two versions: against git's own, as text, and for hostile input."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_report.range_diff import Change, Patch, patches_of, range_diff, text_of

C = "int one(void)\n{\n\treturn 1;\n}\n\nint two(void)\n{\n\treturn 2;\n}\n"


class Repository:
    """A repository in which versions of a series are made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "-q", "-b", "main")
        self.commit("base", {"a.c": C, "b.c": C, "c.c": C})

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        return subprocess.run(
            ["git", "-C", str(self.path), *who, *arguments], check=True, capture_output=True, text=True
        ).stdout

    def commit(self, message: str, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.path / name).write_text(text)
        self.git("add", ".")
        self.git("commit", "-q", "-m", message)

    def version(self, name: str, commits: Sequence[tuple[str, dict[str, str]]]) -> str:
        """Make a branch with these commits on main, and return its mbox."""
        self.git("checkout", "-q", "-b", name, "main")
        for message, files in commits:
            self.commit(message, files)
        return self.git("format-patch", "--stdout", f"main..{name}")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


ONE = ("a: take one lock\n\nBecause.", {"a.c": C.replace("return 1", "return 10")})
ONE_CHANGED = ("a: take one lock\n\nBecause of that.", {"a.c": C.replace("return 1", "return 11")})
TWO = ("b: wake later", {"b.c": C.replace("return 2", "return 20")})
RENAMED = ("b: wake a little later", {"b.c": C.replace("return 2", "return 20")})
THREE = ("c: count more", {"c.c": C.replace("int two", "long two")})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([ONE, TWO], [ONE, TWO], id="equal"),
        pytest.param([ONE, TWO], [ONE_CHANGED, TWO], id="changed"),
        pytest.param([ONE, TWO], [TWO], id="dropped"),
        pytest.param([TWO], [ONE, TWO, THREE], id="added"),
        pytest.param([ONE, TWO], [TWO, ONE], id="reordered"),
        pytest.param([ONE, TWO, THREE], [ONE, RENAMED, THREE], id="other subject"),
        pytest.param([ONE], [THREE], id="replaced"),
    ],
)
def test_pairs_are_those_of_git(
    repository: Repository, before: list[tuple[str, dict[str, str]]], after: list[tuple[str, dict[str, str]]]
) -> None:
    mboxes = [repository.version("v1", before), repository.version("v2", after)]
    git = repository.git("range-diff", "--no-color", "main..v1", "main..v2")
    heads = [line for line in git.splitlines() if re.match(r" *(\d+|-):", line)]
    expected = {re.sub(r": +[0-9a-f-]{7,}", ":", line) for line in heads}
    found = text_of(range_diff(*(patches_of(each) for each in mboxes)))
    assert {line for line in found if line and not line.startswith("    ")} == {
        re.sub(r"^(.*?): (.) (.*?): (.*)$", r"\1: \2 \3: \4", line) for line in expected
    }


def test_difference_is_a_diff_of_diffs(repository: Repository) -> None:
    mboxes = [repository.version("v1", [ONE]), repository.version("v2", [ONE_CHANGED])]
    assert text_of(range_diff(*(patches_of(each) for each in mboxes))) == [
        "1: ! 1: a: take one lock",
        "    @@",
        "      ## Commit message ##",
        "         a: take one lock",
        "",
        "    -    Because.",
        "    +    Because of that.",
        "      ## a.c ##",
        "     @@ a.c",
        "      int one(void)",
        "      {",
        "     -\treturn 1;",
        "    -+\treturn 10;",
        "    ++\treturn 11;",
        "      }",
        "",
        "      int two(void)",
    ]


def test_a_patch_on_another_base_is_equal() -> None:
    """Line numbers, object ids and dates change with every base."""
    mail = "From: a@x\nSubject: [PATCH] x: y\n\ntext\n---\n x.c | 2 +-\n\n"
    diff = "diff --git a/x.c b/x.c\nindex {0}..{0} 100644\n--- a/x.c\n+++ b/x.c\n@@ -{1},3 +{1},3 @@ int f(void)\n"
    rest = " a\n-b\n+c\n d\n-- \n2.39\n"
    bases = (("abc", 1), ("def", 700))
    first, second = (patches_of(mail + diff.format(*each) + rest) for each in bases)
    (pair,) = range_diff(first, second)
    assert (pair.change, pair.difference) == (Change.EQUAL, ())


TEXTS = st.lists(st.text("ab \n+-@#", max_size=30), max_size=6)


@given(TEXTS, TEXTS)
def test_each_patch_is_in_one_pair(before: list[str], after: list[str]) -> None:
    versions = [[Patch(text, tuple(text.split("\n"))) for text in texts] for texts in (before, after)]
    pairs = range_diff(*versions)
    assert sorted(pair.first for pair in pairs if pair.first) == list(range(1, len(before) + 1))
    assert [pair.second for pair in pairs if pair.second] == list(range(1, len(after) + 1))
    text_of(pairs)


@pytest.mark.parametrize("make", [lambda: "", lambda: "no mail", lambda: "\x00" * 100, lambda: "From: a\n\nno diff\n"])
def test_text_without_a_patch_has_none(make: Callable[[], str]) -> None:
    assert patches_of(make()) == []
