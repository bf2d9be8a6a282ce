"""Shell commands that set, read back and restore the conditions of a boot. Pure functions.

Mitigations and SMT are set on the kernel command line. Governor, boost and interrupt affinity are set here. All of them
but boost are state of the running kernel and end with the boot. Boost is a register that a power cycle clears but a
reset may not, so every changed file is restored before the power goes off.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wqlab_contracts.specs import Condition, Conditions

_CPU = "/sys/devices/system/cpu"
NOT_AVAILABLE = "not available"

# Read, write if the value differs, read again. `cat` and not `read`: some files end without a line feed.
_SET = """\
set_files() { value=$1; shift
for file; do
[ -f "$file" ] || continue
was=$(cat "$file" 2>/dev/null) || continue
[ "$was" = "$value" ] || echo "$value" 2>/dev/null >"$file"
printf '%s\\t%s\\t%s\\n' "$file" "$was" "$(cat "$file" 2>/dev/null)"
done 2>/dev/null; }
"""


@dataclass(frozen=True)
class _Knob:
    """Files of one condition and how its values are written there."""

    pattern: str
    written: dict[str, str] = field(default_factory=dict)
    """Value of the specification -> value in the file, where they differ."""


_KNOBS: dict[Condition, Sequence[_Knob]] = {
    "governor": [_Knob(f"{_CPU}/cpufreq/policy[0-9]*/scaling_governor")],
    "boost": [
        _Knob(f"{_CPU}/cpufreq/boost", {"on": "1", "off": "0"}),
        _Knob(f"{_CPU}/intel_pstate/no_turbo", {"on": "0", "off": "1"}),
    ],
    "irq_affinity": [_Knob("/proc/irq/[0-9]*/smp_affinity_list")],
}
_SOME_MAY_REFUSE: frozenset[Condition] = frozenset({"irq_affinity"})
"""Conditions that some files may refuse: the kernel places the interrupts of multi-queue devices itself."""


@dataclass(frozen=True)
class Change:
    """Value of one file before and after it was written."""

    path: str
    was: str
    now: str


@dataclass(frozen=True)
class ConditionResult:
    """One condition as it was read back after it was set."""

    name: Condition
    requested: str
    actual: str
    satisfied: bool

    @property
    def text(self) -> str:
        return self.actual if self.satisfied else f"{self.actual} (wanted {self.requested})"


def requested_conditions(conditions: Conditions) -> dict[Condition, str]:
    """Return name and value of each condition that is set on the running device."""
    values: dict[Condition, str | None] = {
        "governor": conditions.governor,
        "boost": None if conditions.boost is None else "on" if conditions.boost else "off",
        "irq_affinity": conditions.irq_affinity,
    }
    return {name: value for name, value in values.items() if value is not None}


def apply_command(conditions: Conditions, root: str = "") -> str:
    """Return a command that sets the conditions and prints path, old and new value of each file; empty for none."""
    lines = [
        f"set_files {shlex.quote(knob.written.get(value, value))} {root}{knob.pattern}"
        for name, value in requested_conditions(conditions).items()
        for knob in _KNOBS[name]
    ]
    return _SET + "\n".join(lines) if lines else ""


def restore_command(changes: Iterable[Change]) -> str:
    """Return a command that restores each changed file; it prints the same columns."""
    lines = [
        f"set_files {shlex.quote(change.was)} {shlex.quote(change.path)}"
        for change in changes
        if change.was != change.now
    ]
    return _SET + "\n".join(lines) if lines else ""


def read_changes(answer: str) -> list[Change]:
    """Parse the output of `apply_command` or `restore_command`; other lines are skipped."""
    return [Change(*fields) for line in answer.splitlines() if len(fields := line.split("\t")) == 3]


def evaluate(conditions: Conditions, changes: Sequence[Change], root: str = "") -> list[ConditionResult]:
    """Compare each requested condition with the values read back from the device."""
    return [_evaluate(name, value, changes, root) for name, value in requested_conditions(conditions).items()]


def _evaluate(name: Condition, value: str, changes: Sequence[Change], root: str) -> ConditionResult:
    found: list[str] = []
    for knob in _KNOBS[name]:
        values_in_file = {written: value for value, written in knob.written.items()}
        start, _, end = f"{root}{knob.pattern}".partition("[0-9]*")
        of_knob = [change for change in changes if change.path.startswith(start) and change.path.endswith(end)]
        found += [values_in_file.get(change.now, change.now) for change in of_knob]
    if not found:
        return ConditionResult(name, value, NOT_AVAILABLE, satisfied=False)
    matching = found.count(value)
    if matching == len(found):
        return ConditionResult(name, value, value, satisfied=True)
    if matching and name in _SOME_MAY_REFUSE:
        return ConditionResult(
            name, value, f"{value} ({matching} of {len(found)}; the kernel places the others)", satisfied=True
        )
    return ConditionResult(name, value, ", ".join(dict.fromkeys(found)), satisfied=False)


def unmet_conditions(conditions: Conditions, results: Sequence[ConditionResult]) -> list[ConditionResult]:
    """Return the conditions that the device type requires and the device does not satisfy."""
    return [each for each in results if not each.satisfied and each.name in conditions.required]
