"""The commit that makes a kernel fail is found on an emulated device: one that oopses in each boot, and one that does
so in half of the boots."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .conftest import SERIES, Lab, make_data, running_lab
from .pushed_tree import BUFFER, MUTEX, Tree, known_to_lab
from .user_git import git_daemon

pytestmark = [pytest.mark.scenario, pytest.mark.nightly, pytest.mark.timeout(5400)]

TREE = "failing-next"
ALWAYS = SERIES / "oopses-under-load.mbox"
SOMETIMES = SERIES / "oopses-in-some-boots.mbox"


@dataclass
class Range:
    """Two commits of the tree, and the one between them from which on the kernel fails."""

    good: str
    bad: str
    culprit: str


def explain(tree: Tree, what: str, where: str) -> str:
    """Add a line of comment. It moves the lines that warnings name, so the kernel is another one."""
    return tree.edit(f"workqueue: Explain {what}", where, f"/* This is {what}. */\n{where}")


def remove(tree: Tree, what: str) -> str:
    return tree.edit(f"workqueue: Remove the explanation of {what}", f"/* This is {what}. */\n", "")


def plant(tree: Tree, good: str, patch: Path) -> Range:
    """Commit two harmless changes, the failure, and two more harmless changes."""
    explain(tree, "a buffer", BUFFER)
    explain(tree, "a mutex", MUTEX)
    culprit = tree.commit("workqueue: Use a pwq that is gone when fio flushes", patch)
    remove(tree, "a buffer")
    return Range(good, remove(tree, "a mutex"), culprit)


@pytest.fixture(scope="module")
def lab_and_ranges() -> Iterator[tuple[Lab, Range, Range]]:
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    data = make_data(state, "tiny")
    (state / "git").mkdir()
    tree = Tree(state / "git/next.git")
    always = plant(tree, tree.git("rev-parse", "refs/heads/work"), ALWAYS)
    fixed = tree.commit("workqueue: Do not use a pwq that is gone", ALWAYS, "--reverse")
    sometimes = plant(tree, fixed, SOMETIMES)
    tree.push()
    with (
        git_daemon(state / "git") as git_url,
        known_to_lab(tree, TREE, f"{git_url}/next.git", data),
        running_lab(state, data, {}) as lab,
    ):
        yield lab, always, sometimes


def bisect(lab: Lab, searched: Range, *arguments: str) -> dict[str, Any]:
    """Bisect the failure, and require that its commit is the culprit; return the bisection."""
    begun = json.loads(
        lab.wqlab(
            "bisect", "--failure", "--json", "--tree", TREE, "--ref", "for-next", "--target", "xfs-fsync@tiny",
            "--good", searched.good, "--bad", searched.bad, *arguments,
        )
    )  # fmt: skip
    lab.wqlab("bisection", "watch", str(begun["id"]))
    found: dict[str, Any] = json.loads(lab.wqlab("bisection", "show", str(begun["id"]), "--json"))
    assert found["state"] == "found", found["reason"]
    assert found["culprit"]["commit"] == searched.culprit
    return found


def test_commit_that_oopses_in_each_boot_is_found(lab_and_ranges: tuple[Lab, Range, Range]) -> None:
    lab, always, _sometimes = lab_and_ranges
    found = bisect(lab, always, "--blocks", "2")
    assert "NULL pointer dereference" in json.dumps(found)


def test_commit_that_oopses_in_some_boots_is_found(lab_and_ranges: tuple[Lab, Range, Range]) -> None:
    lab, _always, sometimes = lab_and_ranges
    bisect(lab, sometimes, "--blocks", "8")
