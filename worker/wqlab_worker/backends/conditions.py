"""The conditions a boot runs under: what the device type wants of them is set on the device, read back, recorded, and
put back at the end. Pure, but for the text of the commands.

Mitigations and SMT are the boot's own, on its command line. Governor, boost and interrupt affinity are set here. What
outlives what: all of it but boost is memory of the running kernel, gone with the boot. Boost is a register that a power
switch clears, and a reset may not: so everything that was changed is put back before the power goes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wqlab_contracts.specs import Condition, Conditions

_CPU = "/sys/devices/system/cpu"
LACKING = "not available"

# Reads, writes where that changes something, reads again. `cat` and not `read`: some files end without a line feed.
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
    """A file, or many, and how a wanted value is written and read there."""

    pattern: str
    written: dict[str, str] = field(default_factory=dict)
    """Value as people say it -> as the file has it; any other is the same in both."""


_KNOBS: dict[Condition, Sequence[_Knob]] = {
    "governor": [_Knob(f"{_CPU}/cpufreq/policy[0-9]*/scaling_governor")],
    "boost": [
        _Knob(f"{_CPU}/cpufreq/boost", {"on": "1", "off": "0"}),
        _Knob(f"{_CPU}/intel_pstate/no_turbo", {"on": "0", "off": "1"}),
    ],
    "irq_affinity": [_Knob("/proc/irq/[0-9]*/smp_affinity_list")],
}
_SOME_MAY_REFUSE: frozenset[Condition] = frozenset({"irq_affinity"})
"""The kernel places the interrupts of multi-queue devices itself; the rest is what the condition is about."""


@dataclass(frozen=True)
class Change:
    path: str
    was: str
    now: str


@dataclass(frozen=True)
class Standing:
    """One condition as it was found after it was set."""

    name: Condition
    wanted: str
    found: str
    met: bool

    @property
    def text(self) -> str:
        return self.found if self.met else f"{self.found} (wanted {self.wanted})"


def wanted(conditions: Conditions) -> dict[Condition, str]:
    """What is set on the running device, in words."""
    values: dict[Condition, str | None] = {
        "governor": conditions.governor,
        "boost": None if conditions.boost is None else "on" if conditions.boost else "off",
        "irq_affinity": conditions.irq_affinity,
    }
    return {name: value for name, value in values.items() if value is not None}


def apply_command(conditions: Conditions, root: str = "") -> str:
    """Prints path, value before and value after of each file. Empty when nothing is wanted."""
    lines = [
        f"set_files {shlex.quote(knob.written.get(value, value))} {root}{knob.pattern}"
        for name, value in wanted(conditions).items()
        for knob in _KNOBS[name]
    ]
    return _SET + "\n".join(lines) if lines else ""


def restore_command(changes: Iterable[Change]) -> str:
    """Prints the same of each file that had been changed."""
    lines = [
        f"set_files {shlex.quote(change.was)} {shlex.quote(change.path)}"
        for change in changes
        if change.was != change.now
    ]
    return _SET + "\n".join(lines) if lines else ""


def read_changes(answer: str) -> list[Change]:
    return [Change(*fields) for line in answer.splitlines() if len(fields := line.split("\t")) == 3]


def standing(conditions: Conditions, changes: Sequence[Change], root: str = "") -> list[Standing]:
    """Each wanted condition beside what the device made of it."""
    return [_standing(name, value, changes, root) for name, value in wanted(conditions).items()]


def _standing(name: Condition, value: str, changes: Sequence[Change], root: str) -> Standing:
    found: list[str] = []
    for knob in _KNOBS[name]:
        spoken = {written: word for word, written in knob.written.items()}
        start, _, end = f"{root}{knob.pattern}".partition("[0-9]*")
        of_knob = [change for change in changes if change.path.startswith(start) and change.path.endswith(end)]
        found += [spoken.get(change.now, change.now) for change in of_knob]
    if not found:
        return Standing(name, value, LACKING, met=False)
    right = found.count(value)
    if right == len(found):
        return Standing(name, value, value, met=True)
    if right and name in _SOME_MAY_REFUSE:
        return Standing(name, value, f"{value} ({right} of {len(found)}; the kernel places the others)", met=True)
    return Standing(name, value, ", ".join(dict.fromkeys(found)), met=False)


def unmet(conditions: Conditions, found: Sequence[Standing]) -> list[Standing]:
    """Those that the type requires and the device does not have."""
    return [each for each in found if not each.met and each.name in conditions.required]
