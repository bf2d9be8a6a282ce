"""What a plan's script said on the device -> samples.

A script prints *records*, one a line, tab separated (see `read_records`). Its plan's parser, a module under `parsers/`,
turns them into a `Measurement`. What is not there, cut off or absurd is "not measured", with the reason: never zero.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from wqlab_contracts.enums import DeviceStep, ErrorKind, StepOutcome, TraceMode
from wqlab_contracts.messages import EXCERPT_LIMIT, NOT_MEASURED, Failure, MeasuredTopology
from wqlab_contracts.specs import NO_SETTING, TestPlan, parse_setting

from . import parsers

TEXT_LIMIT = 64 << 20
"""Longest output (characters) that is looked at; a frame or line beyond the next two is as good as missing."""
FRAME_LIMIT = 16 << 20
LINE_LIMIT = 1 << 20
DAMAGE_LIMIT = 20
VALUE_LIMIT = 1e18
"""No count, rate or time of ours comes near it: a larger number is a broken one."""

WHOLE_SETTING = "*"
TRACED_METRICS = "traced"
"""In an `unsupported` record: this kernel cannot be traced as the plan needs; every metric of the repetition."""


class NotMeasured(Exception):
    """The output lacks what a metric is computed from; the text says what."""


class NoSamples(NotMeasured):
    """The output is readable, but the workload left nothing in it to compute from. In an output without damage that is
    an answer, of this repetition only; everything else that is not measured is a fault, to be tried again."""


class Lacking(str):
    """Why this kernel or device cannot give a metric; stands where its value would."""

    __slots__ = ()


@dataclass(frozen=True)
class Measurement:
    """One repetition. Without `failure`, every metric its parser promises is in `values` or named in `unsupported`."""

    values: dict[str, float] = field(default_factory=dict)
    unsupported: list[tuple[str | None, str]] = field(default_factory=list)
    """(metric, reason); metric None: the whole setting."""
    empty: frozenset[str] = frozenset()
    """Of the metrics in `unsupported`, those of which this repetition alone gave no samples."""
    failure: Failure | None = None
    command: str | None = None
    """The exact workload command line."""
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Records:
    """The script's output, sorted by record type. Of records that name something, the last one counts."""

    command: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    settings_after: dict[str, str] = field(default_factory=dict)
    unsupported: list[tuple[str, str]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    steps: dict[DeviceStep, tuple[StepOutcome, str]] = field(default_factory=dict)
    """What the script of a health check came through, in its order."""
    overrun: int = 0
    failure: Failure | None = None
    """The first `failed` record."""
    frames: dict[str, list[str]] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    """What could not be read, in words; at most `DAMAGE_LIMIT` entries."""

    @property
    def void(self) -> str | None:
        """Why no metric of a traced repetition counts, whatever else the script printed."""
        if reason := dict(self.unsupported).get(TRACED_METRICS):
            return reason
        return f"{NOT_MEASURED}the trace buffer lost {self.overrun} events" if self.overrun else None

    def frame(self, name: str) -> list[str]:
        """Lines of a framed payload. Raises NoSamples when it is not there whole."""
        try:
            return self.frames[name]
        except KeyError:
            raise NoSamples(f"no whole `{name}` in the output{self._why()}") from None

    def value(self, name: str) -> float:
        """A number the script counted itself. Raises NoSamples."""
        try:
            return self.values[name]
        except KeyError:
            raise NoSamples(f"no value of {name} in the output{self._why()}") from None

    def _why(self) -> str:
        return f" ({'; '.join(self.damage)})" if self.damage else ""


_UNREADABLE = (NotMeasured, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Parse(Protocol):
    def __call__(self, records: Records, topology: MeasuredTopology, traced: bool) -> Measurement: ...


def parser(name: str) -> Parse:
    """The `parse` function of parsers/<name>.py. Raises ValueError, naming the plans' parsers, for another name."""
    known = sorted(module.name for module in pkgutil.iter_modules(parsers.__path__))
    if name in known:
        parse: Parse | None = getattr(importlib.import_module(f"{parsers.__name__}.{name}"), "parse", None)
        if parse is not None:
            return parse
    raise ValueError(f"no parser {name!r} in {', '.join(known)}")


def collect(
    text: str,
    parser_name: str,
    plan: TestPlan,
    topology: MeasuredTopology,
    traced: bool,
    *,
    setting: str = NO_SETTING,
) -> Measurement:
    """Everything from the script's standard output to a measurement that `plan` can use.

    A setting that was not what the kernel used is unsupported. So is a metric that the plan takes from this kind of
    repetition and that is not in an output without damage; of a damaged one it is a failure.
    """
    records = read_records(text)
    parse = parser(parser_name)
    try:
        measurement = parse(records, topology, traced)
    except _UNREADABLE as error:
        # A parser reads what a device printed: that it chokes says that nothing was measured, not that the lab broke.
        why = f"{NOT_MEASURED}parser {parser_name} cannot read the output: {type(error).__name__}: {str(error)[:300]}"
        failure = records.failure or _tool_error(why, records.damage)
        return Measurement(failure=failure, command=records.command, facts=dict(records.facts))
    if measurement.failure or any(metric is None for metric, _ in measurement.unsupported):
        return measurement
    if reason := _other_setting(setting, records):
        return Measurement(unsupported=[(None, reason)], command=measurement.command, facts=measurement.facts)
    mode = TraceMode.TRACED if traced else TraceMode.UNTRACED
    accounted = measurement.values.keys() | {metric for metric, _ in measurement.unsupported}
    wanted = [metric.name for metric in plan.metrics if metric.taken_from is mode]
    missing = [name for name in wanted if name not in accounted]
    # A parser of no particular plan does not know their names, and may tell of others.
    known = next((reason for name, reason in measurement.unsupported if name in measurement.empty), None)
    others = measurement.empty.difference(wanted)
    measurement = replace(
        measurement,
        unsupported=[(name, reason) for name, reason in measurement.unsupported if name not in others],
        empty=measurement.empty - others,
    )
    if missing and records.void:
        return replace(measurement, unsupported=[*measurement.unsupported, *((name, records.void) for name in missing)])
    if missing and records.damage:
        reason = f"{NOT_MEASURED}{', '.join(missing)}: not among what parser {parser_name} found in the output"
        failure = _tool_error(reason, records.damage)
        return Measurement(failure=failure, command=measurement.command, facts=measurement.facts)
    if missing:
        told = ((name, known or f"{NOT_MEASURED}no {name} in the output") for name in missing)
        return replace(
            measurement,
            unsupported=[*measurement.unsupported, *told],
            empty=measurement.empty.union(missing),
        )
    return measurement


def measure(
    records: Records, metrics: Iterable[str], compute: Callable[[], Mapping[str, float | Lacking]]
) -> Measurement:
    """The common part of all parsers: `compute` gives the `metrics` of one repetition, or a `Lacking` in place of one.

    `compute` raises NotMeasured. It is not called when the script itself said that there is nothing to compute. A
    workload without samples is a failure only where the output is damaged: there they may have got lost.
    """
    names = list(metrics)

    def result(
        values: dict[str, float] | None = None,
        unsupported: list[tuple[str | None, str]] | None = None,
        empty: Iterable[str] = (),
        failure: Failure | None = None,
    ) -> Measurement:
        return Measurement(
            values or {}, unsupported or [], frozenset(empty), failure, records.command, dict(records.facts)
        )

    if records.failure:
        return result(failure=records.failure)
    said = dict(records.unsupported)
    if WHOLE_SETTING in said:
        return result(unsupported=[(None, said[WHOLE_SETTING])])
    if records.void:
        return result(unsupported=[(name, records.void) for name in names])
    try:
        computed = compute()
    except NotMeasured as error:
        reason = f"{NOT_MEASURED}{error}"
        if records.damage or not isinstance(error, NoSamples):
            return result(failure=_tool_error(reason, records.damage))
        return result(
            unsupported=[(name, said.get(name, reason)) for name in names],
            empty=[name for name in names if name not in said],
        )
    values: dict[str, float] = {}
    unsupported: list[tuple[str | None, str]] = []
    empty: list[str] = []
    for name in names:
        value = computed.get(name)
        if name in said:
            unsupported.append((name, said[name]))
        elif isinstance(value, Lacking):
            unsupported.append((name, str(value)))
        elif value is None and records.damage:
            return result(failure=_tool_error(f"{NOT_MEASURED}no {name} in the output", records.damage))
        elif value is None:
            unsupported.append((name, f"{NOT_MEASURED}no {name} in the output"))
            empty.append(name)
        elif not (math.isfinite(value) and 0 <= value <= VALUE_LIMIT):
            return result(failure=_tool_error(f"{NOT_MEASURED}{name} would be {value!r}", records.damage))
        else:
            values[name] = float(value)
    return result(values, unsupported, empty)


def number(text: str) -> float:
    """A finite number of sane size, else ValueError. `nan`, `1e400`, `1_000` and hexadecimal are none."""
    if len(text) > 40 or "_" in text or not text.isascii():
        raise ValueError(f"not a number: {text[:40]!r}")
    value = float(text)
    if not math.isfinite(value) or abs(value) > VALUE_LIMIT:
        raise ValueError(f"not a sane number: {text!r}")
    return value


def count(text: str) -> int:
    """A whole number from 0 up, else ValueError."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"not a count: {text[:40]!r}")
    return int(text)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_records(text: str) -> Records:
    """Reads a script's standard output; never raises. What cannot be read is listed in `damage`.

    command TEXT · setting KNOB VALUE · setting_after KNOB VALUE · unsupported METRIC|*|traced REASON ·
    fact NAME VALUE · value NAME NUMBER · overrun EVENTS · failed infrastructure|kernel TEXT ·
    step NAME ok|skipped TEXT ·
    begin NAME, lines, end NAME
    """
    return _Reader().read(text)


class _Reader:
    def __init__(self) -> None:
        self.records = Records()
        self.command: str | None = None
        self.overrun = 0
        self.failure: Failure | None = None

    def read(self, text: str) -> Records:
        if len(text) > TEXT_LIMIT:
            self._damaged(f"output cut at {TEXT_LIMIT} characters")
            text = text[:TEXT_LIMIT]
        if text and not text.endswith("\n"):
            self._damaged("the output ends inside a line")
        lines = iter(text.split("\n"))
        for line in lines:
            kind, *fields = line.rstrip("\r").split("\t")
            if kind == "begin" and len(fields) == 1:
                name: str | None = fields[0]
                while name is not None:
                    name = self._frame(name, lines)
            elif line.strip():
                try:
                    self._record(kind, fields)
                except ValueError as error:
                    self._damaged(f"unreadable line {line[:80]!r}: {error}")
        known = self.records
        return Records(
            command=self.command,
            settings=known.settings,
            settings_after=known.settings_after,
            unsupported=known.unsupported,
            facts=known.facts,
            values=known.values,
            steps=known.steps,
            overrun=self.overrun,
            failure=self.failure,
            frames=known.frames,
            damage=known.damage,
        )

    def _frame(self, name: str, lines: Iterable[str]) -> str | None:
        """Reads one payload to its end; the name of the payload that interrupts it, if one does."""
        body: list[str] = []
        size = 0
        for raw in lines:
            line = raw.rstrip("\r")
            if line == f"end\t{name}":
                break
            if line.startswith("begin\t"):
                self._damaged(f"`{name}` is interrupted by another payload")
                self.records.frames.pop(name, None)
                return line.split("\t", 1)[1]
            size += len(line) + 1
            if size <= FRAME_LIMIT:
                body.append(line)
        else:
            self._damaged(f"the output ends inside `{name}`")
            self.records.frames.pop(name, None)
            return None
        if size > FRAME_LIMIT:
            self._damaged(f"`{name}` is longer than {FRAME_LIMIT} characters")
        elif name in self.records.frames:
            self._damaged(f"`{name}` is there twice")
            del self.records.frames[name]
        else:
            self.records.frames[name] = body
        return None

    def _record(self, kind: str, fields: list[str]) -> None:
        if any(len(text) > LINE_LIMIT for text in fields):
            raise ValueError(f"longer than {LINE_LIMIT} characters")
        records = self.records
        match kind, fields:
            case "command", [text]:
                self.command = text
            case "setting", [knob, value]:
                records.settings[knob] = value
            case "setting_after", [knob, value]:
                records.settings_after[knob] = value
            case "unsupported", [metric, reason] if metric:
                records.unsupported.append((metric, reason))
            case "fact", [name, value]:
                records.facts[name] = value.strip()
            case "value", [name, value]:
                # A second value that is broken must not leave the first one standing as the last word.
                records.values.pop(name, None)
                records.values[name] = number(value)
            case "overrun", [lost]:
                # That events were lost is certain even when their number is not readable.
                self.overrun = max(1, self.overrun)
                self.overrun = max(self.overrun, count(lost))
            case "step", [name, ("ok" | "skipped") as how, text]:
                records.steps[DeviceStep(name)] = StepOutcome(how), text.strip()
            case "failed", [("infrastructure" | "kernel") as who, text]:
                self.failure = self.failure or Failure(kind=ErrorKind(who), summary=text[:1000])
            case _:
                raise ValueError("no such record")

    def _damaged(self, what: str) -> None:
        if len(self.records.damage) < DAMAGE_LIMIT:
            self.records.damage.append(what)


def _other_setting(setting: str, records: Records) -> str | None:
    for knob, wanted in parse_setting(setting).items():
        for when, found in (("", records.settings.get(knob)), ("later ", records.settings_after.get(knob))):
            if found != wanted:
                used = f"the kernel {when}used {found}" if found else f"{when}it could not be read back"
                return f"{knob}={wanted} was asked for, {used}"
    return None


def _tool_error(summary: str, damage: Iterable[str] = ()) -> Failure:
    return Failure(kind=ErrorKind.INFRASTRUCTURE, summary=summary, excerpt="\n".join(damage)[:EXCERPT_LIMIT])
