"""Device types: machines, their CPU layouts, how they boot and what is set on them."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from .base import CpuArch, LastLevel, Name, Strict


class Cluster(Strict):
    """Cores of one kind on a big.LITTLE device, numbered one after another."""

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
                raise ValueError("clusters belong to a device with one socket, one NUMA node and contiguous numbering")
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


EMULATED_ADDRESS = "10.0.2.15/24"
"""Of every emulated device in QEMU's user network: told to it, since asking DHCP there would take time at every boot."""


class Emulation(Strict):
    """How the virtual bench builds a device of this type; absent for real hardware."""

    memory_mib: int = Field(ge=256, le=262144)
    cpu_model: str = "Skylake-Server"
    """One of QEMU's models for the device's architecture."""
    kernel_arguments: str = "tsc=reliable no_timer_check nokaslr norandmaps mitigations=off"
    """What an emulated machine needs to keep time and to boot the same way every time. Programs that start at other
    addresses each time are translated anew each time, and mitigations cost emulation time too; neither is a default for
    hardware."""


class BootMethod(Strict):
    """How a device reaches the golden system and, from there, a variant."""

    console_speed: int = Field(default=115200, gt=0)
    console_device: str = Field(default="ttyS0", pattern=r"^\S+$")
    golden_timeout_s: int = Field(default=120, ge=5, le=3600)
    variant_timeout_s: int = Field(default=120, ge=5, le=3600)
    power_off_s: float = Field(default=2.0, ge=0, le=120)
    """How long the power stays off in a cold cycle; an emulated device is cold at once unless its type says so."""
    rootfs: str = Field(default="/sys/firmware/initrd", pattern=r"^/.")
    """Path on the golden system of the root filesystem image that variants boot with. Unless a type says another, what
    golden itself booted from: `retain_initrd` on its command line keeps it."""
    kernel_arguments: str = ""
    """Appended to every variant's command line."""


def _as_the_kernel_lists(text: str) -> str:
    """`2,0-1` -> `0-2`. Raises ValueError for a range that runs backwards."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            raise ValueError(f"the range {part} runs backwards: write {last}-{first}")
        cpus.update(range(int(first), int(last or first) + 1))
    starts = [cpu for cpu in sorted(cpus) if cpu - 1 not in cpus]
    ends = [cpu for cpu in sorted(cpus) if cpu + 1 not in cpus]
    return ",".join(f"{start}-{end}" if end > start else f"{start}" for start, end in zip(starts, ends, strict=True))


CpuList = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$"),
    AfterValidator(_as_the_kernel_lists),
]
"""Kept in the one form that the kernel reads back, whatever the form it was written in."""

Condition = Literal["governor", "boost", "irq_affinity", "temperature"]
"""What can be required of a device when a boot begins to measure."""


class Conditions(Strict):
    """What a maintainer lets the lab set on devices of a type. All of it is read back and recorded with every boot."""

    governor: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")] | None = None
    """Of every cpufreq policy."""
    boost: bool | None = None
    irq_affinity: CpuList | None = None
    """The CPUs that devices interrupt: `0-3`. The kernel places some interrupts of multi-queue devices itself; it is
    enough that others are moved, even where this is required."""
    smt: bool | None = None
    """False: `nosmt` on every command line; the declared topology then has one thread a core."""
    mitigations: Literal["auto", "auto,nosmt", "off"] | None = None
    """On every command line."""
    start_below_c: float | None = Field(default=None, gt=0, le=110)
    """The hottest sensor must be below this, in degrees Celsius, before a boot measures."""
    cool_s: int = Field(default=300, ge=0, le=3600)
    """How long a boot waits for that; then it goes on, and its record says how hot it was."""
    required: list[Condition] = Field(default_factory=list)
    """A boot on a device that lacks one of these, or does not take it, fails. Without it that is recorded, no more."""

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


def _splits(command: str) -> str:
    """Raises ValueError for what names no program, or has a quotation that does not end."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"not a command: {error}") from error
    if not words or not words[0]:
        raise ValueError("not a command: it names no program")
    return command


Command = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\n]+$"), AfterValidator(_splits)]


class ExternalPower(Strict):
    """A power switch that labgrid has no network driver for (IPMI, a debug cable): commands that the worker runs on
    its host, split as a shell would, without one. Whoever writes the data folder says what runs there."""

    turn_on: Command
    turn_off: Command


Backend = Literal["labgrid", "lava"]
"""How a lab reaches its devices."""


class LavaTimeouts(Strict):
    """Seconds. What a LAVA job may take is the sum over its actions and no number of its own."""

    queue: int = Field(default=86400, ge=60)
    """Until LAVA has the device free for the job."""
    deploy: int = Field(default=600, ge=10)
    """Fetching images and making overlays."""


class LavaMapping(Strict):
    """As what a LAVA lab knows devices of a type, and how it boots them."""

    device_type: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,200}$")]
    boot: Name
    """Template of the job's definition: device-types/lava/<boot>.yaml.jinja2."""
    kexec: bool = True
    """False: a device whose kernels cannot kexec; each variant is deployed and booted by LAVA instead."""
    off_after_boot: bool = False
    """True: a device switches itself off once it is measured, where LAVA does not end a boot before it begins the next
    (QEMU: the guests of a job would go on side by side)."""
    tags: list[str] = Field(default_factory=list)
    context: dict[str, str | int | list[str]] = Field(default_factory=dict)
    images: dict[str, str] = Field(default_factory=dict)
    """URLs of what the golden system is booted from, by the names that the template uses. Those that it does not name
    come from the lab's worker: `kernel` and `ramdisk` of the golden system that virtual devices boot."""
    ramdisk_compression: Literal["gz", "xz", "bz2"] | None = None
    """Of `images.ramdisk`, so that LAVA can put overlays in: the worker's own is not compressed. LAVA 2026.10 cannot
    take zstd apart."""
    worker_host: str | None = None
    """As what a device sees the host of the lab's worker, where that is not its address."""
    timeouts: LavaTimeouts = LavaTimeouts()


class Unit(Strict):
    """One physical (or virtual) device: a labgrid place, or a LAVA device."""

    name: Name
    lab: Name = "local"
    backend: Backend = "labgrid"
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
    boot: BootMethod = BootMethod()
    lava: LavaMapping | None = None
    """What units whose backend is LAVA are booted by."""
    conditions: Conditions = Conditions()
    emulation: Emulation | None = None
    units: list[Unit] = Field(min_length=1)
    recipe: Name = "measure"
    health_check: Name = "health-check"
    health_check_interval_h: int = Field(default=24, ge=1)
    noise_plan: Name | None = None
    """With which `wqlab device check` measures a device's noise; the first plan that makes verdicts on it if none."""

    @property
    def emulated(self) -> bool:
        return self.emulation is not None

    @property
    def kernel_arguments(self) -> str:
        """What golden system and variants alike have on their command line."""
        emulated = f"wqlab.ip={EMULATED_ADDRESS} {self.emulation.kernel_arguments}" if self.emulation else ""
        return " ".join(
            words for words in (emulated, self.conditions.kernel_arguments, self.boot.kernel_arguments) if words
        )

    @field_validator("units")
    @classmethod
    def _unit_names_differ(cls, units: list[Unit]) -> list[Unit]:
        names: set[str] = set()
        for unit in units:
            if unit.name in names:
                raise ValueError(f"two units share the name {unit.name!r}")
            names.add(unit.name)
        return units

    @field_validator("units")
    @classmethod
    def _scratch_devices_differ(cls, units: list[Unit]) -> list[Unit]:
        """An identity belongs to one disk, so one of the two places is copied and not corrected."""
        owner: dict[str, str] = {}
        for unit in units:
            for device in unit.scratch:
                if device in owner:
                    raise ValueError(f"{device!r} is a scratch device twice: of {owner[device]} and of {unit.name}")
                owner[device] = unit.name
        return units

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_charged_in_an_emulated_device(cls, given: object) -> object:
        if not isinstance(given, dict) or given.get("emulation") is None:
            return given
        boot = given.get("boot", {})
        return {**given, "boot": {"power_off_s": 0.0, **boot}} if isinstance(boot, dict) else given

    @model_validator(mode="after")
    def _smt_is_as_declared(self) -> Self:
        if self.conditions.smt is False and self.topology.threads_per_core > 1:
            raise ValueError("conditions: smt is off, so the topology needs threads_per_core: 1")
        return self

    @model_validator(mode="after")
    def _lava_units_are_mapped(self) -> Self:
        for unit in self.units:
            if unit.backend == "lava" and self.lava is None:
                raise ValueError(f"unit {unit.name} is a LAVA device, and `lava:` does not say how to boot it")
            if unit.backend == "lava" and unit.power is not None:
                raise ValueError(f"unit {unit.name} is a LAVA device: LAVA switches its power, not `power:`")
        return self
