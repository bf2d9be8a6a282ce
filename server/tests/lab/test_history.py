"""A device's history."""

from __future__ import annotations

import pytest

from wqlab_server.lab.history import device_history
from wqlab_server.models import Device

from ..support.lab import LabUnderTest, RunSession

pytestmark = pytest.mark.integration


def test_device_history_counts_boots_and_shows_consoles(lab: LabUnderTest, run: RunSession) -> None:
    run.send_block(run.remaining[0])
    with lab.transaction() as session:
        history = device_history(session, session.get_one(Device, "single-1"), None, 10)
    (attempt,) = history.runs.items
    assert (attempt.run_id, attempt.boots, history.runs.total) == (run.job.run_id, 2, 1)
    assert [console.boot_id for console in history.consoles] == [attempt.last_boot_id, (attempt.last_boot_id or 0) - 1]
