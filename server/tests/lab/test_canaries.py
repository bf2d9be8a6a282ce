"""Which devices run canaries, and which canaries have to stop. Pure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wqlab_contracts.enums import DeviceHealth
from wqlab_server.lab.allocate import HeldDevice, PoolDevice, WaitingRun
from wqlab_server.lab.canaries import CanaryDevice, Pool, in_the_way, select_devices

IDLE = CanaryDevice("a-1", "local", False, DeviceHealth.GOOD, True, False, 1e6, 120, 0)


def select(*devices: CanaryDevice, lab_idle: bool = True, **more: object) -> list[str]:
    return select_devices(
        devices,
        more.get("held", {}),  # type: ignore[arg-type]
        more.get("capacity", {}),  # type: ignore[arg-type]
        idle_after_s=900,
        retry_after_s=3600,
        lab_idle=lab_idle,
    )


def test_idle_good_device_is_chosen() -> None:
    assert select(IDLE) == ["a-1"]


@pytest.mark.parametrize(
    "change",
    [
        {"health": DeviceHealth.SUSPECT},
        {"health": DeviceHealth.UNKNOWN},
        {"free": False},
        {"needed": True},
        {"idle_s": 899},
        {"minutes_used": 120},
        {"minutes_allowed": 0},
        {"failed_s": 3599},
    ],
)
def test_any_other_device_is_not(change: dict[str, object]) -> None:
    assert select(replace(IDLE, **change)) == []  # type: ignore[arg-type]


def test_emulated_devices_need_an_idle_lab_and_run_one_at_a_time() -> None:
    devices = [replace(IDLE, name=f"a-{number}", emulated=True) for number in (1, 2)]
    assert select(*devices) == ["a-1"]
    assert select(*devices, lab_idle=False) == []
    assert select(*devices, held={"local": 1}) == []
    assert select(*[replace(each, emulated=False) for each in devices], lab_idle=False) == ["a-1", "a-2"]


def test_capacity_of_a_lab_is_kept_and_the_least_used_device_comes_first() -> None:
    devices = [replace(IDLE, name="a-1", minutes_used=30), replace(IDLE, name="a-2", minutes_used=10)]
    assert select(*devices, capacity={"local": 1}) == ["a-2"]
    assert select(*devices, capacity={"local": 1}, held={"local": 1}) == []


POOL = [PoolDevice(name, name[0], "local", DeviceHealth.GOOD) for name in ("a-1", "a-2", "b-1")]


def stopped(
    canaries: set[str], *waiting: WaitingRun, held: tuple[str, ...] = (), capacity: dict[str, int] | None = None
) -> set[str]:
    """Return the canaries to stop, after the waiting runs have got what is free."""
    holders = [HeldDevice(name, "dev") for name in held] + [HeldDevice(name, "") for name in canaries]
    pool = Pool(POOL, holders, waiting, capacity or {}, dict.fromkeys(canaries, 1))
    return in_the_way(pool, pool.assign())


def run(number: int, device_type: str, wanted: str | None = None, **more: object) -> WaitingRun:
    return WaitingRun(number, "dev", 50, 0.0, device_type, wanted_device=wanted, checks_health=False, **more)  # type: ignore[arg-type]


def test_canary_stops_only_if_no_other_device_is_free() -> None:
    assert stopped({"a-1"}, run(1, "a")) == set(), "a-2 is free"
    assert stopped({"a-1"}, run(1, "a"), held=("a-2",)) == {"a-1"}
    assert stopped({"a-1", "a-2"}, run(1, "a")) in ({"a-1"}, {"a-2"}), "one of both is enough"
    assert stopped({"a-1", "a-2"}, run(1, "a"), run(2, "a")) == {"a-1", "a-2"}


def test_canary_stops_for_a_run_that_wants_its_device() -> None:
    assert stopped({"a-1"}, run(1, "a", wanted="a-1")) == {"a-1"}
    assert stopped({"a-1"}, run(1, "b")) == set()
    assert stopped({"a-1"}) == set()


def test_canary_stops_for_the_capacity_of_its_lab() -> None:
    assert stopped({"a-1"}, run(1, "b"), capacity={"local": 1}) == {"a-1"}
    assert stopped({"a-1"}, run(1, "b"), capacity={"local": 2}) == set()
    assert len(stopped({"a-1", "a-2"}, run(1, "b"), capacity={"local": 2})) == 1
    assert stopped({"a-1"}, run(1, "b"), held=("b-1",), capacity={"local": 2}) == set(), "the device is held"
