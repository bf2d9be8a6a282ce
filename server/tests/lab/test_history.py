"""The lab's timeline and a device's history."""

from __future__ import annotations

from datetime import timedelta

import pytest

from wqlab_contracts.enums import Outcome
from wqlab_server.lab.history import TimelineFilter, device_history, timeline
from wqlab_server.models import Device
from wqlab_server.storage.db import clock

from ..support.lab import LabUnderTest, RunSession, infrastructure_result, passing_run, results

pytestmark = pytest.mark.integration

HOUR = timedelta(hours=1)


def test_timeline_lists_the_attempts_in_the_span_and_on_the_device(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.on_run = results(infrastructure_result(), passing_run)
    lab.finished(lab.submit("locks@device"))
    with lab.transaction() as session:
        now = clock(session)
        both = timeline(session, TimelineFilter(now - HOUR, now), None, 10)
        second = timeline(session, TimelineFilter(now - HOUR, now, device="device-2"), None, 10)
        earlier = timeline(session, TimelineFilter(now - 3 * HOUR, now - 2 * HOUR), None, 10)
        page = timeline(session, TimelineFilter(now - HOUR, now), None, 1)
    assert [(bar.device, bar.outcome) for bar in both.bars] == [
        ("device-1", Outcome.FAILED),
        ("device-2", Outcome.PASSED),
    ]
    assert both.next is None
    assert [bar.device for bar in second.bars] == ["device-2"]
    assert [device.name for device in second.devices] == ["device-2"]
    assert earlier.bars == []
    assert (len(page.bars), page.next is None) == (1, False)


def test_device_history_counts_boots_and_shows_consoles(lab: LabUnderTest, run: RunSession) -> None:
    run.send_block(run.remaining[0])
    with lab.transaction() as session:
        history = device_history(session, session.get_one(Device, "single-1"), None, 10)
    (attempt,) = history.runs.items
    assert (attempt.run_id, attempt.boots, history.runs.total) == (run.job.run_id, 2, 1)
    assert [console.boot_id for console in history.consoles] == [attempt.last_boot_id, (attempt.last_boot_id or 0) - 1]
