"""Shell commands that set, read back and restore the conditions of a boot. Pure functions.

Mitigations and SMT are set on the kernel command line. The other conditions are set here, and SMT is checked. All of
them but boost are state of the running kernel and end with the boot. Boost is a register that a power cycle clears but
a reset may not, so every changed file is restored before the power goes off.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.specs import Condition, Conditions

from . import temperature

_CPU = "/sys/devices/system/cpu"
NOT_AVAILABLE = "not available"
TOO_HOT = 75
"""Exit status of a command that waited in vain for a required temperature."""

_FUNCTIONS = (files(__package__) / "onboard" / "set_conditions.sh").read_text()


@dataclass(frozen=True)
class _Knob:
    """Files of one condition and how its values are written there."""

    pattern: str
    written: dict[str, str] = field(default_factory=dict)
    """Value of the specification -> value in the file, where they differ."""


_ON_OFF = {"on": "1", "off": "0"}
_KNOBS: dict[Condition, Sequence[_Knob]] = {
    "governor": [_Knob(f"{_CPU}/cpufreq/policy[0-9]*/scaling_governor")],
    "boost": [
        _Knob(f"{_CPU}/cpufreq/boost", _ON_OFF),
        # Since 6.11 each policy has its own, which the file above does not always change.
        _Knob(f"{_CPU}/cpufreq/policy[0-9]*/boost", _ON_OFF),
        _Knob(f"{_CPU}/intel_pstate/no_turbo", {"on": "0", "off": "1"}),
    ],
    "irq_affinity": [_Knob("/proc/irq/[0-9]*/smp_affinity_list")],
    "transparent_hugepages": [_Knob("/sys/kernel/mm/transparent_hugepage/enabled")],
    "ksm": [_Knob("/sys/kernel/mm/ksm/run", _ON_OFF)],
}
_SMT_ACTIVE, _SMT_CONTROL = f"{_CPU}/smt/active", f"{_CPU}/smt/control"
_SOME_MAY_REFUSE: frozenset[Condition] = frozenset({"irq_affinity"})
"""Conditions that some files may refuse: the kernel places the interrupts of multi-queue devices itself."""
_MET_IF_ABSENT: Mapping[Condition, str] = {"transparent_hugepages": "never", "ksm": "off"}
"""Values that a kernel without the files has in any case."""
_COUNTERS = ("core_throttle_count", "ce_count", "ue_count")
"""Names of the files that `show_counters` reads."""
_FACT_NAMES: Mapping[Condition, str] = {"idle_latency_us": "idle states"}
_STATE = LinearPattern(r"/sys/devices/system/cpu/cpu([0-9]+)/cpuidle/state([0-9]+)/(name|latency|disable)")


@dataclass(frozen=True)
class Change:
    """Value of one file before and after it was written; the same for a file that was only read."""

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

    @property
    def fact(self) -> str:
        """Name of the condition as a fact of the boot's environment."""
        return _FACT_NAMES.get(self.name, self.name.replace("_", " "))


def _on_off(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def requested_conditions(conditions: Conditions) -> dict[Condition, str]:
    """Return name and value of each condition that is set or checked on the running device, but the temperature."""
    latency = conditions.idle_latency_us
    values: dict[Condition, str | None] = {
        "smt": _on_off(conditions.smt),
        "governor": conditions.governor,
        "boost": _on_off(conditions.boost),
        "idle_latency_us": None if latency is None else str(latency),
        "irq_affinity": conditions.irq_affinity,
        "transparent_hugepages": conditions.transparent_hugepages,
        "ksm": _on_off(conditions.ksm),
    }
    return {name: value for name, value in values.items() if value is not None}


def apply_command(conditions: Conditions, *, wait: bool = False) -> str:
    """Return a command that sets the conditions and prints path, old and new value of each file; empty for none.

    With `wait` it also waits until the device is cool, for a device that measures without a connection. Its exit status
    is TOO_HOT if that is required and did not happen.
    """
    calls = [call for name, value in requested_conditions(conditions).items() for call in _calls(name, value)]
    limit = conditions.start_below_c if wait else None
    if not calls and limit is None:
        return ""
    calls.append("show_counters")
    script = f"{_FUNCTIONS}{{\n" + "\n".join(calls) + '\n} >"$RECORD"\ncat "$RECORD"\n'
    if limit is None:
        return script
    required = f'if [ -z "$hottest" ] || ! is_below "$hottest" {limit:g}; then exit {TOO_HOT}; fi\n'
    return (
        f"{script}CPU_SENSORS={shlex.quote(temperature.CPU_SENSOR_NAMES)}\n"
        f"read_sensors() {{ {temperature.read_command()}; }}\n"
        f"cool {limit:g} {conditions.cool_s}\n" + (required if "temperature" in conditions.required else "")
    )


def _calls(name: Condition, value: str) -> list[str]:
    if name == "smt":
        return [f"show_files {_SMT_ACTIVE} {_SMT_CONTROL}"]
    if name == "idle_latency_us":
        return [f"limit_idle {value}"]
    return [f"set_files {shlex.quote(knob.written.get(value, value))} {knob.pattern}" for knob in _KNOBS[name]]


def restore_command(conditions: Conditions) -> str:
    """Return a command for the end of a boot that restores each file that `apply_command` changed, and prints the same
    columns. The kernel reports corrected memory errors before, which takes 2 s on machines with machine checks.
    """
    return f"{_FUNCTIONS}restore_files\nread_banks\nshow_counters\n" if requested_conditions(conditions) else ""


def read_changes(answer: str) -> list[Change]:
    """Parse the output of `apply_command` or `restore_command`; other lines are skipped."""
    rows = (line.split("\t") for line in answer.splitlines())
    return [Change(*fields) for fields in rows if len(fields) == 3 and fields[0].startswith("/")]


def evaluate(conditions: Conditions, answer: str) -> list[ConditionResult]:
    """Compare each requested condition with the values in the output of `apply_command`."""
    changes = read_changes(answer)
    now = {change.path: change.now for change in changes}
    return [_evaluate(name, value, now) for name, value in requested_conditions(conditions).items()]


def _evaluate(name: Condition, value: str, now: Mapping[str, str]) -> ConditionResult:
    special: dict[Condition, Callable[[str, Mapping[str, str]], ConditionResult]] = {
        "smt": _evaluate_smt,
        "idle_latency_us": _evaluate_idle_states,
    }
    if name in special:
        return special[name](value, now)
    found: list[str] = []
    for knob in _KNOBS[name]:
        values_in_file = {written: value for value, written in knob.written.items()}
        start, wildcard, end = knob.pattern.partition("[0-9]*")
        found += [
            values_in_file.get(content, content)
            for path, content in now.items()
            if (path.startswith(start) and path.endswith(end) if wildcard else path == start)
        ]
    if not found:
        satisfied = _MET_IF_ABSENT.get(name) == value
        return ConditionResult(name, value, f"{value} (not in this kernel)" if satisfied else NOT_AVAILABLE, satisfied)
    matching = found.count(value)
    if matching == len(found):
        return ConditionResult(name, value, value, satisfied=True)
    if matching and name in _SOME_MAY_REFUSE:
        return ConditionResult(
            name, value, f"{value} ({matching} of {len(found)}; the kernel places the others)", satisfied=True
        )
    return ConditionResult(name, value, ", ".join(dict.fromkeys(found)), satisfied=False)


def _evaluate_smt(value: str, now: Mapping[str, str]) -> ConditionResult:
    """Compare with whether CPUs share a core now. `control` says why not: `notsupported` by the firmware."""
    active, control = now.get(_SMT_ACTIVE), now.get(_SMT_CONTROL, "")
    if active not in {"0", "1"}:
        return ConditionResult("smt", value, NOT_AVAILABLE, satisfied=False)
    found = "on" if active == "1" else "off"
    why = f" ({control})" if found == "off" and control not in {"", "off", "on"} else ""
    return ConditionResult("smt", value, found + why, satisfied=found == value)


def _evaluate_idle_states(value: str, now: Mapping[str, str]) -> ConditionResult:
    """Compare the states that CPUs may enter with the limit on their exit latency."""
    limit, requested = int(value), f"at most {value} us"
    states: dict[tuple[str, str], dict[str, str]] = {}
    for path, content in now.items():
        if match := _STATE.fullmatch(path):
            states.setdefault((match[1], match[2]), {})[match[3]] = content
    allowed: dict[str, None] = {}
    disabled: dict[str, None] = {}
    wrong: dict[str, int] = {}
    for state in states.values():
        name, latency = state.get("name", "?"), state.get("latency", "")
        wanted = "0" if latency.isdecimal() and int(latency) <= limit else "1"
        if state.get("disable") != wanted:
            wrong[name] = wrong.get(name, 0) + 1
        (disabled if wanted == "1" else allowed)[name] = None
    if not states:
        return ConditionResult("idle_latency_us", requested, NOT_AVAILABLE, satisfied=False)
    if wrong:
        cpus = len({cpu for cpu, _ in states})
        found = ", ".join(
            f"{name} {'on' if name in disabled else 'off'} on {n} of {cpus} CPUs" for name, n in wrong.items()
        )
        return ConditionResult("idle_latency_us", requested, found, satisfied=False)
    off = f"; {', '.join(disabled)} disabled" if disabled else ""
    found = f"{', '.join(allowed) or 'none'} ({requested}{off})"
    return ConditionResult("idle_latency_us", requested, found, satisfied=True)


def evaluate_temperature(conditions: Conditions, answer: str) -> ConditionResult | None:
    """Compare the last temperatures that `apply_command` read while it waited with the limit; None without a limit."""
    limit = conditions.start_below_c
    if limit is None:
        return None
    waited = next((line.partition("\t")[2] for line in answer.splitlines() if line.startswith("waited\t")), "")
    degrees = temperature.hottest_celsius(temperature.parse_files(answer))
    return temperature_result(limit, degrees, float(waited) if waited.isdecimal() else 0.0)


COOLING_POLL_S = 5.0
"""Interval between temperature readings; no event reports that a device has cooled down."""


def temperature_result(limit: float, degrees: float | None, waited_s: float) -> ConditionResult:
    """Return the condition of a device whose hottest CPU has `degrees` Celsius after `waited_s` seconds."""
    requested = f"below {limit:g} °C"
    if degrees is None:
        return ConditionResult("temperature", requested, NOT_AVAILABLE, satisfied=False)
    text = f"{degrees:.1f} °C" + (f" after {waited_s:.0f} s of cooling" if waited_s >= COOLING_POLL_S else "")
    return ConditionResult("temperature", requested, text, satisfied=degrees < limit)


def unmet_conditions(conditions: Conditions, results: Sequence[ConditionResult]) -> list[ConditionResult]:
    """Return the conditions that the device type requires and the device does not satisfy."""
    return [each for each in results if not each.satisfied and each.name in conditions.required]


def needs_restoring(applied: str) -> bool:
    """Return True if `apply_command` changed a file or read a counter, which is read again at the end of the boot."""
    return any(
        change.was != change.now or change.path.rpartition("/")[2] in _COUNTERS for change in read_changes(applied)
    )


def restored_facts(applied: str, restored: str) -> dict[str, str]:
    """Return what was restored, and what went wrong meanwhile, from the outputs of both commands."""
    facts = {}
    before, after = read_changes(applied), {change.path: change.now for change in read_changes(restored)}
    changed = [change for change in before if change.was != change.now]
    if lost := [change.path for change in changed if after.get(change.path) != change.was]:
        done = f"{len(changed) - len(lost)} of {len(changed)} files"
        facts["conditions put back"] = f"{done}; not {', '.join(lost[:5])}"
    elif changed:
        facts["conditions put back"] = f"{len(changed)} files"
    rise = dict.fromkeys(_COUNTERS, 0)
    counted = set()
    for change in before:
        kind = change.path.rpartition("/")[2]
        if kind in rise and change.now.isdecimal() and after.get(change.path, "").isdecimal():
            rise[kind] += int(after[change.path]) - int(change.now)
            counted.add(kind)
    if "core_throttle_count" in counted:
        times = rise["core_throttle_count"]
        facts["throttled"] = f"{times} times, summed over the CPUs" if times else "never"
    if counted & {"ce_count", "ue_count"}:
        errors = f"{rise['ce_count']} corrected, {rise['ue_count']} uncorrected"
        facts["memory errors"] = errors if rise["ce_count"] or rise["ue_count"] else "none"
    return facts
