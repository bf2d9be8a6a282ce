"""A regression in a watched tree is found, confirmed, shown and told without a hand, among changes that change nothing.

The tree is the lab's kernel with the example series, which takes fewer locks per flush. One of the commits that are
pushed to it takes the example back: the locks per flush rise again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, expect
from standardwebhooks import Webhook as Signer

from .browser import Person
from .conftest import EXAMPLE, ROOT, Lab, git_daemon, make_data, running_lab

sys.path[:0] = [str(ROOT)]

from server.tests.support.receiver import Answer, Receiver, receiver  # noqa: E402

pytestmark = [pytest.mark.scenario, pytest.mark.nightly, pytest.mark.timeout(5400)]

TREE = "history-next"
FILE = "kernel/workqueue.c"
BUFFER = "/* buf for wq_update_unbound_pod_attrs(), protected by CPU hotplug exclusion */"
"""A comment: another text in the same line leaves the kernel as it is; a further line moves the lines of warnings."""
MUTEX = "static DEFINE_MUTEX(wq_pool_mutex);"
HEAD_S = 2400.0
"""Time limit for one head: two kernels are built and booted."""


class Tree:
    """A repository whose branch for-next the lab follows, as its maintainer pushes to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        mirror = Path(os.environ["WQLAB_CACHE"]) / "mirrors/linux-6.12.git"
        subprocess.run(["git", "clone", "-q", "--bare", "--shared", mirror, path], check=True)
        self.git("read-tree", "HEAD")
        self.git("update-ref", "refs/heads/work", "HEAD")
        self.commit("workqueue: Take a pool's lock once per run of pwqs when flushing", EXAMPLE)

    def git(self, *arguments: str) -> str:
        who = {
            f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        environment = {**os.environ, **who, "GIT_INDEX_FILE": str(self.path / "push-index")}
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, env=environment, text=True, check=True, stdout=subprocess.PIPE).stdout.strip()

    def commit(self, subject: str, patch: Path, *options: str) -> str:
        """Apply a mailbox of patches on top of what is not pushed yet, as one commit; return the commit."""
        self.git("apply", "--cached", *options, str(patch))
        return self._commit(subject)

    def _commit(self, subject: str) -> str:
        made = self.git("commit-tree", "-p", "refs/heads/work", "-m", subject, self.git("write-tree"))
        self.git("update-ref", "refs/heads/work", made)
        return made

    def edit(self, subject: str, old: str, new: str) -> str:
        """Replace a text of kernel/workqueue.c, as one commit; return the commit."""
        text = self.git("show", f"refs/heads/work:{FILE}") + "\n"
        assert text.count(old) == 1, old
        changed = self.path / "changed"
        changed.write_text(text.replace(old, new))
        self.git("update-index", "--cacheinfo", f"100644,{self.git('hash-object', '-w', str(changed))},{FILE}")
        return self._commit(subject)

    def push(self) -> str:
        """Let for-next be what was committed; return the head."""
        self.git("update-ref", "refs/heads/for-next", "refs/heads/work")
        return self.git("rev-parse", "refs/heads/for-next")


@dataclass
class World:
    """The lab, what it follows and whom it tells, and the heads by what was pushed."""

    lab: Lab
    tree: Tree
    hook: Receiver
    secret: str
    heads: dict[str, str] = field(default_factory=dict)
    culprit: str = ""

    def ask(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.lab.environment['WQLAB_TOKEN']}"}
        return httpx.get(f"{self.lab.url}/api/v1/{path}", headers=headers, timeout=60).raise_for_status().json()

    def line(self, metric: str = "locks_per_flush") -> dict[str, Any]:
        """Return the line of a metric with its points."""
        (found,) = self.ask(f"history/lines?tree={TREE}&metric={metric}")["items"]
        data: dict[str, Any] = self.ask(f"history/lines/{found['id']}")
        return data

    def shifts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask(f"history/shifts?tree={TREE}")["items"]
        return found

    def listed(self) -> list[dict[str, Any]]:
        """Return the heads that the lab has seen; none before its first tick has read the operator's files."""
        shown = self.lab.wqlab("watched-tree", "show", TREE, "--json", codes=(0, 2))
        found: list[dict[str, Any]] = json.loads(shown)["items"] if shown else []
        return found

    def measure(self, name: str) -> None:
        """Push what was committed, and wait until the lab has measured it and has added it to the history."""
        commit = self.heads[name] = self.tree.push()
        self.lab.wqlab("watched-tree", "check", TREE)

        def measured() -> bool:
            listed = self.listed()
            state = next((head["state"] for head in listed if head["commit"] == commit), "")
            assert state not in {"failed", "skipped"}, listed
            return state == "measured"

        wait_for(measured, HEAD_S, f"{name} is measured")


def answers(lab: Lab) -> bool:
    """Return True if the API is ready: `up` starts it once more at its end."""
    try:
        return httpx.get(f"{lab.url}/readyz").is_success
    except httpx.TransportError:
        return False


def wait_for(condition: Callable[[], bool], limit_s: float, what: str) -> None:
    """Wait for what the lab does by itself: nothing outside tells of it."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + limit_s, f"not within {limit_s:.0f} s: {what}"
        time.sleep(1)
    print(f"{time.monotonic() - began:6.0f} s until {what}", flush=True)


def write_intake(data: Path, tree_url: str) -> None:
    """Write the operator's files: the tree, and what is watched of it."""
    watched = {
        "name": TREE, "tree": TREE, "branches": ["for-next"], "targets": ["xfs-fsync@tiny"], "blocks": 2,
        "owner": "admin", "every_minutes": 1440,
    }  # fmt: skip
    (data / "intake").mkdir()
    (data / "intake/watched-trees.yaml").write_text(yaml.safe_dump({"watched_trees": [watched]}))
    trees = data / "kernels/trees.yaml"
    spec = yaml.safe_load(trees.read_text())
    spec["trees"].append({"name": TREE, "summary": "a test's tree", "url": tree_url, "branch": "for-next"})
    trees.write_text(yaml.safe_dump(spec))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Push three heads, the last of which has the regression between two harmless commits, and two more after it."""
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    data = make_data(state, "tiny")
    (state / "git").mkdir()
    mirror = Path(os.environ["WQLAB_CACHE"]) / f"mirrors/{TREE}.git"
    shutil.rmtree(mirror, ignore_errors=True)
    with git_daemon(state / "git") as git_url, receiver(Answer(200)) as hook:
        tree = Tree(state / "git/next.git")
        tree.push()
        # The lab's copy of the tree, which it would otherwise download.
        subprocess.run(["git", "clone", "-q", "--bare", "--shared", tree.path, mirror], check=True)
        write_intake(data, f"{git_url}/next.git")
        try:
            with running_lab(state, data, {"WQLAB_PRIVATE_WEBHOOK_HOSTS": hook.host}) as lab:
                wait_for(lambda: answers(lab), 600, "the API answers")
                added = lab.wqlab("webhook", "add", hook.url, "--event", "regression.found", "--json")
                world = World(lab, tree, hook, json.loads(added)["secret"])
                push_all(world)
                yield world
        finally:
            shutil.rmtree(mirror, ignore_errors=True)


def push_all(world: World) -> None:
    tree = world.tree
    wait_for(lambda: bool(world.listed()), 300, "the first head is seen")
    tree.edit("workqueue: Explain a buffer", BUFFER, f"/* Kept for the next attributes. */\n{BUFFER}")
    world.measure("harmless")
    tree.edit("workqueue: Name the buffer", BUFFER, BUFFER.replace("buf for", "buffer of"))
    world.measure("same kernel")
    tree.edit("workqueue: Remove the explanation", "/* Kept for the next attributes. */\n", "")
    world.culprit = tree.commit("workqueue: Walk the pwqs of a flush one by one", EXAMPLE, "--reverse")
    tree.edit("workqueue: Explain a mutex", MUTEX, f"/* Taken before the pools' locks. */\n{MUTEX}")
    world.measure("regression")
    tree.edit("workqueue: Name the buffer as before", BUFFER.replace("buf for", "buffer of"), BUFFER)
    world.measure("same kernel again")
    wait_for(
        lambda: bool(world.shifts()) and all(shift["state"] != "new" for shift in world.shifts()),
        HEAD_S,
        "every shift is measured again",
    )


def test_each_head_has_a_point_and_only_one_the_regression(world: World) -> None:
    line = world.line()
    commits = {commit: name for name, commit in world.heads.items()}
    points = {commits.get(point["head"]["commit"], "start"): point for point in line["series"]}
    assert list(points) == ["start", "harmless", "same kernel", "regression", "same kernel again"]
    values = [point["value"] for point in points.values()]
    assert values[0] == values[1] == values[2] < values[3] == values[4]
    assert {name: point["verdict"] for name, point in points.items()} == {
        "start": None, "harmless": "equivalent", "same kernel": "equivalent", "regression": "regression",
        "same kernel again": "equivalent",
    }  # fmt: skip
    assert {name for name, point in points.items() if point["n"] == 0} == {"same kernel", "same kernel again"}
    assert [point["cut"] for point in line["series"]] == [""] * 5


def test_the_shift_is_confirmed_by_a_paired_run_of_both_sides(world: World) -> None:
    (shift,) = [each for each in world.shifts() if each["line"]["metric"] == "locks_per_flush"]
    assert (shift["state"], shift["source"], shift["worse"]) == ("confirmed", "verdict", True)
    assert (shift["before"]["commit"], shift["after"]["commit"]) == (
        world.heads["same kernel"], world.heads["regression"],
    )  # fmt: skip
    assert shift["suspected_effect"] == shift["effect"] >= 1
    assert shift["verdict"] == "regression"
    report = world.lab.finish(shift["submission_id"], codes=(0, 1))
    (target,) = report["targets"]
    assert (target["device_type"], target["verdict"], target["blocks_completed"]) == ("tiny", "regression", 2)
    first = next(point for point in world.line()["series"] if point["head"]["commit"] == world.heads["regression"])
    assert shift["submission_id"] != first["submission_id"], "both sides were measured again"


def test_the_regression_is_told_once_it_is_confirmed(world: World) -> None:
    (shift,) = [each for each in world.shifts() if each["line"]["metric"] == "locks_per_flush"]
    wait_for(lambda: bool(world.hook.requests), 120, "the webhook is called")
    told = [Signer(world.secret).verify(each.body, each.headers) for each in world.hook.requests]
    assert [(event["type"], event["data"]["submission"]) for event in told] == [
        ("regression.found", shift["submission_id"])
    ]


def test_the_pages_show_it(world: World, chromium: Browser) -> None:
    headers = {"Authorization": f"Bearer {world.lab.environment['WQLAB_TOKEN']}"}
    made = httpx.post(
        f"{world.lab.url}/api/v1/users", json={"name": "reader", "role": "viewer"}, headers=headers
    ).raise_for_status()
    person = Person(chromium, world.lab.url)
    person.sign_in("reader", made.json()["password"])
    page = person.page
    person.open("/history")
    expect(page.get_by_role("heading", name="This week")).to_be_visible()
    row = page.get_by_role("table", name=re.compile("^tiny:")).get_by_role("row", name=re.compile("locks_per_flush "))
    expect(row.first).to_contain_text("worse")
    expect(row.first).to_contain_text("confirmed")
    person.open(f"/history/{world.line()['id']}")
    slider = page.get_by_role("slider", name="Heads of locks_per_flush on tiny")
    expect(slider).to_be_visible()
    expect(page.locator("[data-shift]")).to_have_count(1)
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(
        page.get_by_text("not booted: the kernel is byte-identical to that of the head before").first
    ).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"{world.heads['regression'][:12]}.*regression"))
    person.close()
    assert person.errors == []


# Here is checked which commit of the range the bisection names: `world.culprit`.
