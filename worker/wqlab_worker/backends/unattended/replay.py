"""Return the recorded results of a boot to the measuring loop, one call of the plan's script at a time.

The device ran the whole boot by itself, without a connection to the worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wqlab_contracts.enums import FindingKind
from wqlab_contracts.messages import RunJob

from ...measure.script_calls import calls
from .. import condition_commands
from ..console_tap import ConsoleTap
from ..verify_boot import check_conditions, infrastructure_failure, kernel_failure
from .boot_files import CallResult, Results


class Replay:
    """Results of one boot of block `block`. `origin` names in failures where they come from."""

    def __init__(self, job: RunJob, block: int, results: Results, tap: ConsoleTap, origin: str) -> None:
        self._job = job
        self._calls = list(calls(job, block))
        self._results = results
        self._tap = tap
        self._origin = origin
        self._next = 0

    def conditions(self) -> dict[str, str]:
        """Return the conditions as they were read back. Raises DeviceFailure if a required one is not satisfied."""
        conditions = self._job.device.conditions
        results = condition_commands.evaluate(conditions, self._results.conditions)
        if (found := condition_commands.evaluate_temperature(conditions, self._results.conditions)) is not None:
            results.append(found)
        return check_conditions(self._job.device, results)

    def restored(self) -> dict[str, str]:
        """Return facts from the end of the boot: restored conditions, throttling, memory errors."""
        return condition_commands.restored_facts(self._results.conditions, self._results.restored)

    def next_call(
        self, action: str, environment: Mapping[str, str], timeout_s: float, monitored: bool
    ) -> tuple[int, CallResult]:
        """Return number and result of the next such call. Calls that loop and device both skipped lie between.

        Raises DeviceFailure if the device did not make the call, or the call reached its time limit.
        """
        requested: tuple[Any, ...] = (action, dict(environment), monitored)
        for number, call in enumerate(self._calls):
            if number >= self._next and (call.action, call.environment, call.monitored) == requested:
                self._next = number + 1
                if (result := self._results.calls.get(number)) is None:
                    break
                self._check_time(action, timeout_s, result)
                return number, result
        why = self._results.conditions_stderr.strip()
        raise infrastructure_failure(
            f"the results of {self._origin} lack `{action}`: the device stopped before that call"
            + (f"; setting the conditions printed: {why.splitlines()[-1][:200]}" if why else ""),
            excerpt=why[-4000:],
            of_variant=True,
        )

    def _check_time(self, action: str, timeout_s: float, result: CallResult) -> None:
        if not result.blocked or result.seconds < timeout_s - 1:
            return
        if "state:D" in result.blocked:
            title = f"tasks are blocked: `{action}` did not end in {timeout_s:.0f} s"
            raise kernel_failure(self._tap.add_finding(FindingKind.HUNG_TASK, title, result.blocked[-8000:]))
        raise infrastructure_failure(
            f"`{action}` did not end in {timeout_s:.0f} s, though the device answers", of_variant=True
        )
