"""Set the conditions of a boot on a device and restore them afterwards."""

from __future__ import annotations

import time

import structlog

from wqlab_contracts.messages import DeviceFacts

from . import condition_commands, temperature
from .condition_commands import ConditionResult
from .device_access import DeviceAccess
from .verify_boot import check_conditions

log = structlog.get_logger()

TIMEOUT_S = 60.0


class DeviceConditions:
    """Conditions of one device, set over the strategy's SSH connection."""

    def __init__(self, strategy: DeviceAccess, device: DeviceFacts) -> None:
        self._strategy = strategy
        self._device = device
        self._requested = device.conditions
        self._applied = ""

    def apply(self) -> dict[str, str]:
        """Set the conditions and return them as read back, as facts of the boot's environment.

        Raises DeviceFailure if a condition that the device type requires is not satisfied.
        """
        self._applied = ""
        results: list[ConditionResult] = []
        if command := condition_commands.apply_command(self._requested):
            self._applied = self._run(command)
            results = condition_commands.evaluate(self._requested, self._applied)
        if self._requested.start_below_c is not None:
            results.append(self._wait_until_cool(self._requested.start_below_c))
        return check_conditions(self._device, results)

    def _wait_until_cool(self, limit: float) -> ConditionResult:
        """Wait until the CPU is below `limit` degrees Celsius, for at most `cool_s` seconds."""
        started = time.monotonic()
        while True:
            degrees = temperature.hottest_celsius(temperature.parse_files(self._run(temperature.read_command())))
            waited = time.monotonic() - started
            result = condition_commands.temperature_result(limit, degrees, waited)
            if degrees is None or result.satisfied or waited >= self._requested.cool_s:
                return result
            poll = min(condition_commands.COOLING_POLL_S, self._requested.cool_s - waited)
            self._strategy.wait(lambda: False, poll)

    def restore(self) -> dict[str, str]:
        """Write the old values back to the files that `apply` changed; return how many were restored, as facts.

        Sends no command if `apply` changed nothing and the device has no counters to read again.
        Raises DeviceFailure if the device does not answer; the power cycle that follows resets the conditions.
        """
        applied, self._applied = self._applied, ""
        if not condition_commands.needs_restoring(applied):
            return {}
        facts = condition_commands.restored_facts(
            applied, self._run(condition_commands.restore_command(self._requested))
        )
        if "; not " in facts.get("conditions put back", ""):
            log.warning("conditions not restored", device=self._device.name, files=facts["conditions put back"])
        return facts

    def _run(self, command: str) -> str:
        return self._strategy.command(command, TIMEOUT_S).text
