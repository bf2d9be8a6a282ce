"""Which commits of watched trees may be fetched by their id, from which repository."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wqlab_contracts.enums import WatchedHeadState
from wqlab_contracts.specs import Tree, TreeWatch
from wqlab_server.http.problems import ApiProblem
from wqlab_server.intake import watches
from wqlab_server.jobs.seen_commits import seen_commits
from wqlab_server.models import WatchedHead
from wqlab_server.storage.db import clock

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration

COMMIT = "a" * 40
OWN = Tree(name="lab-tree", summary="", url="https://git.example.org/linux.git")
FORK = "https://git.example.org/mallory/linux.git"


def watch(lab: LabUnderTest, url: str | None, *, head: bool = True, name: str = "next") -> None:
    spec = spec_of(url, name)
    with lab.transaction() as session:
        watches.create(session, spec, lab.data, lab.settings, by="mallory")
        if head:
            known = WatchedHead(watch=name, ref="main", name="main", commit=COMMIT, seen_at=clock(session))
            known.state = WatchedHeadState.START
            session.add(known)


def spec_of(url: str | None, name: str = "next") -> TreeWatch:
    fields: dict[str, Any] = {"tree": "lab-tree", "branches": ["main"], "targets": ["locks@device"], "owner": "dev"}
    return TreeWatch(kind="tree", name=name, url=url, **fields)


@pytest.mark.parametrize(
    ("watched", "tree", "seen"),
    [
        pytest.param(None, OWN, True, id="the lab's own"),
        pytest.param(FORK, OWN, False, id="a fork's head, from the lab's tree"),
        pytest.param(FORK, OWN.model_copy(update={"url": FORK, "origin": "user"}), True, id="the fork's own"),
        pytest.param(None, OWN.model_copy(update={"url": FORK, "origin": "user"}), False, id="from a fork"),
        pytest.param(OWN.url, OWN, True, id="the lab's own by its URL"),
    ],
)
def test_a_head_counts_in_its_own_repository(lab: LabUnderTest, watched: str | None, tree: Tree, seen: bool) -> None:
    watch(lab, watched)
    with lab.transaction() as session:
        assert seen_commits(session, tree, [COMMIT, "b" * 40]) == ([COMMIT] if seen else [])


def test_heads_do_not_become_those_of_another_repository(lab: LabUnderTest) -> None:
    watch(lab, FORK)
    watch(lab, FORK, head=False, name="unused")
    with lab.transaction() as session, pytest.raises(ApiProblem, match="another repository"):
        watches.change(session, "next", spec_of(None), lab.data, lab.settings, by="mallory")
    with lab.transaction() as session:
        watches.change(session, "unused", spec_of(None, "unused"), lab.data, lab.settings, by="mallory")
        watches.remove(session, "next")
    with lab.transaction() as session, pytest.raises(ApiProblem, match="another repository"):
        watches.create(session, spec_of(None), lab.data, lab.settings, by="mallory")


def test_a_tree_of_the_data_folder_takes_over_no_heads_of_a_fork(lab: LabUnderTest) -> None:
    watch(lab, FORK)
    with lab.transaction() as session:
        watches.sync_files(session, replace(lab.data, watches={"next": spec_of(None)}))
    with lab.transaction() as session:
        assert seen_commits(session, OWN, [COMMIT]) == []
        with pytest.raises(ApiProblem, match="next"):
            watches.get(session, "next")
