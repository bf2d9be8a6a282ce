"""Test plans: what runs on a device, what is measured, and what was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import ConfigDict, Field, model_validator

from ..enums import Direction, Evidence, MetricClass, Role, Scale, TraceMode
from .base import Name, Strict


class Metric(Strict):
    name: Name
    summary: str
    unit: str
    scale: Scale
    direction: Direction
    metric_class: MetricClass = Field(alias="class")
    taken_from: TraceMode
    role_hardware: Role = Role.EXPLANATORY
    role_emulated: Role = Role.EXPLANATORY
    delta: float | None = Field(default=None, ge=0)
    """Smallest effect worth a person's attention: percent for `ratio`, units for `difference`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    def role(self, emulated: bool) -> Role:
        return self.role_emulated if emulated else self.role_hardware

    def evidence(self, emulated: bool) -> Evidence:
        if self.metric_class is MetricClass.MECHANISM:
            return Evidence.MECHANISM
        return Evidence.NONE if emulated else Evidence.PERFORMANCE


class Scenario(Strict):
    name: Name
    summary: str
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    """Handed to the script as environment variables, upper-cased; over the plan's own parameters."""


class Axis(Strict):
    """A run-time knob: switched inside a boot, read back before and after each repetition."""

    name: Name
    values: list[str] = Field(min_length=1)
    default: str | None = None
    """What a setting means that does not name this knob. Canonical settings leave the knob out where it has this value,
    so that a knob which few kernels have does not stand in every setting."""

    @model_validator(mode="after")
    def _default_is_a_value(self) -> Self:
        if self.default is not None and self.default not in self.values:
            raise ValueError(f"default {self.default!r} is not one of {', '.join(self.values)}")
        return self


class Repetitions(Strict):
    warmup: int = Field(default=1, ge=0, le=10)
    untraced: int = Field(default=5, ge=0, le=100)
    traced: int = Field(default=1, ge=0, le=100)


class Profile(Strict):
    """What differs between real hardware and an emulated device."""

    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    repetitions: Repetitions = Repetitions()
    scenarios: list[Name] | None = Field(default=None, min_length=1)
    """The scenarios measured when a submission names none; by default all of the plan's."""
    settings: list[str] = Field(min_length=1)
    """The settings measured when a submission names none; canonical strings such as `scope=cache,strict=1`."""
    blocks: int = Field(default=6, ge=1, le=100)
    measure_timeout_s: int = Field(default=300, ge=1, le=7200)
    """Longest time one repetition may take."""


class Reference(Strict):
    """A published figure shown beside the measured one; never used in a verdict."""

    scenario: Name
    setting: str
    metric: Name
    relative_to: str | None = None
    """Another setting: `mean` is the change from it, in percent, where that is all that was published."""
    mean: float
    stddev: float | None = None
    n: int | None = None
    kernel: str
    machine: str
    source: str


class Tradeoff(Strict):
    """The two metrics that a plan's settings trade against each other: reports draw the one over the other."""

    locality: Name
    work_conservation: Name


class Curve(Strict):
    """A plan's scenarios are points of an ordered quantity: reports draw `metrics` over it, a line for each setting,
    and say where two lines cross."""

    over: Name
    """The metric whose value says where a scenario lies; it is measured, because a point may depend on the device."""
    metrics: list[Name] = Field(min_length=1)


class TestPlan(Strict):
    __test__ = False

    name: Name
    summary: str
    script: str
    """Path, relative to the plan's folder (or to that of `files_of`), of the script that runs on the device."""
    files_of: Name | None = None
    """Another plan whose files go to the device too, beneath this plan's own: for plans that share a script."""
    parser: Name
    """Module under wqlab_worker/parsers that turns the script's output into samples."""
    modules: list[Name] = Field(default_factory=list)
    """Kernel modules that go to the device with the plan's files: the recipe's, else the kernel's own of that name. In
    place of one that is not there goes NAME.absent with the reason."""
    scenarios: list[Scenario] = Field(min_length=1)
    axes: list[Axis] = Field(default_factory=list)
    reference_setting: str
    hardware: Profile
    emulated: Profile
    metrics: list[Metric] = Field(min_length=0)
    references: list[Reference] = Field(default_factory=list)
    tradeoff: Tradeoff | None = None
    curve: Curve | None = None
    checks_health: bool = False

    def profile(self, emulated: bool) -> Profile:
        return self.emulated if emulated else self.hardware

    def narrowed(self, scenarios: Sequence[str]) -> TestPlan:
        """This plan with only these scenarios, in its own order, and the reference figures that belong to them."""
        return self.model_copy(
            update={
                "scenarios": [each for each in self.scenarios if each.name in scenarios],
                "references": [each for each in self.references if each.scenario in scenarios],
                # They name scenarios that may be gone; what is left is measured on either kind of device.
                "hardware": self.hardware.model_copy(update={"scenarios": None}),
                "emulated": self.emulated.model_copy(update={"scenarios": None}),
            }
        )

    def measured(self, scenarios: Sequence[str] | None, emulated: bool) -> TestPlan:
        """What a submission measures of this plan: the scenarios it names, else its profile's, else all."""
        chosen = scenarios or self.profile(emulated).scenarios
        return self.narrowed(chosen) if chosen else self

    def metric(self, name: str) -> Metric:
        """Raises KeyError for a metric the plan does not define."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise KeyError(name)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for kind, names in (
            ("scenario", [s.name for s in self.scenarios]),
            ("metric", [m.name for m in self.metrics]),
            ("axis", [a.name for a in self.axes]),
        ):
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{kind} {name} is defined twice")
        for emulated in (False, True):
            primaries = [m.name for m in self.metrics if m.role(emulated) is Role.PRIMARY]
            if len(primaries) > 1:
                device = "emulated devices" if emulated else "hardware"
                raise ValueError(f"one primary metric per class: {', '.join(primaries)} are all primary on {device}")
        for setting in (self.reference_setting, *self.hardware.settings, *self.emulated.settings):
            self.check_setting(setting)
        known = {s.name for s in self.scenarios}
        for name in (*(self.hardware.scenarios or ()), *(self.emulated.scenarios or ())):
            if name not in known:
                raise ValueError(f"profile for unknown scenario {name!r} (scenarios: {', '.join(sorted(known))})")
        for reference in self.references:
            if reference.scenario not in known:
                raise ValueError(f"reference figure for unknown scenario {reference.scenario}")
            if reference.relative_to is not None:
                self.check_setting(reference.relative_to)
            self.metric_or_error(reference.metric)
        if self.tradeoff is not None:
            self.metric_or_error(self.tradeoff.locality)
            self.metric_or_error(self.tradeoff.work_conservation)
        for metric in (self.curve.over, *self.curve.metrics) if self.curve is not None else ():
            self.metric_or_error(metric)
        return self

    def metric_or_error(self, name: str) -> Metric:
        try:
            return self.metric(name)
        except KeyError:
            raise ValueError(f"unknown metric {name}") from None

    def check_setting(self, setting: str) -> None:
        """Raises ValueError, naming the knob and the values it takes, unless `setting` is one of this plan's."""
        axes = {axis.name: axis.values for axis in self.axes}
        defaults = self._defaults()
        chosen = parse_setting(setting)
        for knob, value in chosen.items():
            if knob not in axes:
                known = ", ".join(axes) or "none"
                raise ValueError(f"setting {setting!r}: plan {self.name} has no knob {knob!r} (knobs: {known})")
            if value not in axes[knob]:
                raise ValueError(f"setting {setting!r}: {knob} takes {', '.join(axes[knob])}, not {value!r}")
        missing = axes.keys() - chosen.keys() - defaults.keys()
        if missing:
            raise ValueError(f"setting {setting!r} does not say {', '.join(sorted(missing))}")
        told = {knob: value for knob, value in chosen.items() if defaults.get(knob) != value}
        if setting != format_setting(told):
            raise ValueError(f"setting {setting!r} is not canonical: write {format_setting(told)!r}")

    def knobs(self, setting: str) -> dict[str, str]:
        """Every knob's value under `setting`, those that it leaves at their default too. Raises ValueError for text
        that is no setting."""
        return self._defaults() | parse_setting(setting)

    def _defaults(self) -> dict[str, str]:
        return {axis.name: axis.default for axis in self.axes if axis.default is not None}


NO_SETTING = ""
"""The canonical setting of a plan without axes."""


def parse_setting(setting: str) -> dict[str, str]:
    """`scope=cache,strict=1` -> {'scope': 'cache', 'strict': '1'}. Raises ValueError for anything else."""
    if setting == NO_SETTING:
        return {}
    chosen: dict[str, str] = {}
    for pair in setting.split(","):
        knob, equals, value = pair.partition("=")
        if not (knob and equals and value):
            raise ValueError(f"setting {setting!r}: expected knob=value pairs separated by commas")
        if knob in chosen:
            raise ValueError(f"setting {setting!r}: {knob} is given twice")
        chosen[knob] = value
    return chosen


def format_setting(chosen: dict[str, str]) -> str:
    """The canonical form: pairs sorted by knob."""
    return ",".join(f"{knob}={chosen[knob]}" for knob in sorted(chosen))
