"""Submissions that fail before a run: a request with mistakes, a series that does not apply or compile."""

from __future__ import annotations

import pytest

from .conftest import NOOP, Lab

pytestmark = pytest.mark.scenario


def test_conflict_names_file_and_hunk(lab: Lab, conflict: int) -> None:
    report = lab.finish(conflict, codes=(3,))
    failure = report["submission"]["failure"]
    assert failure["kind"] == "user"
    assert "kernel/workqueue.c" in failure["summary"] + failure["excerpt"]


def test_compile_error_is_a_user_failure(lab: Lab, broken: int) -> None:
    failure = lab.finish(broken, codes=(3,))["submission"]["failure"]
    assert failure["kind"] == "user"
    assert "kernel/workqueue.c:" in failure["excerpt"] and "error:" in failure["excerpt"]


def test_refused_request_names_each_mistake(lab: Lab) -> None:
    answer = lab.refused("submit", "--mbox", str(NOOP), "--target", "xfs-fsnc@tiny", "--target", "xfs-fsync@teeny")
    assert "xfs-fsync" in answer and "tiny" in answer
