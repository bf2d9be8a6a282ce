"""Simulate when devices become free. Pure. Times are in seconds from now; None is an unknown time."""

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
    """When the device becomes free; None if unknown."""


class Schedule:
    """Assign runs one after another to the device that becomes free first, within the labs' capacities.

    Health is not considered: the caller leaves out devices that cannot take a run.
    """

    def __init__(
        self, devices: Iterable[DeviceAvailability], leased: Iterable[DeviceAvailability], capacity: Mapping[str, int]
    ) -> None:
        """Start from the current state.

        `leased`: every leased device of the labs, including devices left out of `devices`. `capacity`: lab -> devices
        at once; a lab without an entry has no limit.
        """
        self._devices = list(devices)
        self._slots: dict[str, list[float | None]] = {}
        busy: dict[str, list[float | None]] = defaultdict(list)
        for device in leased:
            busy[device.lab].append(device.free_s)
        for lab, limit in capacity.items():
            taken = sorted(busy[lab], key=_unknown_last)
            self._slots[lab] = [*taken, *([0.0] * max(limit - len(taken), 0))]

    def place(
        self,
        device_type: str,
        duration_s: float | None,
        *,
        requested_device: str | None = None,
        not_before_s: float = 0.0,
    ) -> float | None:
        """Place a run that takes `duration_s` and return its start time.

        Return None when no device of the type (or `requested_device`) becomes free at a known time.
        """
        fitting = [
            device
            for device in self._devices
            if (device.name == requested_device if requested_device is not None else device.device_type == device_type)
        ]
        if not fitting:
            return None
        device = min(fitting, key=lambda device: (_unknown_last(self._earliest_start(device)), device.name))
        earliest = self._earliest_start(device)
        if earliest is None:
            return None
        start = max(earliest, not_before_s)
        end = None if duration_s is None else start + duration_s
        device.free_s = end
        slots = self._slots.get(device.lab)
        if slots is not None:
            slots[slots.index(min(slots, key=_unknown_last))] = end
        return start

    def _earliest_start(self, device: DeviceAvailability) -> float | None:
        slots = self._slots.get(device.lab)
        slot = 0.0 if slots is None else min(slots, key=_unknown_last, default=None)
        return None if slot is None or device.free_s is None else max(slot, device.free_s)


def _unknown_last(time_s: float | None) -> float:
    """Sort key that puts unknown times last."""
    return float("inf") if time_s is None else time_s
