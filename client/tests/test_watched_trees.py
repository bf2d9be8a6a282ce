"""`wqlab watched-tree` against the real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.lab import LabUnderTest, oid

pytestmark = pytest.mark.integration
SPEC = "name: next\ntree: lab-tree\nbranches: [for-next]\ntargets: [locks@device]\nowner: dev\n"


def test_watched_tree_from_add_to_remove(ask: Wqlab, real_lab: LabUnderTest, tmp_path: Path) -> None:
    assert "no watched trees" in ask("watched-tree", "list").err
    file = tmp_path / "next.yaml"
    file.write_text(SPEC)
    added = ask("watched-tree", "add", str(file))
    assert (added.code, added.out) == (0, "watched tree next is watched\n"), added.err
    assert ask("watched-tree", "add", str(file)).code == 2
    file.write_text(f"{SPEC}batch: range\nevery_minutes: 30\n")
    assert ask("watched-tree", "change", str(file)).out == "watched tree next is changed\n"
    real_lab.submit("locks@device")
    for number, state in enumerate(("start", "skipped", "measured"), start=1):
        real_lab.sql(
            "INSERT INTO watched_heads (tree_name, ref, name, commit, state, reason, seen_at, attempts, verdicts,"
            " devices, cut, ranged) VALUES ('next', 'for-next', 'for-next', :commit, :state, '', now(), 0, '[]', '{}',"
            " '', false)",
            commit=oid(f"{number}"),
            state=state,
        )
    real_lab.sql("UPDATE watched_heads SET reason = 'starting point' WHERE id = 1")
    real_lab.sql("UPDATE watched_heads SET reason = 'seen too late', skipped_by_id = 3 WHERE id = 2")
    real_lab.sql(
        "UPDATE watched_heads SET parent_id = 1, submission_id = 1, verdicts = :verdicts, ranged = true,"
        " cut = 'other device', related = :related WHERE id = 3",
        verdicts='["regression"]',
        related='{"ahead": 7, "behind": 0}',
    )
    real_lab.sql("UPDATE watched_trees SET waiting_for = 'quiet hours', problem = 'no answer'")
    listed = ask("watched-tree", "list")
    assert "1 start, 1 measured, 1 skipped" in listed.out
    assert "next: heads wait: quiet hours" in listed.err
    shown = ask("watched-tree", "show", "next").out
    assert f"{oid('3')[:12]}: measured against {oid('1')[:12]} in submission 1 (7 commits): regression" in shown
    assert f"to bisect: {oid('1')[:12]}..{oid('3')[:12]}, 7 commits; heads between: {oid('2')[:12]}" in shown
    assert "history is cut: other device" in shown and "seen too late" in shown
    assert "batch range" in shown and "every 30 minutes" in shown
    assert "looked at now" in ask("watched-tree", "check", "next").out
    assert ask("watched-tree", "off", "next").out == "watched tree next is off\n"
    refused = ask("watched-tree", "check", "next")
    assert refused.code == 2 and "is disabled" in refused.err
    assert ask("watched-tree", "on", "next").out == "watched tree next is on\n"
    assert ask("watched-tree", "remove", "next").out == "watched tree next is removed\n"
    assert ask("watched-tree", "show", "next").code == 2
    assert ask("watched-tree", "add", str(file)).code == 0, "it can be added again, and its heads are still known"
    assert "in submission 1" in ask("watched-tree", "show", "next").out


def test_mistakes_are_told(ask: Wqlab, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(SPEC.replace("branches", "branch"))
    ended = ask("watched-tree", "add", str(file))
    assert ended.code == 2 and "branch" in ended.err and "bad.yaml" in ended.err
    file.write_text(SPEC.replace("lab-tree", "nowhere").replace("locks@", "nothing@").replace("dev\n", "nobody\n"))
    ended = ask("watched-tree", "add", str(file))
    for text in ("no tree 'nowhere'", "no plan 'nothing'", "no account 'nobody'"):
        assert text in ended.err
