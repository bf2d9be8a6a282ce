"""Judge whether kernels can be started on a machine, from the output of `COMMAND`, which runs there as root. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

COMMAND = (files(__package__) / "onboard" / "look.sh").read_text()
"""Script that prints `NAME=VALUE`, one a line; a name may come several times."""


WATCHDOGS = ("iTCO_wdt", "sp5100_tco", "i6300esb")
"""Drivers of the watchdogs in PCs and QEMU. A distribution may not have loaded the one that its machine needs."""
_FIND_WATCHDOG = ("lpc_ich", "i2c_i801")
"""Drivers that find the watchdog of iTCO_wdt."""


class LookError(ValueError):
    """The machine's answer is not the output of COMMAND."""


@dataclass(frozen=True)
class Watchdog:
    """A watchdog of the machine."""

    name: str
    module: str
    identity: str


@dataclass(frozen=True)
class Look:
    """Description of a machine and of its users, as COMMAND printed it."""

    values: Mapping[str, Sequence[str]]

    def one(self, name: str) -> str:
        """Return the first value of a name; empty if the machine did not say."""
        found = self.values.get(name)
        return found[0] if found else ""

    def all(self, name: str) -> Sequence[str]:
        return self.values.get(name, ())

    @property
    def watchdogs(self) -> list[Watchdog]:
        found = []
        for line in self.all("watchdog"):
            name, _, rest = line.partition(" ")
            module, _, identity = rest.partition(" ")
            found.append(Watchdog(name, module.replace("-", "_"), identity))
        # A software watchdog hangs together with the kernel that it should restart.
        return [each for each in found if each.module != "softdog"]

    @property
    def watchdog_modules(self) -> list[str]:
        """Drivers of the watchdogs that the machine has or may have."""
        names = (*(each.module for each in self.watchdogs), *WATCHDOGS)
        return [each for each in dict.fromkeys(names) if each and each != "built_in"]

    @property
    def keeps_crash_log(self) -> bool:
        """Return True if the firmware keeps a kernel's last messages over a restart."""
        return self.one("pstore") not in {"", "(null)"}

    @property
    def is_virtual(self) -> bool:
        return "virtual" in self.values

    @property
    def address_argument(self) -> str:
        """The kernel argument that gives the lab's root filesystem the address of the machine."""
        parts = [f"{self.one('address')}/{self.one('prefix')}", self.one("mac"), self.one("router")]
        return "wqlab.ip=" + ",".join(parts).rstrip(",")

    @property
    def first_modules(self) -> list[str]:
        """Kernel modules to load before the network is configured: those of the network card and of what it is
        connected to, then those of watchdogs and of the firmware's memory for crash logs.

        A driver whose hardware is absent does nothing.
        """
        card = reversed(self.all("driver_module") or [self.one("driver")])
        names = [*card, *_FIND_WATCHDOG, *self.watchdog_modules, "efi_pstore"]
        return [name for name in dict.fromkeys(names) if name and name != "built_in"]


def parse(answer: str) -> Look:
    """Parse the output of COMMAND; lines of root's shell before it are ignored. Raises LookError."""
    values: dict[str, list[str]] = {}
    for line in answer.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.isidentifier():
            values.setdefault(name, []).append(value.strip())
    look = Look(values)
    for name in ("user", "arch", "boot_id", "address"):
        if not look.one(name):
            raise LookError(f"the machine did not tell its {name}: {answer.strip()[-200:]!r}")
    return look


def refusals(look: Look, image_kib: int) -> list[tuple[str, str]]:
    """Return why kernels cannot be started on the machine, as pairs of reason and remedy; empty if they can.

    `image_kib`: kernel, root filesystem and modules in KiB, which are in memory three times for a moment.
    """
    found = []
    if look.one("user") != "0":
        found.append(("the login is not root's", "log in as root: kexec needs it"))
    if look.one("arch") != "x86_64":
        found.append((f"its architecture is {look.one('arch')}", "`wqlab ab` starts x86_64 kernels"))
    if look.one("secure_boot") == "1":
        found.append(("secure boot is on, so kexec starts signed kernels only", "switch it off in the firmware"))
    elif "[none]" not in look.one("lockdown") and look.one("lockdown"):
        found.append(
            (f"the kernel is locked down: {look.one('lockdown')}", "boot without lockdown= and without secure boot")
        )
    if look.one("kexec_disabled") == "1":
        found.append(("kexec is switched off until its next boot", "remove kernel.kexec_load_disabled from sysctl.d"))
    if not look.one("kexec"):
        found.append(("its kernel has no kexec", "boot a kernel with CONFIG_KEXEC"))
    if not look.one("card") or not look.one("prefix"):
        found.append(
            (
                f"its address {look.one('address')} is on none of its cards",
                "log in by an IPv4 address of the machine itself",
            )
        )
    elif look.one("wireless"):
        found.append((f"{look.one('card')} is a wireless card", "connect it by Ethernet"))
    elif not look.one("physical") or look.one("master"):
        what = look.one("master") or look.one("card")
        found.append(
            (f"its address is on {what}, a bridge, bond or VLAN", "log in by an address of a plain Ethernet card")
        )
    if look.one("memory_kib").isdigit() and int(look.one("memory_kib")) < 4 * image_kib:
        found.append(
            (f"it has {int(look.one('memory_kib')) >> 10} MiB of memory", f"{(4 * image_kib) >> 10} MiB are needed")
        )
    if look.one("shm_kib").isdigit() and int(look.one("shm_kib")) < image_kib:
        free = f"/dev/shm has {int(look.one('shm_kib')) >> 10} MiB free"  # noqa: S108 - a name in a sentence
        found.append((free, f"{image_kib >> 10} MiB are needed there: `mount -o remount,size=80% /dev/shm`"))
    if look.one("noexec"):
        found.append(("programs in /dev/shm are not run", "`mount -o remount,exec /dev/shm`"))
    return found


def losses(look: Look) -> list[str]:
    """Return what users of the machine lose when its distribution ends, an entry for each session or program."""
    found = [f"logged in: {each}, who loses their work" for each in look.all("login")]
    return found + [f"a virtual machine runs there ({each}), and ends" for each in dict.fromkeys(look.all("guest"))]


def warnings(look: Look) -> list[str]:
    """Return what can go wrong on the machine, and what its users lose."""
    found = losses(look)
    supplies = look.all("supply")
    if any(each.startswith("Battery") for each in supplies) and not any(
        each.startswith("Mains") and each.split()[1:2] == ["1"] for each in supplies
    ):
        found.append("it runs on its battery: frequencies are not those of mains, and the battery may end")
    if not look.watchdogs:
        found.append("it has no hardware watchdog: if a kernel hangs, somebody has to press its button")
    if look.is_virtual:
        found.append("it is a virtual machine: times and throughput are values without a verdict")
    return found
