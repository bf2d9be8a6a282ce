"""Test plans: scenarios, settings, metrics and published reference figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from ..enums import MetricClass, Role, TraceMode
from .base import Name, Strict
from .devices import DeviceType
from .instrumented import INSTRUMENTED_METRICS, counts_beside, modelled_metrics
from .metrics import Metric


class Scenario(Strict):
    """One workload configuration of a plan."""

    name: Name
    summary: str
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    """Passed to the script as environment variables with upper-case names; override the profile's parameters."""


class Axis(Strict):
    """A run-time knob, switched within a boot and read back before and after each repetition."""

    name: Name
    values: list[str] = Field(min_length=1)
    default: str | None = None
    """Value of the knob in settings that do not name it. Canonical settings omit the knob if it has this value, so that
    a knob of few kernels does not appear in every setting."""

    @model_validator(mode="after")
    def _check_default(self) -> Self:
        if self.default is not None and self.default not in self.values:
            raise ValueError(f"default {self.default!r} is not one of {', '.join(self.values)}")
        return self


class Repetitions(Strict):
    """Number of repetitions of each kind per boot, scenario and setting."""

    warmup: int = Field(default=1, ge=0, le=10)
    """Fewest warm-up repetitions."""
    warmup_most: int | None = Field(default=None, ge=2, le=20)
    """Most warm-up repetitions: those after the first `warmup` run until the timed primary figures are stable.
    None: exactly `warmup`."""
    untraced: int = Field(default=5, ge=0, le=100)
    traced: int = Field(default=1, ge=0, le=100)

    @property
    def modes(self) -> set[TraceMode]:
        """Modes of which there are repetitions."""
        numbers = {TraceMode.UNTRACED: self.untraced, TraceMode.TRACED: self.traced}
        return {mode for mode, number in numbers.items() if number}

    @property
    def most_warmups(self) -> int:
        return self.warmup if self.warmup_most is None else self.warmup_most

    @property
    def most(self) -> int:
        """Return the largest number of repetitions of a cell."""
        return self.most_warmups + self.untraced + self.traced

    @model_validator(mode="after")
    def _check_warmups(self) -> Self:
        if self.warmup_most is not None and not 2 <= self.warmup < self.warmup_most:
            raise ValueError(
                f"warmup_most: {self.warmup_most} needs a `warmup` of at least 2, which are compared, and below it"
            )
        return self


LARGEST_LOOK = 100
"""Largest number of blocks of a run."""
LOOKS_MISTAKE = f"looks are different numbers of blocks from 2 to {LARGEST_LOOK}, ascending, such as 6, 10, 16"


def are_looks(looks: Sequence[int]) -> bool:
    """Return True if these are numbers of blocks after which a run can be looked at: at least two, ascending."""
    ascending = all(before < after for before, after in pairwise(looks))
    return len(looks) > 1 and ascending and looks[0] > 1 and looks[-1] <= LARGEST_LOOK


class Profile(Strict):
    """Parameters of a plan that differ between real hardware and emulated devices."""

    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    from_cpus: dict[Annotated[int, Field(ge=1)], dict[str, str | int | float]] = Field(default_factory=dict)
    """Number of CPUs -> parameters that apply instead on devices with at least so many, on which the workload would
    take too long otherwise. The largest such number counts alone."""
    repetitions: Repetitions = Repetitions()
    scenarios: list[Name] | None = Field(default=None, min_length=1)
    """Scenarios measured if a submission names none; None: all scenarios of the plan."""
    settings: list[str] = Field(min_length=1)
    """Settings measured if a submission names none; canonical strings such as `scope=cache,strict=1`."""
    blocks: int = Field(default=6, ge=1, le=LARGEST_LOOK)
    looks: list[int] = Field(default_factory=list)
    """Numbers of blocks after which the run may stop early, such as `[6, 10, 16]`; the last replaces `blocks`. Empty:
    the run always has `blocks` blocks."""
    measure_timeout_s: int = Field(default=300, ge=1, le=7200)
    """Maximum time of one repetition."""
    spreads: dict[Name, float] = Field(default_factory=dict, exclude_if=lambda known: not known)
    """Metric -> standard deviation of a block's difference between equal kernels, as the lab had measured it when it
    planned the run (logarithms for scale `ratio`). A plan states none."""

    def on_cpus(self, cpus: int) -> Profile:
        """Return the profile with the parameters of devices with this number of CPUs."""
        largest = max((least for least in self.from_cpus if least <= cpus), default=None)
        replaced = {} if largest is None else self.from_cpus[largest]
        return self.model_copy(update={"parameters": {**self.parameters, **replaced}, "from_cpus": {}})

    @model_validator(mode="after")
    def _check_from_cpus(self) -> Self:
        for least, parameters in self.from_cpus.items():
            if unknown := sorted(parameters.keys() - self.parameters.keys()):
                raise ValueError(f"from_cpus {least}: {', '.join(unknown)} is not among the profile's parameters")
        return self

    @model_validator(mode="after")
    def _check_looks(self) -> Self:
        if self.looks and not are_looks(self.looks):
            raise ValueError(f"{self.looks} are no looks: {LOOKS_MISTAKE}")
        return self

    @property
    def most_blocks(self) -> int:
        """Return the number of blocks of a run that no look stops."""
        return self.looks[-1] if self.looks else self.blocks


class Reference(Strict):
    """A published figure, shown beside the measured one and never used for a verdict."""

    scenario: Name
    setting: str
    metric: Name
    relative_to: str | None = None
    """Another setting, if only a change was published: `mean` is then the change from that setting in percent."""
    mean: float
    stddev: float | None = None
    n: int | None = None
    kernel: str
    machine: str
    source: str


class Tradeoff(Strict):
    """Two metrics that a plan's settings trade against each other; reports plot one over the other."""

    locality: Name
    work_conservation: Name


class Curve(Strict):
    """Plot of metrics over an ordered quantity of the scenarios.

    Reports draw `metrics` over it with one line per setting and list the crossings of two lines.
    """

    over: Name
    """Metric that gives the position of a scenario; measured, since it can depend on the device."""
    metrics: list[Name] = Field(min_length=1)


INSTRUMENTED_BLOCKS = 6
"""Blocks on instrumented devices, one seed each: the fewest with which a sign-flip test can reach p <= .05."""


RESERVED_NAMES = ("new", "show")
"""Commands of `wqlab plans`, which are no names of plans, so that `wqlab plans NAME` shows a plan."""


class TestPlan(Strict):
    """A test plan: content of testplans/<plan>/plan.yaml."""

    __test__ = False

    name: Name
    summary: str
    script: str
    """Script that runs on the device; path relative to the plan's folder or to that of `files_of`."""
    files_of: Name | None = None
    """Another plan whose files are sent too, for plans that share a script. This plan's own files take precedence."""
    parser: Name
    """Module in wqlab_worker/measure/parsers that parses the script's output into samples."""
    modules: list[Name] = Field(default_factory=list)
    """Kernel modules sent with the plan's files: the recipe's module of that name, else the kernel's. If neither
    exists, the file NAME.absent with the reason is sent instead."""
    fragments: list[Name] = Field(default_factory=list)
    """Fragments of kernels/fragments that the kernels of this plan need besides those of the recipe."""
    scenarios: list[Scenario] = Field(min_length=1)
    axes: list[Axis] = Field(default_factory=list)
    reference_setting: str
    hardware: Profile
    emulated: Profile
    instrumented: Profile | None = None
    """Profile of instrumented devices; None: the emulated profile with one untraced repetition and
    INSTRUMENTED_BLOCKS blocks."""
    modelled: Profile | None = Field(default=None, exclude_if=lambda profile: profile is None)
    """Profile of modelled devices, of which a second takes minutes of the host's time; None: that of instrumented
    devices."""
    operations: Name | None = None
    """Count of the parser by which instrumented metrics are divided, if it has several (`total_ios`, `fsyncs`); None:
    the parser's first."""
    metrics: list[Metric] = Field(min_length=0)
    references: list[Reference] = Field(default_factory=list)
    tradeoff: Tradeoff | None = None
    curve: Curve | None = None
    checks_health: bool = False

    def profile(self, emulated: bool) -> Profile:
        return self.emulated if emulated else self.hardware

    @property
    def instrumented_profile(self) -> Profile:
        """Return the profile of instrumented devices, as stated or derived from the emulated one."""
        if self.instrumented is not None:
            return self.instrumented
        repetitions = Repetitions(warmup=0, untraced=1, traced=0)
        return self.emulated.model_copy(update={"repetitions": repetitions, "blocks": INSTRUMENTED_BLOCKS, "looks": []})

    @property
    def is_instrumented(self) -> bool:
        """Return True if the plan is that of an instrumented device, as `for_instrumented` returns it."""
        return any(metric.metric_class is MetricClass.INSTRUMENTED for metric in self.metrics)

    @property
    def is_modelled(self) -> bool:
        """Return True if the plan is that of a modelled device and has metrics of its own there."""
        return any(metric.metric_class is MetricClass.MODELLED for metric in self.metrics)

    def for_instrumented(self, *, modelled: bool = False) -> TestPlan:
        """Return the plan as instrumented devices run it: with the emulator's metrics.

        On modelled devices the plan's own metrics come first.

        Elsewhere times mean nothing, so the plan's own metrics are not measured. What refers to metrics that are not
        measured is left out. The result is an ordinary plan for emulated devices.
        """
        profile = self.instrumented_profile
        own = modelled_metrics(self.metrics, profile.repetitions.modes) if modelled else []
        names = {metric.name for metric in own}
        tradeoff, curve = self.tradeoff, self.curve
        return self.model_copy(
            update={
                "emulated": profile,
                "instrumented": profile,
                "metrics": [*own, *counts_beside(own)],
                "references": [each for each in self.references if each.metric in names],
                "tradeoff": tradeoff if tradeoff and names >= {tradeoff.locality, tradeoff.work_conservation} else None,
                "curve": curve if curve and names >= {curve.over, *curve.metrics} else None,
            }
        )

    def on(self, device_type: DeviceType) -> TestPlan:
        """Return the plan as devices of this type run it. A health check is the same on all."""
        if device_type.modelled and self.modelled is not None:
            return self.model_copy(update={"instrumented": self.modelled, "modelled": None}).on(device_type)
        if self.checks_health:
            return self
        plan = self.for_instrumented(modelled=device_type.modelled) if device_type.instrumented else self
        cpus = device_type.topology.cpus
        return plan.model_copy(
            update={
                "hardware": plan.hardware.on_cpus(cpus),
                "emulated": plan.emulated.on_cpus(cpus),
                "instrumented": plan.instrumented and plan.instrumented.on_cpus(cpus),
                "modelled": None,
            }
        )

    def with_scenarios(self, scenarios: Sequence[str]) -> TestPlan:
        """Return this plan with only these scenarios, in the plan's order, and their reference figures."""
        return self.model_copy(
            update={
                "scenarios": [each for each in self.scenarios if each.name in scenarios],
                "references": [each for each in self.references if each.scenario in scenarios],
                # The profiles may name removed scenarios; the remaining ones apply to both kinds of device.
                "hardware": self.hardware.model_copy(update={"scenarios": None}),
                "emulated": self.emulated.model_copy(update={"scenarios": None}),
                "instrumented": self.instrumented and self.instrumented.model_copy(update={"scenarios": None}),
                "modelled": self.modelled and self.modelled.model_copy(update={"scenarios": None}),
            }
        )

    def measured(self, scenarios: Sequence[str] | None, emulated: bool) -> TestPlan:
        """Return the plan with the scenarios to measure: those given, else the profile's, else all."""
        chosen = scenarios or self.profile(emulated).scenarios
        return self.with_scenarios(chosen) if chosen else self

    def metric(self, name: str) -> Metric:
        """Return a metric by name. Raises KeyError if the plan does not define it."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise KeyError(name)

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name in RESERVED_NAMES:
            raise ValueError(f"a plan cannot be called {name!r}: that is a command of `wqlab plans`; rename the plan")
        return name

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        for kind, names in (
            ("scenario", [s.name for s in self.scenarios]),
            ("metric", [m.name for m in self.metrics]),
            ("axis", [a.name for a in self.axes]),
        ):
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{kind} {name} is defined twice")
        self._check_instrumented_metrics()
        for emulated in (False, True):
            primaries = [m.name for m in self.metrics if m.role(emulated) is Role.PRIMARY]
            if len(primaries) > 1:
                device = "emulated devices" if emulated else "hardware"
                raise ValueError(f"one primary metric per class: {', '.join(primaries)} are all primary on {device}")
        stated = (self.hardware, self.emulated, self.instrumented, self.modelled)
        profiles = [each for each in stated if each is not None]
        for setting in (self.reference_setting, *(setting for each in profiles for setting in each.settings)):
            self.check_setting(setting)
        known = {s.name for s in self.scenarios}
        for name in (name for each in profiles for name in each.scenarios or ()):
            if name not in known:
                raise ValueError(f"profile for unknown scenario {name!r} (scenarios: {', '.join(sorted(known))})")
        for reference in self.references:
            if reference.scenario not in known:
                raise ValueError(f"reference figure for unknown scenario {reference.scenario}")
            if reference.relative_to is not None:
                self.check_setting(reference.relative_to)
            self.require_metric(reference.metric)
        if self.tradeoff is not None:
            self.require_metric(self.tradeoff.locality)
            self.require_metric(self.tradeoff.work_conservation)
        for metric in (self.curve.over, *self.curve.metrics) if self.curve is not None else ():
            self.require_metric(metric)
        return self

    def _check_instrumented_metrics(self) -> None:
        """Reject an instrumented metric that is not one of INSTRUMENTED_METRICS, or another metric of such a name."""
        common = {metric.name: metric for metric in INSTRUMENTED_METRICS}
        for metric in self.metrics:
            if metric.metric_class is MetricClass.INSTRUMENTED and metric.name not in common:
                raise ValueError(
                    f"metric {metric.name}: a plan cannot define metrics of class instrumented; every plan has "
                    f"{', '.join(common)}"
                )
            if metric.metric_class is not MetricClass.INSTRUMENTED and metric.name in common:
                raise ValueError(f"metric {metric.name} is measured on instrumented devices; choose another name")

    def require_metric(self, name: str) -> Metric:
        """Return a metric by name. Raises ValueError if the plan does not define it."""
        try:
            return self.metric(name)
        except KeyError:
            raise ValueError(f"unknown metric {name}") from None

    def check_setting(self, setting: str) -> None:
        """Check a setting. Raises ValueError, with the knob and its values, if the plan does not allow it."""
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
            raise ValueError(f"setting {setting!r} has no value for {', '.join(sorted(missing))}")
        explicit = {knob: value for knob, value in chosen.items() if defaults.get(knob) != value}
        if setting != format_setting(explicit):
            raise ValueError(f"setting {setting!r} is not canonical: write {format_setting(explicit)!r}")

    def knobs(self, setting: str) -> dict[str, str]:
        """Return the value of each knob under `setting`, including defaults. Raises ValueError if it is malformed."""
        return self._defaults() | parse_setting(setting)

    def _defaults(self) -> dict[str, str]:
        return {axis.name: axis.default for axis in self.axes if axis.default is not None}


NO_SETTING = ""
"""Canonical setting of a plan without axes."""


def parse_setting(setting: str) -> dict[str, str]:
    """Parse a setting: `scope=cache,strict=1` -> {'scope': 'cache', 'strict': '1'}. Raises ValueError if malformed."""
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
    """Format a setting in canonical form, with the pairs sorted by knob."""
    return ",".join(f"{knob}={chosen[knob]}" for knob in sorted(chosen))
