"""Sets a device's conditions over the strategy's connection, and puts back what it changed."""

from __future__ import annotations

import time

import structlog

from wqlab_contracts.messages import DeviceFacts

from . import conditions, temperature
from .conditions import Change, Standing
from .kexec import KexecStrategy
from .verify import met

log = structlog.get_logger()

TIMEOUT_S = 60.0
LOOK_AGAIN_S = 5.0
"""Nothing announces that a device has cooled down."""


class DeviceConditions:
    def __init__(self, strategy: KexecStrategy, device: DeviceFacts) -> None:
        self._strategy = strategy
        self._device = device
        self._wanted = device.conditions
        self._changes: list[Change] = []

    def set_up(self) -> dict[str, str]:
        """Facts of the boot's environment: each condition as it was found after it was set.

        Raises DeviceFailure for one that the type requires and the device does not have.
        """
        self._changes = []
        found: list[Standing] = []
        if command := conditions.apply_command(self._wanted):
            answer = self._strategy.command(command, TIMEOUT_S)
            self._changes = conditions.read_changes(answer.text)
            found = conditions.standing(self._wanted, self._changes)
        if self._wanted.start_below_c is not None:
            found.append(self._cooled_below(self._wanted.start_below_c))
        return met(self._device, found)

    def _cooled_below(self, limit: float) -> Standing:
        started = time.monotonic()
        while True:
            answer = self._strategy.command(temperature.command(), TIMEOUT_S)
            degrees = temperature.hottest(temperature.read(answer.text))
            waited = time.monotonic() - started
            if degrees is None:
                return Standing("temperature", f"below {limit:g} °C", conditions.LACKING, met=False)
            cool = degrees < limit
            if cool or waited >= self._wanted.cool_s:
                text = f"{degrees:.1f} °C" + (f" after {waited:.0f} s of cooling" if waited >= LOOK_AGAIN_S else "")
                return Standing("temperature", f"below {limit:g} °C", text, met=cool)
            self._strategy.wait(lambda: False, min(LOOK_AGAIN_S, self._wanted.cool_s - waited))

    def put_back(self) -> dict[str, str]:
        """Facts about what was put back. A device that no longer answers has it from its power cycle."""
        command = conditions.restore_command(self._changes)
        if not command:
            return {}
        was = {change.path: change.was for change in self._changes if change.was != change.now}
        now = {change.path: change.now for change in conditions.read_changes(self._answer(command))}
        kept = [path for path, value in was.items() if now.get(path) != value]
        self._changes = []
        if kept:
            log.warning("conditions not put back", device=self._device.name, files=kept)
            return {"conditions put back": f"{len(was) - len(kept)} of {len(was)} files; not {', '.join(kept[:5])}"}
        return {"conditions put back": f"{len(was)} files"}

    def _answer(self, command: str) -> str:
        text: str = self._strategy.command(command, TIMEOUT_S).text
        return text
