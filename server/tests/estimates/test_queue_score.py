"""The score by which runs wait for devices."""

from __future__ import annotations

from wqlab_server.estimates.queue_score import queue_score


def test_score_rises_by_a_point_per_minute_and_falls_by_25_per_device() -> None:
    assert queue_score(50, waited_s=0, devices_held=0) == 50
    assert queue_score(50, waited_s=600, devices_held=2) == 50 + 10 - 50
