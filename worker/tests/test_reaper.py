"""The reaper of places that dead sessions hold."""

from __future__ import annotations

from pathlib import Path

from wqlab_contracts import bench_addresses
from wqlab_contracts.bench_addresses import Published
from wqlab_contracts.messages import LabPower
from wqlab_worker.backends.session_messages import ClearRequest, HeldPlace
from wqlab_worker.claims.server import Lease
from wqlab_worker.reaper import find_stale, reap, refused_device_types

HELD = [HeldPlace(place=f"u{n}", holder=f"wqlab:local:h/run-{n}-fence-2") for n in range(3)]


def no_power() -> LabPower:
    return LabPower(power={})


def lease(device: str, run_id: int, fence: int) -> Lease:
    return Lease(device=device, run_id=run_id, fence=fence, holder="w", expires_in_s=9)


def test_place_without_matching_lease_is_stale() -> None:
    leases = [lease("u0", 0, 2), lease("u1", 1, 3), lease("u9", 2, 2)]
    assert find_stale(HELD, leases) == HELD[1:], "another fence or another device is another session"


def test_holders_are_listed_before_leases_and_only_stale_ones_are_freed() -> None:
    calls: list[object] = []

    def clearing(request: ClearRequest) -> list[HeldPlace]:
        calls.append(request.free)
        return HELD if request.free is None else request.free

    def leases() -> list[Lease]:
        calls.append("leases")
        return [lease("u0", 0, 2)]

    assert reap("coordinator:1", "local", leases, no_power, clearing) == HELD[1:]
    assert calls == [None, "leases", HELD[1:]]


def test_a_system_of_its_own_is_not_cut_off_from_its_power() -> None:
    freed: list[ClearRequest] = []

    def clearing(request: ClearRequest) -> list[HeldPlace]:
        freed.append(request)
        return HELD

    reap("coordinator:1", "local", list, lambda: LabPower(power={}, own_systems=["u1"]), clearing)
    assert freed[-1].own_systems == {"u1"}


def test_nothing_is_freed_without_stale_places() -> None:
    requests: list[ClearRequest] = []

    def clearing(request: ClearRequest) -> list[HeldPlace]:
        requests.append(request)
        return HELD

    leases = [lease(f"u{n}", n, 2) for n in range(3)]
    assert reap("coordinator:1", "local", lambda: leases, no_power, clearing) == []
    assert len(requests) == 1


def test_refused_device_types_are_those_of_the_bench(tmp_path: Path) -> None:
    assert refused_device_types(tmp_path) is None
    (tmp_path / "bench").mkdir()
    published = Published(http="http://x", capacity=1, accelerator="tcg", devices={}, refused={"huge": "too large"})
    bench_addresses.write(tmp_path, published)
    assert refused_device_types(tmp_path) == {"huge": "too large"}
