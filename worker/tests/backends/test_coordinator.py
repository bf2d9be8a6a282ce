"""Hold a labgrid place despite other users, dead sessions and coordinator restarts."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.backends import coordinator
from wqlab_worker.backends.coordinator import PlaceHold
from wqlab_worker.backends.session_messages import holder_name
from wqlab_worker.measure.device_interface import DeviceFailure

from .conftest import COMMANDED, DeviceLab, until

pytestmark = pytest.mark.integration
PLACE = "tiny-2"


class HeldPlace:
    """A hold with an event for its changes."""

    def __init__(self, lab: DeviceLab, run_id: int, fence: int = 1) -> None:
        self.changed = threading.Event()
        self.name = holder_name("local", run_id, fence)
        self.hold = PlaceHold(lab.coordinator, "local", PLACE, self.name, self.changed.set)

    def __enter__(self) -> HeldPlace:
        self.hold.acquire()
        return self

    def __exit__(self, *_: Any) -> None:
        self.hold.release()


@pytest.fixture(autouse=True)
def free_place(device_lab: DeviceLab) -> Iterator[None]:
    yield
    subprocess.run(_client(device_lab, "release", "--kick"), env=device_lab.environment, check=False)


def _client(lab: DeviceLab, *arguments: str) -> list[str]:
    return ["labgrid-client", "-x", lab.coordinator, "-p", PLACE, *arguments]


def test_place_is_acquired_and_released(device_lab: DeviceLab) -> None:
    with HeldPlace(device_lab, 1) as held:
        assert device_lab.holder(PLACE) == held.name
        assert {resource.cls for resource in held.hold.resources} >= {
            "NetworkPowerPort",
            "NetworkSerialPort",
            "NetworkService",
        }
        assert held.hold.lost() is None
    assert device_lab.holder(PLACE) is None


def test_dead_session_is_released_but_not_a_person(device_lab: DeviceLab) -> None:
    with HeldPlace(device_lab, 1), HeldPlace(device_lab, 2) as second:
        assert device_lab.holder(PLACE) == second.name
    device_lab.command(*_client(device_lab, "acquire"))
    try:
        with pytest.raises(DeviceFailure) as caught, HeldPlace(device_lab, 3):
            pass
        assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE
        assert not caught.value.suspect, "a person holds the place; that is no fault of the device"
        assert "labgrid-client" in caught.value.failure.advice
    finally:
        device_lab.command(*_client(device_lab, "release"))


def test_a_newer_holder_ends_the_older_session(device_lab: DeviceLab) -> None:
    with HeldPlace(device_lab, 1, fence=1) as older, HeldPlace(device_lab, 1, fence=2) as newer:
        assert older.changed.wait()
        assert "taken away" in str(older.hold.lost())
        older.hold.release()
        assert device_lab.holder(PLACE) == newer.name, "releasing the older hold does not free the place"


def test_place_is_acquired_again_after_coordinator_restart(device_lab: DeviceLab) -> None:
    with HeldPlace(device_lab, 1) as held:
        _restart(device_lab)
        until(lambda: device_lab.holder(PLACE) == held.name)
        assert held.hold.lost() is None
        # Losing the place to another client is still noticed.
        device_lab.command(*_client(device_lab, "release", "--kick"))
        assert held.changed.wait()
        assert held.hold.lost()


def test_session_waits_for_a_coordinator_that_restarts(device_lab: DeviceLab, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = threading.Event()

    original = coordinator.connect

    async def connect(address: str, holder: str) -> Any:
        try:
            return await original(address, holder)
        except DeviceFailure:
            refused.set()
            raise

    monkeypatch.setattr("wqlab_worker.backends.coordinator.connect", connect)
    held = HeldPlace(device_lab, 1)
    device_lab.kill("coordinator")
    waiting = threading.Thread(target=held.hold.acquire)
    waiting.start()
    assert refused.wait()
    _start_again(device_lab)
    waiting.join()
    assert device_lab.holder(PLACE) == held.name
    held.hold.release()


def test_an_unknown_place_is_named(device_lab: DeviceLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wqlab_worker.backends.coordinator.ACQUIRE_S", 0.5)
    hold = PlaceHold(device_lab.coordinator, "local", "nowhere", holder_name("local", 1, 1), lambda: None)
    with pytest.raises(DeviceFailure, match="nowhere"):
        hold.acquire()
    hold.release()


def test_missing_coordinator_is_an_infrastructure_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wqlab_worker.backends.coordinator.RECONNECT_S", 0.5)
    hold = PlaceHold("127.0.0.1:1", "local", PLACE, holder_name("local", 1, 1), lambda: None)
    with pytest.raises(DeviceFailure) as caught:
        hold.acquire()
    assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "Start the labgrid coordinator" in caught.value.failure.advice
    assert "127.0.0.1:1" in caught.value.failure.advice
    hold.release()


def test_missing_exporter_is_reported_with_advice(device_lab: DeviceLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wqlab_worker.backends.coordinator.ACQUIRE_S", 0.5)
    device_lab.command("labgrid-client", "-x", device_lab.coordinator, "-p", "bare", "create")
    hold = PlaceHold(device_lab.coordinator, "local", "bare", holder_name("local", 1, 1), lambda: None)
    with pytest.raises(DeviceFailure, match="no exporter offers NetworkPowerPort, NetworkSerialPort") as caught:
        hold.acquire()
    hold.release()
    device_lab.command("labgrid-client", "-x", device_lab.coordinator, "-p", "bare", "delete")
    assert "Start the labgrid exporter" in caught.value.failure.advice
    assert "group bare" in caught.value.failure.advice


def _restart(lab: DeviceLab) -> None:
    """Restart as the supervisor does after a kill -9; the exporter ends too and is restarted."""
    lab.kill("coordinator")
    _start_again(lab)


def _start_again(lab: DeviceLab) -> None:
    lab.stop("exporter")
    lab.start_coordinator()
    lab.start_exporter()
    lab.command("wqlab-bench", "places")
    # A coordinator that is killed loses the places of its last 15 seconds.
    if COMMANDED not in lab.command("labgrid-client", "-x", lab.coordinator, "places").split():
        lab.place(COMMANDED)
