"""What the data folders hold: device types, kernel trees and recipes, test plans.

These models are the schema of every YAML file that a lab operator writes; `loading.py` reads the files and turns a
violation into an error with file, line and key. Unknown fields are rejected everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from .enums import Direction, Evidence, MetricClass, Role, Scale, TraceMode

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
CpuArch = Literal["x86_64", "arm64"]
LastLevel = Literal["L3", "L2", "cluster", "package"]
"""What the CPUs of a last-level cache domain share: the highest cache that is known, else what stands for it."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# --- device types -----------------------------------------------------------------------------------------------


class Cluster(Strict):
    """Cores of one kind on a big.LITTLE board, numbered one after another."""

    cores: int = Field(ge=1, le=64)
    capacity: int = Field(ge=1, le=1024)
    """How much a core gets done beside the strongest kind's 1024, at its highest clock (`capacity-dmips-mhz`)."""


class Topology(Strict):
    """The CPU layout a device type declares; each boot's measured topology is checked against it.

    `sockets * l3_per_socket * cores_per_l3 * threads_per_core` CPUs in all. `clusters` says how the cores of one
    socket differ, in the order of their numbers; without an L3 cache they are what shares a last-level cache.
    """

    sockets: int = Field(ge=1, le=16)
    l3_per_socket: int = Field(ge=0, le=64)
    """0: no L3 cache; then `clusters` has all cores and `cores_per_l3` is left out."""
    cores_per_l3: int = Field(default=0, ge=0, le=256)
    threads_per_core: int = Field(ge=1, le=8)
    numa_nodes: int = Field(default=1, ge=1, le=64)
    numbering: Literal["contiguous", "smt_last"] = "contiguous"
    """`contiguous`: SMT siblings are neighbours (0,1). `smt_last`: the siblings of CPUs 0..N/2-1 are at +N/2."""
    clusters: list[Cluster] = Field(default_factory=list)

    @property
    def domain_cores(self) -> list[int]:
        """Cores of each last-level cache domain, in the order of their numbers: of each L3, else of each cluster."""
        if self.l3_per_socket == 0:
            return [cluster.cores for cluster in self.clusters]
        return [self.cores_per_l3] * (self.sockets * self.l3_per_socket)

    @property
    def cores(self) -> int:
        return sum(self.domain_cores)

    @property
    def cpus(self) -> int:
        return self.cores * self.threads_per_core

    @property
    def l3_domains(self) -> int:
        return len(self.domain_cores)

    @property
    def last_level(self) -> LastLevel:
        return "L3" if self.l3_per_socket else "L2"

    @property
    def core_capacity(self) -> list[int] | None:
        """Capacity of each core; None where all are alike."""
        kinds = [cluster.capacity for cluster in self.clusters for _ in range(cluster.cores)]
        return kinds if len(set(kinds)) > 1 else None

    @model_validator(mode="after")
    def _clusters_fit(self) -> Self:
        if self.clusters:
            if self.sockets > 1 or self.numa_nodes > 1 or self.numbering != "contiguous":
                raise ValueError("clusters belong to a board with one socket, one NUMA node and contiguous numbering")
            if max(cluster.capacity for cluster in self.clusters) != 1024:
                raise ValueError("the strongest of the clusters has capacity 1024")
        if self.l3_per_socket == 0:
            if not self.clusters or self.cores_per_l3:
                raise ValueError("l3_per_socket 0 (no L3 cache) needs clusters, and no cores_per_l3")
        elif self.cores_per_l3 == 0:
            raise ValueError("cores_per_l3 is missing")
        elif self.clusters and sum(cluster.cores for cluster in self.clusters) != self.cores:
            raise ValueError(f"the clusters have {sum(c.cores for c in self.clusters)} cores, the L3s {self.cores}")
        return self

    @model_validator(mode="after")
    def _nodes_divide_cpus(self) -> Self:
        if self.cpus > 512:
            raise ValueError(f"{self.cpus} CPUs; the lab's kernels are built for at most 512")
        if self.cpus % self.numa_nodes:
            raise ValueError(f"{self.cpus} CPUs do not divide into {self.numa_nodes} NUMA nodes")
        if self.numbering == "smt_last" and self.threads_per_core != 2:
            raise ValueError("numbering smt_last needs threads_per_core: 2")
        return self


class Emulation(Strict):
    """How the virtual bench builds a board of this type; absent for real hardware."""

    memory_mib: int = Field(ge=256, le=262144)
    cpu_model: str = "Skylake-Server"
    """One of QEMU's models for the board's architecture."""
    kernel_arguments: str = "tsc=reliable no_timer_check nokaslr mitigations=off"
    """What an emulated machine needs to keep time and to boot the same way every time. Mitigations cost emulation time;
    their absence is no default for hardware."""


class BootMethod(Strict):
    """How a board reaches the golden system and, from there, a variant."""

    console_speed: int = 115200
    console_device: str = "ttyS0"
    golden_timeout_s: int = Field(default=120, ge=5, le=3600)
    variant_timeout_s: int = Field(default=120, ge=5, le=3600)
    power_off_s: float = Field(default=2.0, ge=0, le=120)
    """How long the power stays off in a cold cycle."""
    rootfs: str = "/lab/rootfs.cpio.zst"
    """Path on the golden system of the root filesystem image that variants boot with."""
    kernel_arguments: str = ""
    """Appended to every variant's command line."""


Condition = Literal["governor", "boost", "irq_affinity", "temperature"]
"""What can be required of a board when a boot begins to measure."""


class Conditions(Strict):
    """What a maintainer lets the lab set on boards of a type. All of it is read back and recorded with every boot."""

    governor: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")] | None = None
    """Of every cpufreq policy."""
    boost: bool | None = None
    irq_affinity: (
        Annotated[str, StringConstraints(pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$")] | None
    ) = None
    """The CPUs that devices interrupt, as the kernel lists them: `0-3`."""
    smt: bool | None = None
    """False: `nosmt` on every command line; the declared topology then has one thread a core."""
    mitigations: Literal["auto", "auto,nosmt", "off"] | None = None
    """On every command line."""
    start_below_c: float | None = Field(default=None, gt=0, le=110)
    """The hottest sensor must be below this, in degrees Celsius, before a boot measures."""
    cool_s: int = Field(default=300, ge=0, le=3600)
    """How long a boot waits for that; then it goes on, and its record says how hot it was."""
    required: list[Condition] = Field(default_factory=list)
    """A boot on a board that lacks one of these, or does not take it, fails. Without it that is recorded, no more."""

    @property
    def kernel_arguments(self) -> str:
        smt = "nosmt" if self.smt is False else ""
        mitigations = f"mitigations={self.mitigations}" if self.mitigations else ""
        return " ".join(words for words in (smt, mitigations) if words)

    @model_validator(mode="after")
    def _required_is_wanted(self) -> Self:
        wanted = {
            "governor": self.governor,
            "boost": self.boost,
            "irq_affinity": self.irq_affinity,
            "temperature": self.start_below_c,
        }
        for name in self.required:
            if wanted[name] is None:
                raise ValueError(f"{name} is required, and nothing says what it has to be")
        return self


ScratchDevice = Annotated[str, StringConstraints(pattern=r"^/dev/disk/by-id/[^/\s]+$")]
"""By identity and never by order: /dev/sda can be another disk after the next boot, and then a plan overwrites that."""


Command = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\n]+$")]


class ExternalPower(Strict):
    """A power switch that labgrid has no network driver for (IPMI, a debug cable): commands that the worker runs on
    its host, split as a shell would, without one. Whoever writes the data folder says what runs there."""

    turn_on: Command
    turn_off: Command


class Unit(Strict):
    """One physical (or virtual) board: a labgrid place."""

    name: Name
    lab: Name = "local"
    scratch: list[ScratchDevice] = Field(default_factory=list)
    """Block devices that plans may overwrite, all of them. No plan ever writes to a device that is not listed here."""
    power: ExternalPower | None = None
    """None: the place's NetworkPowerPort."""


class DeviceType(Strict):
    name: Name
    summary: str
    tested: bool = True
    """False: described, but the lab has never run on such a machine. Shown wherever the type is."""
    arch: CpuArch
    topology: Topology
    backend: Literal["labgrid"] = "labgrid"
    boot: BootMethod = BootMethod()
    conditions: Conditions = Conditions()
    emulation: Emulation | None = None
    units: list[Unit] = Field(min_length=1)
    recipe: Name = "measure"
    health_check: Name = "health-check"
    health_check_interval_h: int = Field(default=24, ge=1)
    noise_plan: Name | None = None
    """With which `wqlab device check` measures a board's noise; the first plan that makes verdicts on it if none."""

    @property
    def emulated(self) -> bool:
        return self.emulation is not None

    @property
    def kernel_arguments(self) -> str:
        """What golden system and variants alike have on their command line."""
        emulated = self.emulation.kernel_arguments if self.emulation else ""
        return " ".join(
            words for words in (emulated, self.conditions.kernel_arguments, self.boot.kernel_arguments) if words
        )

    @model_validator(mode="after")
    def _smt_is_as_declared(self) -> Self:
        if self.conditions.smt is False and self.topology.threads_per_core > 1:
            raise ValueError("conditions: smt is off, so the topology needs threads_per_core: 1")
        return self

    @model_validator(mode="after")
    def _unit_names_differ(self) -> Self:
        names = [unit.name for unit in self.units]
        if len(set(names)) != len(names):
            raise ValueError("two units share a name")
        return self


# --- kernels ----------------------------------------------------------------------------------------------------


class Tree(Strict):
    name: Name
    summary: str
    url: str | None = None
    """https:// or git:// URL, or an absolute local path that the operator lists."""
    branch: str = "master"
    debian_source: str | None = None
    """Name of a Debian source package (linux-source-X.Y) that is imported as one commit instead of a URL."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.url is None) == (self.debian_source is None):
            raise ValueError("a tree has either url or debian_source")
        return self


class KernelRecipe(Strict):
    """How a kernel is configured and built: fragments are merged in order over `base_config`."""

    name: Name
    summary: str
    base_config: str = "tinyconfig"
    toolchain: str = "gcc"
    fragments: list[str] = Field(min_length=1)
    arch_fragments: dict[CpuArch, list[str]] = Field(default_factory=dict)
    emulated_fragments: list[str] = Field(default_factory=list)
    modules: list[Name] = Field(default_factory=list)
    """Folders of kernels/modules that are built against every kernel of this recipe, each to NAME.ko."""
    figures: bool = True
    """False for debugging kernels (lockdep, KASAN): their boots give correctness findings, never figures."""

    @model_validator(mode="after")
    def _modules_differ(self) -> Self:
        if len(set(self.modules)) != len(self.modules):
            raise ValueError("a module is listed twice")
        return self


# --- plans ------------------------------------------------------------------------------------------------------


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
    """What differs between real hardware and an emulated board."""

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
    """The metric whose value says where a scenario lies; it is measured, because a point may depend on the board."""
    metrics: list[Name] = Field(min_length=1)


class TestPlan(Strict):
    __test__ = False

    name: Name
    summary: str
    script: str
    """Path, relative to the plan's folder (or to that of `files_of`), of the script that runs on the board."""
    files_of: Name | None = None
    """Another plan whose files go to the board too, beneath this plan's own: for plans that share a script."""
    parser: Name
    """Module under wqlab_worker/parsers that turns the script's output into samples."""
    modules: list[Name] = Field(default_factory=list)
    """Kernel modules that go to the board with the plan's files: the recipe's, else the kernel's own of that name. In
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
                # They name scenarios that may be gone; what is left is measured on either kind of board.
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
                board = "emulated boards" if emulated else "hardware"
                raise ValueError(f"one primary metric per class: {', '.join(primaries)} are all primary on {board}")
        for setting in (self.reference_setting, *self.hardware.settings, *self.emulated.settings):
            self.check_setting(setting)
        known = {s.name for s in self.scenarios}
        for name in (*(self.hardware.scenarios or ()), *(self.emulated.scenarios or ())):
            if name not in known:
                raise ValueError(f"profile for unknown scenario {name!r} (scenarios: {', '.join(sorted(known))})")
        for reference in self.references:
            if reference.scenario not in known:
                raise ValueError(f"reference figure for unknown scenario {reference.scenario}")
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
