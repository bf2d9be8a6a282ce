"""What a LAVA server says of its devices, and what that means for who gets them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wqlab_contracts.enums import DeviceHealth
from wqlab_contracts.messages import LavaDevice, LavaPool
from wqlab_server.estimates.lava_pools import Published, Standing, standing
from wqlab_server.lab.allocate import Assignment, Unit, Waiting, allocate

NOW = datetime(2026, 11, 1, tzinfo=UTC)
GOOD = DeviceHealth.GOOD


def pool(**changes: object) -> LavaPool:
    devices = {
        "q1": LavaDevice(device_type="qemu", state="Idle", health="Good"),
        "q2": LavaDevice(device_type="qemu", state="Running", health="Good"),
        "q3": LavaDevice(device_type="qemu", state="Idle", health="Maintenance"),
    }
    return LavaPool(url="http://lava", version="2026.10", devices=devices, queued={"qemu": 3}).model_copy(
        update=changes
    )


def stands(device: str, told: LavaPool | None, age_s: float = 5, *, ours: bool = False) -> Standing:
    published = {"far": Published(told, NOW - timedelta(seconds=age_s))} if told else {}
    return standing(device, "far", "lava", published, NOW, ours=ours)


def test_a_labgrid_device_is_what_its_own_health_says() -> None:
    assert standing("x", "local", "labgrid", {}, NOW, ours=False) == Standing()


@pytest.mark.parametrize(
    ("device", "told", "age_s", "reason"),
    [
        ("q1", None, 0, "no worker of lab far"),
        ("q1", pool(), 600, "was not heard of for 10 min"),
        ("q1", pool(problem="LAVA at http://lava does not answer"), 5, "does not answer"),
        ("q9", pool(), 5, "has no device q9"),
        ("q3", pool(), 5, "LAVA says Maintenance"),
    ],
)
def test_why_a_device_is_away(device: str, told: LavaPool | None, age_s: float, reason: str) -> None:
    assert reason in stands(device, told, age_s).away


def test_what_stands_before_a_new_run() -> None:
    """Three jobs wait for three devices; one of these is at work for others."""
    assert stands("q1", pool()) == Standing(backlog=1.0)
    assert stands("q2", pool()) == Standing(backlog=2.0, elsewhere="LAVA says Running, for others")
    assert stands("q2", pool(), ours=True) == Standing(backlog=1.0)


def unit(name: str, **more: object) -> Unit:
    return Unit(name, "tiny", str(more.pop("lab", "local")), GOOD, **more)  # type: ignore[arg-type]


def test_the_pool_with_the_shortest_queue_gets_the_run() -> None:
    units = [unit("a", lab="far", backend="lava", backlog=1.0), unit("b", lab="far", backend="lava"), unit("c")]
    run = Waiting(1, "ann", 50, 0, "tiny")
    assert allocate(units, [], [run], {}) == [Assignment(1, "b")]
    assert allocate(units[:1] + units[2:], [], [run], {}) == [Assignment(1, "c")]
    assert allocate(units[:1], [], [run], {}) == [Assignment(1, "a")], "a queue is better than none"


def test_a_run_that_says_its_backend_gets_no_other() -> None:
    lava, labgrid = unit("a", lab="far", backend="lava", backlog=9.0), unit("c")
    asked = Waiting(1, "ann", 50, 0, "tiny", backend="lava")
    assert allocate([lava, labgrid], [], [asked], {}) == [Assignment(1, "a")]
    assert allocate([labgrid], [], [asked], {}) == []


def test_a_device_that_is_away_is_given_to_nobody() -> None:
    away = unit("a", lab="far", backend="lava", away=True)
    check = Waiting(2, "lab", 100, 0, "tiny", wanted_device="a")
    assert allocate([away], [], [Waiting(1, "ann", 50, 0, "tiny"), check], {}) == []
