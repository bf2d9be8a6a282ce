"""`wqlab bisect` and `wqlab bisection` against the real server."""

from __future__ import annotations

import json

import pytest
from commandline import Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.bisection_rows import add_bisection
from server.tests.support.lab import LabUnderTest

pytestmark = pytest.mark.integration

OPTIONS = ("--good", "v1", "--bad", "for-next", "--target", "locks@device", "--tree", "lab-tree")


@pytest.fixture
def ask(wqlab: Wqlab, url: str, real_lab: LabUnderTest) -> Wqlab:
    """Run the command on the real server as the administrator dev."""
    return lambda *arguments: wqlab("--url", url, "--token", real_lab.token, *arguments)


@pytest.fixture
def found(real_lab: LabUnderTest) -> str:
    """Number of a bisection that has found its commit."""
    submission = real_lab.submit("locks@device")
    with real_lab.transaction() as session:
        return str(add_bisection(session, submission))


def test_a_bisection_is_begun_listed_and_canceled(ask: Wqlab) -> None:
    assert "`wqlab bisect` begins one" in ask("bisection", "list").err
    begun = ask("bisect", *OPTIONS, "--metric", "locks_per_flush", "--param", "runtime_s=5", "--blocks", "4")
    assert begun.out == "bisection 1\n" and "wqlab bisection watch 1" in begun.err
    listed = ask("bisection", "list", "--active").out
    assert "listing" in listed and "locks@device" in listed and "v1..for-next" in listed
    shown = json.loads(ask("bisection", "show", "1", "--json").out)
    assert (shown["request"]["blocks"], shown["request"]["parameters"]) == (4, {"runtime_s": 5})
    assert ask("bisection", "cancel", "1").out == "bisection 1 is being canceled\n"


def test_mistakes_are_named_with_their_fix(ask: Wqlab) -> None:
    neither = ask("bisect", *OPTIONS)
    assert neither.code == 2 and "either --metric NAME or --failure" in neither.err
    both = ask("bisect", *OPTIONS, "--metric", "locks_per_flush", "--failure")
    assert both.code == 2
    unknown = ask("bisect", *OPTIONS, "--metric", "lock_per_flush")
    assert unknown.code == 2 and "locks_per_flush" in unknown.err
    wrong = ask("bisect", "--good", "a b", *OPTIONS[2:], "--metric", "locks_per_flush")
    assert wrong.code == 2 and "good" in wrong.err
    request = json.loads(ask("bisect", *OPTIONS, "--failure", "--first-parent", "--dry-run").out)
    assert request["failure"] and not request["into_merges"] and request["metric"] is None


def test_the_culprit_is_shown_with_its_measurements(ask: Wqlab, found: str) -> None:
    shown = ask("bisection", "show", found).out
    assert "bisection 1: found: locks_per_flush of locks@device flush" in shown
    assert "culprit: 050505050505 change 5 (probability 0.990)" in shown
    assert "against its parent: +6 locks" in shown
    assert "10 boots of search; a plain bisection takes 12" in shown
    assert "cannot be measured" in shown
    assert "suspect 050505050505 against its parent: +6 locks" in shown
    assert "050505050505 change 5" in ask("bisection", "list").out
    watched = ask("bisection", "watch", found)
    assert watched.code == 0 and "good against bad: +6 locks" in watched.err
    assert ask("bisection", "cancel", found).out == "bisection 1 has ended: found\n"
    missing = ask("bisection", "show", "9")
    assert missing.code == 2 and "no bisection 9" in missing.err
