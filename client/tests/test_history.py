"""`wqlab history` against the real server."""

from __future__ import annotations

import csv
import io
import json

import pytest
from commandline import Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.history import VALUES, add_history
from server.tests.support.lab import LabUnderTest

pytestmark = pytest.mark.integration


@pytest.fixture
def history(ask: Wqlab, real_lab: LabUnderTest) -> Wqlab:
    run = real_lab.runs(real_lab.submit("locks@device"))[0]
    with real_lab.transaction() as session:
        add_history(session, run.id)
    return lambda *arguments: ask("history", *arguments)


def test_empty_history_says_when_it_begins(ask: Wqlab) -> None:
    assert "when the second head of a watched tree is measured" in ask("history", "lines").err


def test_lines_points_and_shifts(history: Wqlab) -> None:
    listed = history("lines", "--metric", "locks_per_flush").out
    assert "locks@device" in listed and "40 locks" in listed
    shown = history("show", "1").out
    assert "next for-next: locks_per_flush of locks@device fsync" in shown
    assert "40 locks, n=2: regression (+6 locks)" in shown
    assert "shift 1: new: locks_per_flush worse on device" in shown
    assert "suspected +6 locks by a verdict" in history("shifts", "--state", "new").out
    rows = list(csv.DictReader(io.StringIO(history("show", "1", "--csv").out)))
    assert [float(row["value"]) for row in rows] == VALUES
    assert len(json.loads(history("show", "1", "--json").out)["series"]) == len(VALUES)
    missing = history("show", "7")
    assert missing.code == 2 and "no history line 7" in missing.err


def test_shift_is_explained(history: Wqlab) -> None:
    said = history("set", "1", "--state", "explained", "--owner", "dev", "--notes", "more pools on purpose").out
    assert "shift 1: explained" in said and "owner dev" in said and "more pools on purpose" in said
    assert "nothing to change" in history("set", "1").err
    assert "only a paired run" in history("set", "1", "--state", "not_reproduced").err
    refused = history("set", "1", "--owner", "nobody")
    assert refused.code == 2 and "no account 'nobody'" in refused.err
