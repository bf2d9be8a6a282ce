"""Turn the output of a plan's script into a measurement.

A script prints *records*, one a line, tab separated (see `read_records`). The plan's parser, a module in `parsers/`,
turns them into a `Measurement`. Missing, truncated or implausible values are "not measured" with a reason, never zero.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from wqlab_contracts.enums import DeviceStep, ErrorKind, NotMeasuredCause, StepOutcome, TraceMode
from wqlab_contracts.messages import EXCERPT_LIMIT, Failure, MeasuredTopology
from wqlab_contracts.specs import NO_SETTING, TestPlan, parse_setting

from . import parsers

TEXT_LIMIT = 64 << 20
"""Longest output in characters; the rest is cut. A frame or line beyond the next two limits counts as missing."""
FRAME_LIMIT = 16 << 20
LINE_LIMIT = 1 << 20
DAMAGE_LIMIT = 20
VALUE_LIMIT = 1e18
"""Largest plausible count, rate or time."""

WHOLE_SETTING = "*"
TRACED_METRICS = "traced"
"""In an `unsupported` record: every metric of a traced repetition, as this kernel cannot be traced as needed."""


class NotMeasured(Exception):
    """The output lacks the data of a metric; the text names what is missing."""


class NoSamples(NotMeasured):
    """The output is readable, but the workload left no data to compute from.

    If the output is complete, this is the result of the repetition. Every other NotMeasured is a fault, and the
    repetition is run again.
    """


class Unsupported(str):
    """Reason why a metric has no value, and the cause; takes the place of the value."""

    cause: NotMeasuredCause

    def __new__(cls, reason: str, cause: NotMeasuredCause = NotMeasuredCause.LACKING) -> Self:
        made = super().__new__(cls, reason)
        made.cause = cause
        return made


@dataclass(frozen=True)
class Measurement:
    """Measurement of one repetition. Without `failure`, each metric of its parser is in `values` or `unsupported`."""

    values: dict[str, float] = field(default_factory=dict)
    unsupported: list[tuple[str | None, Unsupported]] = field(default_factory=list)
    """Pairs (metric, reason); metric None means the whole setting."""
    empty: frozenset[str] = frozenset()
    """Metrics in `unsupported` that only this repetition gave no samples of."""
    failure: Failure | None = None
    command: str | None = None
    """The exact workload command line."""
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Operations:
    """Operations that a workload completed. A parser's function `operations(records)` returns them by name."""

    number: int
    unit: str
    """Singular name of an operation: `fsync`, `MiB`."""


@dataclass(frozen=True)
class Records:
    """The script's output by record type. Of several records with the same name, the last one counts."""

    command: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    settings_after: dict[str, str] = field(default_factory=dict)
    unsupported: list[tuple[str, Unsupported]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    steps: dict[DeviceStep, tuple[StepOutcome, str]] = field(default_factory=dict)
    """Steps that the script of a health check passed, in order."""
    overrun: int = 0
    failure: Failure | None = None
    """The first `failed` record."""
    frames: dict[str, list[str]] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    """Descriptions of unreadable output; at most `DAMAGE_LIMIT` entries."""

    @property
    def void(self) -> Unsupported | None:
        """Reason why the metrics of a traced repetition are unusable, or None."""
        if reason := dict(self.unsupported).get(TRACED_METRICS):
            return reason
        if self.overrun:
            return Unsupported(f"the trace buffer lost {self.overrun} events", NotMeasuredCause.EVENTS_LOST)
        return None

    def frame(self, name: str) -> list[str]:
        """Return the lines of a framed payload. Raises NoSamples if it is missing or incomplete."""
        try:
            return self.frames[name]
        except KeyError:
            raise NoSamples(f"no complete `{name}` in the output{self._damage_text()}") from None

    def value(self, name: str) -> float:
        """Return a number that the script computed. Raises NoSamples if it is missing."""
        try:
            return self.values[name]
        except KeyError:
            raise NoSamples(f"no value of {name} in the output{self._damage_text()}") from None

    def _damage_text(self) -> str:
        return f" ({'; '.join(self.damage)})" if self.damage else ""


_UNREADABLE = (NotMeasured, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Parse(Protocol):
    """The `parse` function of a parser."""

    def __call__(self, records: Records, topology: MeasuredTopology, traced: bool) -> Measurement: ...


def parser(name: str) -> Parse:
    """Return the `parse` function of parsers/<name>.py. Raises ValueError, listing the parsers, for another name."""
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
    """Turn the script's standard output into a measurement of the plan's metrics.

    A setting that the kernel did not use is unsupported. A metric that the plan takes from this kind of repetition and
    that is missing is unsupported if the output is undamaged, and a failure if it is damaged.
    """
    records = read_records(text)
    parse = parser(parser_name)
    try:
        measurement = parse(records, topology, traced)
    except _UNREADABLE as error:
        # A parser reads a device's output: its exception means that nothing was measured, not that the lab is broken.
        why = f"not measured: parser {parser_name} cannot read the output: {type(error).__name__}: {str(error)[:300]}"
        failure = records.failure or _tool_error(why, records.damage)
        return Measurement(failure=failure, command=records.command, facts=dict(records.facts))
    if measurement.failure or any(metric is None for metric, _ in measurement.unsupported):
        return measurement
    if reason := _setting_mismatch(setting, records):
        return Measurement(unsupported=[(None, reason)], command=measurement.command, facts=measurement.facts)
    mode = TraceMode.TRACED if traced else TraceMode.UNTRACED
    accounted = measurement.values.keys() | {metric for metric, _ in measurement.unsupported}
    planned = [metric.name for metric in plan.metrics if metric.taken_from is mode]
    missing = [name for name in planned if name not in accounted]
    # A parser of no particular plan does not know the metrics' names and may report others.
    known = next((reason for name, reason in measurement.unsupported if name in measurement.empty), None)
    others = measurement.empty.difference(planned)
    measurement = replace(
        measurement,
        unsupported=[(name, reason) for name, reason in measurement.unsupported if name not in others],
        empty=measurement.empty - others,
    )
    if missing and records.void:
        return replace(measurement, unsupported=[*measurement.unsupported, *((name, records.void) for name in missing)])
    if missing and records.damage:
        lacking = f"not measured: {', '.join(missing)}: not among what parser {parser_name} found in the output"
        failure = _tool_error(lacking, records.damage)
        return Measurement(failure=failure, command=measurement.command, facts=measurement.facts)
    if missing:
        reasons = ((name, known or _no_value(name)) for name in missing)
        return replace(
            measurement,
            unsupported=[*measurement.unsupported, *reasons],
            empty=measurement.empty.union(missing),
        )
    return measurement


def compute_measurement(
    records: Records, metrics: Iterable[str], compute: Callable[[], Mapping[str, float | Unsupported]]
) -> Measurement:
    """Build the measurement of one repetition; the common part of all parsers.

    `compute` returns the value of each of `metrics`, or `Unsupported`, and raises NotMeasured. It is not called if the
    script reported that there is nothing to compute. A workload without samples is a failure only if the output is
    damaged, since samples may be lost.
    """
    names = list(metrics)

    def result(
        values: dict[str, float] | None = None,
        unsupported: list[tuple[str | None, Unsupported]] | None = None,
        empty: Iterable[str] = (),
        failure: Failure | None = None,
    ) -> Measurement:
        return Measurement(
            values or {}, unsupported or [], frozenset(empty), failure, records.command, dict(records.facts)
        )

    if records.failure:
        return result(failure=records.failure)
    unsupported_by_script = dict(records.unsupported)
    if WHOLE_SETTING in unsupported_by_script:
        return result(unsupported=[(None, unsupported_by_script[WHOLE_SETTING])])
    if records.void:
        return result(unsupported=[(name, records.void) for name in names])
    try:
        computed = compute()
    except NotMeasured as error:
        if records.damage or not isinstance(error, NoSamples):
            return result(failure=_tool_error(f"not measured: {error}", records.damage))
        reason = Unsupported(str(error), NotMeasuredCause.NO_SAMPLES)
        return result(
            unsupported=[(name, unsupported_by_script.get(name, reason)) for name in names],
            empty=[name for name in names if name not in unsupported_by_script],
        )
    values: dict[str, float] = {}
    unsupported: list[tuple[str | None, Unsupported]] = []
    empty: list[str] = []
    for name in names:
        value = computed.get(name)
        if name in unsupported_by_script:
            unsupported.append((name, unsupported_by_script[name]))
        elif isinstance(value, Unsupported):
            unsupported.append((name, value))
        elif value is None and records.damage:
            return result(failure=_tool_error(f"not measured: {_no_value(name)}", records.damage))
        elif value is None:
            unsupported.append((name, _no_value(name)))
            empty.append(name)
        elif not (math.isfinite(value) and 0 <= value <= VALUE_LIMIT):
            return result(failure=_tool_error(f"not measured: {name} would be {value!r}", records.damage))
        else:
            values[name] = float(value)
    return result(values, unsupported, empty)


def number(text: str) -> float:
    """Parse a finite number of plausible size. Raises ValueError, also for `nan`, `1e400`, `1_000` and hexadecimal."""
    if len(text) > 40 or "_" in text or not text.isascii():
        raise ValueError(f"not a number: {text[:40]!r}")
    value = float(text)
    if not math.isfinite(value) or abs(value) > VALUE_LIMIT:
        raise ValueError(f"not a plausible number: {text!r}")
    return value


def count(text: str) -> int:
    """Parse a whole number from 0 up. Raises ValueError."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"not a count: {text[:40]!r}")
    return int(text)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_records(text: str) -> Records:
    """Read a script's standard output; never raises. Unreadable parts are listed in `damage`.

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
        """Read one payload to its end; return the name of a payload that interrupts it, or None."""
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
            self._damaged(f"`{name}` occurs twice")
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
                records.unsupported.append((metric, Unsupported(reason)))
            case "fact", [name, value]:
                records.facts[name] = value.strip()
            case "value", [name, value]:
                # A broken second value invalidates the first one too.
                records.values.pop(name, None)
                records.values[name] = number(value)
            case "overrun", [lost]:
                # Events were lost even if their number is not readable.
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


def _setting_mismatch(setting: str, records: Records) -> Unsupported | None:
    """Describe how the kernel's setting differed from the requested one; None if it did not."""
    for knob, requested in parse_setting(setting).items():
        for when, found in (("", records.settings.get(knob)), ("later ", records.settings_after.get(knob))):
            if found != requested:
                used = f"the kernel {when}used {found}" if found else f"{when}it could not be read back"
                return Unsupported(f"{knob}={requested} was requested, {used}", NotMeasuredCause.SETTING_NOT_USED)
    return None


def _no_value(name: str) -> Unsupported:
    return Unsupported(f"no {name} in the output", NotMeasuredCause.NO_SAMPLES)


def _tool_error(summary: str, damage: Iterable[str] = ()) -> Failure:
    return Failure(kind=ErrorKind.INFRASTRUCTURE, summary=summary, excerpt="\n".join(damage)[:EXCERPT_LIMIT])
