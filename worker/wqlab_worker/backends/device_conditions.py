"""Set the conditions of a boot on a labgrid device and restore them afterwards."""

from __future__ import annotations

import time

import structlog

from wqlab_contracts.messages import DeviceFacts

from . import condition_commands, temperature
from .condition_commands import Change, ConditionResult
from .kexec import KexecStrategy
from .verify_boot import check_conditions

log = structlog.get_logger()

TIMEOUT_S = 60.0
COOLING_POLL_S = 5.0
"""Interval between temperature readings; no event reports that a device has cooled down."""


class DeviceConditions:
    """Conditions of one device, set over the strategy's SSH connection."""

    def __init__(self, strategy: KexecStrategy, device: DeviceFacts) -> None:
        self._strategy = strategy
        self._device = device
        self._requested = device.conditions
        self._changes: list[Change] = []

    def apply(self) -> dict[str, str]:
        """Set the conditions and return them as read back, as facts of the boot's environment.

        Raises DeviceFailure if a condition that the device type requires is not satisfied.
        """
        self._changes = []
        results: list[ConditionResult] = []
        if command := condition_commands.apply_command(self._requested):
            answer = self._strategy.command(command, TIMEOUT_S)
            self._changes = condition_commands.read_changes(answer.text)
            results = condition_commands.evaluate(self._requested, self._changes)
        if self._requested.start_below_c is not None:
            results.append(self._wait_until_cool(self._requested.start_below_c))
        return check_conditions(self._device, results)

    def _wait_until_cool(self, limit: float) -> ConditionResult:
        """Wait until the CPU is below `limit` degrees Celsius, for at most `cool_s` seconds."""
        started = time.monotonic()
        while True:
            answer = self._strategy.command(temperature.read_command(), TIMEOUT_S)
            degrees = temperature.hottest_celsius(temperature.parse_files(answer.text))
            waited = time.monotonic() - started
            if degrees is None:
                return ConditionResult(
                    "temperature", f"below {limit:g} °C", condition_commands.NOT_AVAILABLE, satisfied=False
                )
            cool = degrees < limit
            if cool or waited >= self._requested.cool_s:
                text = f"{degrees:.1f} °C" + (f" after {waited:.0f} s of cooling" if waited >= COOLING_POLL_S else "")
                return ConditionResult("temperature", f"below {limit:g} °C", text, satisfied=cool)
            self._strategy.wait(lambda: False, min(COOLING_POLL_S, self._requested.cool_s - waited))

    def restore(self) -> dict[str, str]:
        """Write the old values back to the files that `apply` changed; return how many were restored, as facts.

        Returns no facts if nothing was changed. Raises DeviceFailure if the device does not answer; the power cycle
        that follows resets the conditions.
        """
        command = condition_commands.restore_command(self._changes)
        if not command:
            return {}
        old = {change.path: change.was for change in self._changes if change.was != change.now}
        new = {change.path: change.now for change in condition_commands.read_changes(self._run(command))}
        not_restored = [path for path, value in old.items() if new.get(path) != value]
        self._changes = []
        if not_restored:
            log.warning("conditions not restored", device=self._device.name, files=not_restored)
            restored = f"{len(old) - len(not_restored)} of {len(old)} files"
            return {"conditions put back": f"{restored}; not {', '.join(not_restored[:5])}"}
        return {"conditions put back": f"{len(old)} files"}

    def _run(self, command: str) -> str:
        text: str = self._strategy.command(command, TIMEOUT_S).text
        return text
