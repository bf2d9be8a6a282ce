"""A regression in a watched tree is found, confirmed, bisected to its commit, shown and told without a hand, among
changes that change nothing.

The tree is the lab's kernel with the example series, which takes fewer locks per flush. One of the commits that are
pushed to it takes the example back: the locks per flush rise again.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, expect
from standardwebhooks import Webhook as Signer

from .browser import Person
from .conftest import EXAMPLE, ROOT, Lab, make_data, running_lab
from .pushed_tree import BUFFER, MUTEX, Tree, known_to_lab, wait_for
from .user_git import git_daemon

sys.path[:0] = [str(ROOT)]

from server.tests.support.receiver import Answer, Receiver, receiver  # noqa: E402

pytestmark = [pytest.mark.scenario, pytest.mark.nightly, pytest.mark.timeout(5400)]

TREE = "history-next"
CULPRIT = "workqueue: Walk the pwqs of a flush one by one"
EVENTS = ("--event", "regression.found", "--event", "culprit.found")
"""Time limit for one head: two kernels are built and booted."""


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
        return httpx.get(f"{self.lab.url}/api/v1/{path}", headers=headers, timeout=None).raise_for_status().json()

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
        try:
            found: list[dict[str, Any]] = self.ask(f"watches/{TREE}/heads")["items"]
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:
                raise
            return []
        return found

    def bisections(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("bisections")["items"]
        return found

    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """Return type and data of what the webhook got. The signatures are checked as of then: five minutes later a
        library refuses them."""
        signer, found = Signer(self.secret), []
        for each in self.hook.requests:
            at = datetime.fromtimestamp(int(each.headers["webhook-timestamp"]), tz=UTC)
            signature = signer.sign(each.headers["webhook-id"], at, each.body)
            assert signature in each.headers["webhook-signature"].split()
            event = json.loads(each.body)
            found.append((event["type"], event["data"]))
        return found

    def measure(self, name: str) -> None:
        """Push what was committed, and wait until the lab has measured it and has added it to the history."""
        commit = self.heads[name] = self.tree.push()
        self.lab.wqlab("watches", "check", TREE)

        def measured() -> bool:
            listed = self.listed()
            state = next((head["state"] for head in listed if head["commit"] == commit), "")
            assert state not in {"failed", "skipped"}, listed
            return state == "measured"

        wait_for(measured, f"{name} is measured")


def answers(lab: Lab) -> bool:
    """Return True if the API is ready: `up` starts it once more at its end."""
    try:
        return httpx.get(f"{lab.url}/readyz", timeout=None).is_success
    except httpx.TransportError:
        return False


def write_intake(data: Path) -> None:
    """Write the operator's file of what is watched."""
    watched = {
        "kind": "tree", "name": TREE, "enabled": True, "tree": TREE,
        "branches": ["for-next"], "targets": ["xfs-fsync@tiny"], "blocks": 2,
        "owner": "admin", "every_minutes": 1440,
    }  # fmt: skip
    (data / "intake/watches").mkdir(parents=True)
    (data / f"intake/watches/{TREE}.yaml").write_text(yaml.safe_dump(watched))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Push three heads, the last of which has the regression between two harmless commits, and two more after it."""
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    data = make_data(state, "tiny")
    (state / "git").mkdir()
    write_intake(data)
    tree = Tree(state / "git/next.git")
    tree.commit("workqueue: Take a pool's lock once per run of pwqs when flushing", EXAMPLE)
    tree.push()
    with (
        git_daemon(state / "git") as git_url,
        receiver(Answer(200)) as hook,
        known_to_lab(tree, TREE, f"{git_url}/next.git", data),
        running_lab(state, data, {"WQLAB_PRIVATE_WEBHOOK_HOSTS": hook.host}) as lab,
    ):
        wait_for(lambda: answers(lab), "the API answers")
        added = lab.wqlab("webhook", "add", hook.url, *EVENTS, "--json")
        world = World(lab, tree, hook, json.loads(added)["secret"])
        push_all(world)
        yield world


def push_all(world: World) -> None:
    tree = world.tree
    wait_for(lambda: bool(world.listed()), "the first head is seen")
    tree.edit("workqueue: Explain a buffer", BUFFER, f"/* Kept for the next attributes. */\n{BUFFER}")
    world.measure("harmless")
    tree.edit("workqueue: Name the buffer", BUFFER, BUFFER.replace("buf for", "buffer of"))
    world.measure("same kernel")
    tree.edit("workqueue: Remove the explanation", "/* Kept for the next attributes. */\n", "")
    world.culprit = tree.commit(CULPRIT, EXAMPLE, "--reverse")
    tree.edit("workqueue: Explain a mutex", MUTEX, f"/* Taken before the pools' locks. */\n{MUTEX}")
    world.measure("regression")
    tree.edit("workqueue: Name the buffer as before", BUFFER.replace("buf for", "buffer of"), BUFFER)
    world.measure("same kernel again")
    wait_for(
        lambda: bool(world.shifts()) and all(shift["state"] != "new" for shift in world.shifts()),
        "every shift is measured again",
    )
    wait_for(
        lambda: bool(world.bisections()) and all(each["ended_at"] for each in world.bisections()),
        "every bisection has ended",
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


def test_the_regression_and_then_its_commit_are_told(world: World) -> None:
    (shift,) = [each for each in world.shifts() if each["line"]["metric"] == "locks_per_flush"]
    (bisection,) = world.bisections()
    wait_for(lambda: len(world.hook.requests) >= 2, "the webhook is called")
    (first, regression), (second, culprit) = world.told()
    assert (first, regression["submission"]) == ("regression.found", shift["submission_id"])
    assert (second, culprit["submission"], culprit["shift"]) == ("culprit.found", shift["submission_id"], shift["id"])
    assert (culprit["bisection"], culprit["culprit"], culprit["verdict"]) == (
        bisection["id"], world.culprit, "regression",
    )  # fmt: skip
    assert CULPRIT in culprit["headline"] and world.culprit[:12] in culprit["headline"]


def sign_in(world: World, chromium: Browser, name: str) -> Person:
    """Add an account that may read, and sign it in."""
    headers = {"Authorization": f"Bearer {world.lab.environment['WQLAB_TOKEN']}"}
    made = httpx.post(
        f"{world.lab.url}/api/v1/users", json={"name": name, "role": "viewer"}, headers=headers
    ).raise_for_status()
    person = Person(chromium, world.lab.url)
    person.sign_in(name, made.json()["password"])
    return person


def test_the_pages_show_it(world: World, chromium: Browser) -> None:
    person = sign_in(world, chromium, "reader")
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


def test_the_regression_is_bisected_to_its_commit(world: World) -> None:
    (found,) = world.bisections()
    (shift,) = [each for each in world.shifts() if each["line"]["metric"] == "locks_per_flush"]
    assert (found["state"], found["watch"], found["shift_id"]) == ("found", TREE, shift["id"]), found["reason"]
    assert found["request"]["metric"] == "locks_per_flush"
    assert (found["good"], found["bad"]) == (world.heads["same kernel"], world.heads["regression"])
    assert (found["culprit"]["commit"], found["first"]) == (world.culprit, world.culprit)
    assert (found["culprit"]["subject"], found["culprit_effect"]) == (CULPRIT, shift["effect"])
    assert found["probability"] >= 0.95
    data = world.ask(f"bisections/{found['id']}")
    (level,) = data["levels"]
    assert [each["commit"] == world.culprit for each in level["commits"]] == [False, True, False]
    ends, *probes, confirmation = data["steps"]
    assert (ends["kind"], ends["submission_id"]) == ("ends", shift["submission_id"]), "the ends are not measured twice"
    assert {probe["kind"] for probe in probes} == {"probe"}
    assert (confirmation["kind"], confirmation["candidate"], confirmation["verdict"]) == (
        "confirm", world.culprit, "regression",
    )  # fmt: skip


def test_the_pages_lead_from_the_dashboard_to_the_commit(world: World, chromium: Browser, pictures: Path) -> None:
    (bisection,) = world.bisections()
    person = sign_in(world, chromium, "second-reader")
    page = person.page
    person.open("/history")
    row = page.get_by_role("table", name=re.compile("^tiny:")).get_by_role("row", name=re.compile("locks_per_flush "))
    row.first.get_by_role("link").first.click()
    page.wait_for_url(re.compile("/history/shifts/"))
    expect(page.get_by_text(CULPRIT).first).to_be_visible()
    person.photograph(pictures, "shift-bisected-in-a-lab")
    page.get_by_role("link", name=f"bisection {bisection['id']}").click()
    expect(page.get_by_role("heading", level=1, name="Bisection of locks_per_flush on tiny")).to_be_visible()
    expect(page.get_by_text(CULPRIT).first).to_be_visible()
    person.photograph(pictures, "bisection-in-a-lab")
    person.open("/bisections")
    row = page.get_by_role("table", name="Bisections").get_by_role("row", name=re.compile("locks_per_flush on tiny"))
    expect(row).to_contain_text("found")
    expect(row).to_contain_text(world.culprit[:12])
    # Each submission leads back to the bisection.
    for step in world.ask(f"bisections/{bisection['id']}")["steps"]:
        person.open(f"/submissions/{step['submission_id']}")
        expect(page.get_by_role("link", name=f"bisection {bisection['id']}")).to_be_visible()
    person.close()
    assert person.errors == []
