"""When devices come free, played through. Pure. Times are seconds from now; None is a time that nobody knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass
class DeviceAvailability:
    name: str
    device_type: str
    lab: str
    free_s: float | None
    """When it comes free; None when that cannot be told."""


class Schedule:
    """Places runs one after another, each on the device that comes free first, under the labs' capacities.

    It knows no health: devices that cannot take a run are left out by who makes it.
    """

    def __init__(
        self, devices: Iterable[DeviceAvailability], at_work: Iterable[DeviceAvailability], capacity: Mapping[str, int]
    ) -> None:
        """`at_work`: every leased device of the labs, those left out of `devices` too. A lab without a capacity has no
        bound."""
        self._devices = list(devices)
        self._slots: dict[str, list[float | None]] = {}
        busy: dict[str, list[float | None]] = defaultdict(list)
        for device in at_work:
            busy[device.lab].append(device.free_s)
        for lab, most in capacity.items():
            taken = sorted(busy[lab], key=_late)
            self._slots[lab] = [*taken, *([0.0] * max(most - len(taken), 0))]

    def place(
        self, device_type: str, duration_s: float | None, *, wanted: str | None = None, not_before_s: float = 0.0
    ) -> float | None:
        """When a run that takes `duration_s` would start; None when no device of the type comes free at a known time."""
        fitting = [
            device
            for device in self._devices
            if (device.name == wanted if wanted is not None else device.device_type == device_type)
        ]
        if not fitting:
            return None
        device = min(fitting, key=lambda device: (_late(self._earliest(device)), device.name))
        earliest = self._earliest(device)
        if earliest is None:
            return None
        start = max(earliest, not_before_s)
        end = None if duration_s is None else start + duration_s
        device.free_s = end
        slots = self._slots.get(device.lab)
        if slots is not None:
            slots[slots.index(min(slots, key=_late))] = end
        return start

    def _earliest(self, device: DeviceAvailability) -> float | None:
        slots = self._slots.get(device.lab)
        slot = 0.0 if slots is None else min(slots, key=_late, default=None)
        return None if slot is None or device.free_s is None else max(slot, device.free_s)


def _late(time_s: float | None) -> float:
    return float("inf") if time_s is None else time_s
