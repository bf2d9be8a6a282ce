"""Device types: boot method, power, LAVA mapping and devices."""

from __future__ import annotations

import shlex
from datetime import date
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from .base import CpuArch, Name, Strict
from .conditions import Conditions
from .topology import Topology

EMULATED_ADDRESS = "10.0.2.15/24"
"""Address of every emulated device in QEMU's user network; set statically because DHCP would delay every boot."""


INSTRUMENTED_CPUS = 64
"""Most CPUs of an instrumented device: the line model keeps the holders of a line as 64 bits."""

_COUNTING_CLOCKS = ("instruction", "model")
"""Values of `emulation.clock` of instrumented devices."""


class Emulation(Strict):
    """Settings of the emulator for devices of this type; absent for real hardware."""

    memory_mib: int = Field(ge=256, le=262144)
    cpu_model: str = "Skylake-Server"
    """QEMU's name of the CPU model."""
    clock: Literal["host", "instruction", "model"] = "host"
    """`instruction`: an instrumented device. Its clock counts executed instructions, so that a boot is repeated
    exactly, and instructions and cache line transfers are counted. `model`: a modelled device, which is an
    instrumented one whose CPUs run in parallel in virtual time, at the costs of `profile`."""
    profile: Name | None = None
    """Cost profile of a modelled device: device-types/costs/<profile>.yaml."""
    instruction_ns: Literal[1, 2, 4, 8, 16] = 8
    """Nanoseconds of an instrumented device's clock for each instruction. All CPUs share the clock. With more, a busy
    wait, of which a boot has a tenth of a second, takes fewer instructions, while timers interrupt more often."""
    l2_kib: int | None = Field(default=None, ge=16, le=1 << 20)
    """Size of each L2 cache in the line model of an instrumented device; None: unlimited."""
    l3_kib: int | None = Field(default=None, ge=16, le=1 << 22)
    """Size of each L3 cache in the same model; None: unlimited."""
    kernel_arguments: str = "tsc=reliable no_timer_check nokaslr norandmaps mitigations=off"
    """Kernel arguments for stable time-keeping and repeatable boots in emulation. Randomised addresses would force QEMU
    to translate each program again at each start, and mitigations cost emulation time; hardware has other defaults."""

    @model_validator(mode="after")
    def _check_profile(self) -> Self:
        if (self.clock == "model") != (self.profile is not None):
            raise ValueError("`clock: model` and `profile:`, the name of a cost profile, need each other")
        default = type(self).model_fields["instruction_ns"].default
        stated = [name for name in ("l2_kib", "l3_kib") if getattr(self, name) is not None]
        stated += ["instruction_ns"] if self.instruction_ns != default else []
        if self.clock == "model" and stated:
            raise ValueError(
                f"remove {', '.join(stated)}: the cost profile of a modelled device states times and caches"
            )
        return self


class BootMethod(Strict):
    """Boot settings: how a device boots the golden system and, from there, a variant."""

    console_speed: int = Field(default=115200, gt=0)
    console_device: str = Field(default="ttyS0", pattern=r"^\S+$")
    golden_timeout_s: int = Field(default=120, ge=5, le=3600)
    variant_timeout_s: int = Field(default=120, ge=5, le=3600)
    power_off_s: float = Field(default=2.0, ge=0, le=120)
    """Seconds without power in a power cycle; by default 0 for an emulated device."""
    rootfs: str = Field(default="/sys/firmware/initrd", pattern=r"^/.")
    """Path on the golden system of the root filesystem image for variants. The default is the image that the golden
    system itself booted from; `retain_initrd` on its command line keeps that in memory."""
    kernel_arguments: str = ""
    """Appended to the command line of each variant."""
    crash_kernel_mib: int | None = Field(default=None, ge=64, le=4096)
    """Memory in MiB that each variant reserves for a crash kernel (kdump). After a crash of the variant, the crash
    kernel prints the variant's log on the console. None: no crash kernel."""


_ADDRESS = r"[0-9]{1,3}(\.[0-9]{1,3}){3}"
Netconsole = Annotated[
    str,
    StringConstraints(
        pattern=rf"^\+[0-9]{{0,5}}@{_ADDRESS}/[A-Za-z0-9_.-]{{1,15}},[0-9]{{0,5}}@{_ADDRESS}/"
        r"([0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5})?$"
    ),
]
"""Value of the kernel parameter `netconsole=`: `+PORT@ADDRESS/INTERFACE,PORT@ADDRESS/MAC` of the device and of the
receiver. `+`: extended netconsole, whose messages are numbered. Without MAC address the kernel broadcasts."""


def console_arguments(boot: BootMethod, netconsole: str | None) -> str:
    """Return the kernel arguments that choose the console: a serial port, or netconsole and no terminal.

    With netconsole, /dev/console is a terminal that drops all, every message is sent (so that a missing number is a
    lost message), the kernel waits for the link as long as user space does (with the default of 4 s, faster cards lose
    the log of the boot), and what user space writes to /dev/kmsg is not limited.
    """
    if netconsole is None:
        return f"console={boot.console_device},{boot.console_speed}"
    return f"console=ttynull netconsole={netconsole} netpoll.carrier_timeout=30 loglevel=8 printk.devkmsg=on"


ScratchDevice = Annotated[str, StringConstraints(pattern=r"^/dev/disk/by-id/[^/\s]+$")]
"""Path by identity: /dev/sda can be another disk after the next boot, which a plan would then overwrite."""


def _check_command(command: str) -> str:
    """Return a valid command. Raises ValueError if it names no program or has an open quotation."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"not a command: {error}") from error
    if not words or not words[0]:
        raise ValueError("not a command: it names no program")
    return command


Command = Annotated[
    str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\n]+$"), AfterValidator(_check_command)
]


class ExternalPower(Strict):
    """Commands for a power switch without a labgrid network driver (IPMI, a debug cable).

    The worker runs them on its host. They are split like shell words, but no shell runs them.
    """

    turn_on: Command
    turn_off: Command


class OwnSystem(Strict):
    """Operating system that a machine starts by default, in place of the golden system. The lab restarts it by SSH.

    The lab logs in with its key, as root, at the address of the golden system.
    """

    choose_golden: Command = "grub-reboot wqlab"
    """Command that lets the boot loader start the golden system at the next start only: grub-reboot(8) with the name of
    the entry, or `bootctl set-oneshot`. It may not ask anything."""
    timeout_s: int = Field(default=300, ge=5, le=3600)
    """Longest time in seconds from a restart or power on until it answers by SSH. A machine that is silent for longer
    gets a power cycle."""


Account = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Backend = Literal["labgrid", "lava", "instrumented"]
"""Software through which a lab reaches its devices; `instrumented`: its worker starts the emulator itself."""


class LavaTimeouts(Strict):
    """Timeouts of LAVA actions in seconds. The timeout of a job is the sum over its actions."""

    queue: int = Field(default=86400, ge=60)
    """Maximum wait until LAVA assigns the device to the job."""
    deploy: int = Field(default=600, ge=10)
    """Maximum time to fetch images and create overlays."""


class LavaMapping(Strict):
    """Mapping of a device type to LAVA: its LAVA device type, and how LAVA boots it."""

    device_type: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,200}$")]
    boot: Name
    """Template of the job definition: device-types/lava/<boot>.yaml.jinja2."""
    kexec: bool = True
    """False if the device cannot kexec; LAVA then deploys and boots each variant."""
    off_after_boot: bool = False
    """True: the device powers itself off after measuring. Needed if LAVA does not end a boot before it starts the next
    (QEMU: the guests of a job would run at the same time)."""
    tags: list[str] = Field(default_factory=list)
    context: dict[str, str | int | list[str]] = Field(default_factory=dict)
    images: dict[str, str] = Field(default_factory=dict)
    """URLs of the images of the golden system, by their names in the template. `kernel` and `ramdisk`, if not listed,
    are sent by the lab's worker: those of the golden system that emulated devices boot."""
    ramdisk_compression: Literal["gz", "xz", "bz2"] | None = None
    """Compression of `images.ramdisk`, so that LAVA can add overlays; the worker's own image is not compressed.
    LAVA 2026.10 cannot unpack zstd."""
    worker_host: str | None = None
    """Host name of the lab's worker as devices see it, if different from its address."""
    timeouts: LavaTimeouts = LavaTimeouts()


class Unit(Strict):
    """One physical (or virtual) device: a labgrid place, a LAVA device, or an instrumented one."""

    name: Name
    lab: Name = "local"
    backend: Backend = "labgrid"
    scratch: list[ScratchDevice] = Field(default_factory=list)
    """Block devices that plans may overwrite. No plan writes to a device that is not listed here."""
    power: ExternalPower | None = None
    """External power commands; None: use the NetworkPowerPort of the labgrid place."""
    netconsole: Netconsole | None = None
    """For a device without a serial port: where its kernels send their log. `wqlab-netconsole` makes a console of it,
    from which labgrid reads and on which nothing can be typed. None: the type's `console_device`."""
    own_system: OwnSystem | None = None
    """For a device that people also use without the lab. Its own operating system starts by default and runs between
    boots of the lab. None: the golden system starts by default."""
    series_of: Literal["anyone", "named"] | None = None
    """Whose series it takes. `named`: commits of operators' trees, settings studies, and what the accounts in `people`
    submit. None: `named` if it starts a system from a disk of its own, else `anyone`."""
    people: list[Account] = Field(default_factory=list, max_length=200)
    """Accounts whose series the device takes although it does not take anyone's."""


class Rehearsed(Strict):
    """Rehearsal of a device type on an emulated machine behind the protocols of the real one."""

    on: date
    not_covered: list[str] = Field(min_length=1)
    """What the emulated machine could not show, each as a phrase."""


class DeviceType(Strict):
    """A class of machines and the devices of that class."""

    name: Name
    summary: str
    tested: Literal[True, False, "rehearsed"] = True
    """Whether the lab has run on such a machine; shown with the type. False: never. `rehearsed`: only on a rehearsal
    machine, described by `rehearsed`."""
    rehearsed: Rehearsed | None = None
    rehearsal: bool = False
    """True: the devices are rehearsal machines, which emulate this type behind the protocols of a real one. They get
    the kernels and the boot of the real machine, but their clock is no evidence."""
    arch: CpuArch
    topology: Topology
    boot: BootMethod = BootMethod()
    lava: LavaMapping | None = None
    """Boot settings of units with the backend `lava`."""
    conditions: Conditions = Conditions()
    emulation: Emulation | None = None
    units: list[Unit] = Field(min_length=1)
    recipe: Name = "measure"
    health_check: Name = "health-check"
    health_check_interval_h: int = Field(default=24, ge=1)
    noise_plan: Name | None = None
    """Plan of A/A comparisons, beside those that were measured; None: the first plan with a verdict on this type."""
    canary_minutes: int | None = Field(default=None, ge=0, le=1440)
    """Minutes a day that A/A comparisons may use each device while it is idle; 0: none; None: the lab's setting."""

    @property
    def emulated(self) -> bool:
        """Return True if the devices are no hardware: their throughput is no evidence."""
        return self.emulation is not None or self.rehearsal

    def takes_anyone(self, unit: Unit) -> bool:
        """Return True if a unit takes the series of every account.

        A kernel under test has all rights on its device, so it could write the disk from which the golden system, or
        the distribution of a machine that people use, starts next: what it writes there stays.
        """
        if unit.series_of is not None:
            return unit.series_of == "anyone"
        image_on_disk = not self.boot.rootfs.startswith("/sys/")
        from_disk = unit.own_system is not None or unit.netconsole is not None or image_on_disk
        return self.emulated or unit.backend != "labgrid" or not from_disk

    @property
    def on_bench(self) -> bool:
        """Return True if a bench or a worker emulates the devices by the settings in `emulation`. Kernels for them have
        the recipe's fragments for emulated devices. A rehearsal machine gets what the real machine would."""
        return self.emulation is not None

    @property
    def instrumented(self) -> bool:
        """Return True if the emulator counts instructions and cache lines, as also for modelled devices."""
        return self.emulation is not None and self.emulation.clock in _COUNTING_CLOCKS

    @property
    def modelled(self) -> bool:
        """Return True if the CPUs run in parallel in virtual time, in which the plan's own metrics are judged too."""
        return self.emulation is not None and self.emulation.clock == "model"

    @property
    def kernel_arguments(self) -> str:
        """Return the kernel arguments that golden system and variants have in common."""
        network = f"wqlab.ip={EMULATED_ADDRESS}" if self.on_bench and not self.instrumented else ""
        emulated = self.emulation.kernel_arguments if self.emulation else ""
        groups = (network, emulated, self.conditions.kernel_arguments, self.boot.kernel_arguments)
        return " ".join(words for words in groups if words)

    @property
    def variant_arguments(self) -> str:
        """Return the kernel arguments of variants, without those of the console and of a single boot."""
        crash = f"crashkernel={mib}M" if (mib := self.boot.crash_kernel_mib) else ""
        return " ".join(words for words in (crash, self.kernel_arguments) if words)

    @model_validator(mode="after")
    def _check_rehearsal(self) -> Self:
        if (self.tested == "rehearsed") != (self.rehearsed is not None):
            raise ValueError(
                "`tested: rehearsed` and `rehearsed:`, with date and what was not covered, need each other"
            )
        if self.rehearsal and self.emulation is not None:
            raise ValueError("a rehearsal machine has no `emulation`: the bench does not run it")
        return self

    @field_validator("units")
    @classmethod
    def _check_unique_unit_names(cls, units: list[Unit]) -> list[Unit]:
        names: set[str] = set()
        for unit in units:
            if unit.name in names:
                raise ValueError(f"two units share the name {unit.name!r}")
            names.add(unit.name)
        return units

    @field_validator("units")
    @classmethod
    def _check_unique_scratch_devices(cls, units: list[Unit]) -> list[Unit]:
        """Reject a disk listed twice: the identity is unique, so one of the entries is a copying mistake."""
        owner: dict[str, str] = {}
        for unit in units:
            for device in unit.scratch:
                if device in owner:
                    raise ValueError(
                        f"{device!r} is listed as a scratch device twice: of {owner[device]} and of {unit.name}"
                    )
                owner[device] = unit.name
        return units

    @model_validator(mode="before")
    @classmethod
    def _default_power_off_time(cls, given: object) -> object:
        """Set `power_off_s` to 0 for emulated devices: they have no capacitors to discharge."""
        if not isinstance(given, dict) or given.get("emulation") is None:
            return given
        boot = given.get("boot", {})
        return {**given, "boot": {"power_off_s": 0.0, **boot}} if isinstance(boot, dict) else given

    @model_validator(mode="before")
    @classmethod
    def _default_backend(cls, given: object) -> object:
        """Set the backend of the units of an instrumented type, which only that backend reaches."""
        if not isinstance(given, dict) or not isinstance(given.get("units"), list):
            return given
        emulation = given.get("emulation")
        clock = emulation.get("clock") if isinstance(emulation, dict) else getattr(emulation, "clock", None)
        if clock not in _COUNTING_CLOCKS:
            return given
        units = [{"backend": "instrumented", **unit} if isinstance(unit, dict) else unit for unit in given["units"]]
        return {**given, "units": units}

    @model_validator(mode="after")
    def _check_smt(self) -> Self:
        if self.conditions.smt is False and self.topology.threads_per_core > 1:
            raise ValueError("conditions: smt is off, so the topology needs threads_per_core: 1")
        return self

    @model_validator(mode="after")
    def _check_instrumented(self) -> Self:
        for unit in self.units:
            if (unit.backend == "instrumented") != self.instrumented:
                raise ValueError(
                    f"unit {unit.name} has backend {unit.backend}: a type with `emulation: {{clock: instruction}}` or "
                    "`clock: model` has backend instrumented, and no other type has it"
                )
        if not self.instrumented:
            return self
        for unit in self.units:
            if unit.power is not None or unit.scratch:
                raise ValueError(f"unit {unit.name} is instrumented: it has no power switch and no disk")
        if self.topology.cpus > INSTRUMENTED_CPUS:
            raise ValueError(f"{self.topology.cpus} CPUs; an instrumented device has at most {INSTRUMENTED_CPUS}")
        return self

    @model_validator(mode="after")
    def _check_lava_units(self) -> Self:
        for unit in self.units:
            if unit.backend == "lava" and self.lava is None:
                raise ValueError(f"unit {unit.name} is a LAVA device, so the type needs `lava:`")
            if unit.backend == "lava" and unit.power is not None:
                raise ValueError(f"unit {unit.name} is a LAVA device: LAVA switches its power, so remove `power:`")
            if unit.backend != "labgrid" and unit.netconsole is not None:
                raise ValueError(f"unit {unit.name} has backend {unit.backend}: `netconsole:` needs labgrid")
            if unit.backend != "labgrid" and unit.own_system is not None:
                raise ValueError(f"unit {unit.name} has backend {unit.backend}: `own_system:` needs labgrid")
            if unit.backend != "labgrid" and self.boot.crash_kernel_mib is not None:
                raise ValueError(f"unit {unit.name} has backend {unit.backend}: `crash_kernel_mib:` needs labgrid")
        return self
