"""Availability of LAVA devices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wqlab_contracts.messages import LavaDevice, LavaPool
from wqlab_server.estimates.lava_pools import Availability, PublishedPool, availability

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def pool(**changes: object) -> LavaPool:
    devices = {
        "q1": LavaDevice(device_type="qemu", state="Idle", health="Good"),
        "q2": LavaDevice(device_type="qemu", state="Running", health="Good"),
        "q3": LavaDevice(device_type="qemu", state="Idle", health="Maintenance"),
    }
    return LavaPool(url="http://lava", version="2026.10", devices=devices, queued={"qemu": 3}).model_copy(
        update=changes
    )


def lava_availability(device: str, report: LavaPool | None, age_s: float = 5, *, ours: bool = False) -> Availability:
    published = {"far": PublishedPool(report, NOW - timedelta(seconds=age_s))} if report else {}
    return availability(device, "far", "lava", published, NOW, ours=ours)


def test_labgrid_device_is_always_available() -> None:
    assert availability("x", "local", "labgrid", {}, NOW, ours=False) == Availability()


@pytest.mark.parametrize(
    ("device", "report", "age_s", "reason"),
    [
        ("q1", None, 0, "no worker of lab far"),
        ("q1", pool(), 600, "was last seen 10 min ago"),
        ("q1", pool(problem="LAVA at http://lava does not answer"), 5, "does not answer"),
        ("q9", pool(), 5, "has no device q9"),
        ("q3", pool(), 5, "LAVA reports health Maintenance"),
    ],
)
def test_unavailable_device_has_a_reason(device: str, report: LavaPool | None, age_s: float, reason: str) -> None:
    assert reason in lava_availability(device, report, age_s).unavailable_reason


def test_backlog_counts_jobs_before_a_new_run() -> None:
    """Three jobs wait for three devices, one of which runs another user's job."""
    assert lava_availability("q1", pool()) == Availability(backlog=1.0)
    assert lava_availability("q2", pool()) == Availability(
        backlog=2.0, held_elsewhere="LAVA reports Running (another user's job)"
    )
    assert lava_availability("q2", pool(), ours=True) == Availability(backlog=1.0)
