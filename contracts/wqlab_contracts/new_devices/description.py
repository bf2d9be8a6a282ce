"""Description of a new machine: how the lab switches its power, reads its console and logs in.

Power is described by fixed forms and never by a command. Values become parts of commands, YAML and URLs, so each has
only characters that none of these interprets. A password is named by the file that has it, never written out.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ..specs import CpuArch, Name, Strict, Topology
from ..specs.devices import Netconsole, OwnSystem
from ..yamlfile import is_text


def _otherwise(advice: str) -> WrapValidator:
    """Return a validator whose error for text that does not match the pattern is `advice` instead of the pattern."""

    def validate(value: Any, inner: ValidatorFunctionWrapHandler) -> Any:
        try:
            return inner(value)
        except ValidationError as error:
            if error.errors()[0]["type"] == "string_pattern_mismatch":
                raise PydanticCustomError("form", advice) from None
            raise

    return WrapValidator(validate)


HostName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"),
    _otherwise("write a host name or an IPv4 address"),
]
"""Name or IPv4 address: nothing that a shell, YAML or a URL reads differently."""
Port = Annotated[int, Field(ge=1, le=65535)]
PasswordFile = Annotated[
    str,
    StringConstraints(pattern=r"^(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+$", min_length=2, max_length=200),
    _otherwise("write the absolute path of a file on the lab's host, without blanks"),
]
"""Absolute path on the lab's host, without `..`."""
User = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$"),
    _otherwise("use letters, digits and _.- only, at most 32"),
]
ScratchName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:+-]{0,199}$"),
    _otherwise("write names in /dev/disk/by-id, separated by blanks"),
]
"""Name of a disk in /dev/disk/by-id."""
SystemName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"),
    _otherwise("write the name of a system of the service, such as 1 or System.Embedded.1"),
]


def _check_word(name: str) -> str:
    """Return the name. Raises ValueError if YAML, and with it labgrid, reads another value than text."""
    if is_text(name):
        return name
    raise ValueError(f"in YAML, {name} is a number or another value: choose a name that begins with a word")


NewName = Annotated[Name, _otherwise("use letters, digits and _.- only, at most 64"), AfterValidator(_check_word)]
PduModel = Literal[
    "apc",
    "digipower",
    "eaton",
    "eth008",
    "gude",
    "gude24",
    "gude8031",
    "gude8225",
    "gude8316",
    "netio",
    "netio_kshell",
    "pe6216",
    "raritan",
    "sentry",
    "shelly_gen1",
    "shelly_gen2",
]
"""labgrid's drivers for power switches that need no more than a host and an outlet."""

_BY_URL = ("shelly_gen1", "shelly_gen2")


class Ipmi(Strict):
    """Power by a baseboard management controller that speaks IPMI 2.0 over LAN."""

    kind: Literal["ipmi"] = "ipmi"
    host: HostName
    port: Port = 623
    user: User
    password_file: PasswordFile
    """File on the lab's host with the password in its first line, readable by the lab's user only."""
    cipher: int = Field(default=17, ge=0, le=17)
    """Cipher suite; 3 for old controllers that do not know 17."""


class Redfish(Strict):
    """Power by the Redfish service of a baseboard management controller, over HTTPS."""

    kind: Literal["redfish"] = "redfish"
    host: HostName
    port: Port = 443
    user: User
    password_file: PasswordFile
    """File on the lab's host with the password in its first line, readable by the lab's user only."""
    certificate: PasswordFile | None = None
    """File on the lab's host with the controller's own certificate (PEM), the only one that is accepted then; None: an
    authority of the host must have signed it."""
    system: SystemName | None = None
    """Name of the system, for a service that has several (blades)."""

    @property
    def url(self) -> str:
        return f"https://{self.host}" if self.port == 443 else f"https://{self.host}:{self.port}"


class DebugCable(Strict):
    """Power by the embedded controller of a Chromebook, through a debug cable at a `servod` of the lab's host."""

    kind: Literal["debug_cable"] = "debug_cable"
    port: Port = 9999
    """Port of the cable's servod."""


class Pdu(Strict):
    """Power by an outlet of a switched power distribution unit."""

    kind: Literal["pdu"] = "pdu"
    model: PduModel
    host: HostName
    port: Port | None = None
    """Port of the unit; None: the usual one. Only labgrid's drivers apc and shelly accept another."""
    outlet: int = Field(ge=0, le=128)

    @property
    def labgrid_host(self) -> str:
        """Return the unit's address as labgrid's driver takes it."""
        address = self.host if self.port is None else f"{self.host}:{self.port}"
        return f"http://{address}" if self.model in _BY_URL else address

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if self.port is not None and self.model not in {"apc", *_BY_URL}:
            raise ValueError(f"labgrid's driver {self.model} takes no port")
        if self.model == "apc" and not 1 <= self.outlet <= 8:
            raise ValueError("labgrid's driver apc switches outlets 1 to 8")
        return self


Power = Annotated[Ipmi | Redfish | Pdu | DebugCable, Field(discriminator="kind")]
PowerKind = Literal["ipmi", "redfish", "pdu", "debug_cable"]


class Console(Strict):
    """TCP port at which a console server offers the machine's console, and the protocol that it speaks there."""

    host: HostName
    port: Port
    protocol: Literal["raw", "rfc2217"] = "raw"
    """`raw`: bytes only. `rfc2217`: telnet by which the client also sets the serial port's speed (RFC 2217); ser2net's
    name for it is `telnet(rfc2217)`."""


class Ssh(Strict):
    """SSH address of the golden system and of variants."""

    host: HostName
    port: Port = 22


class NewBoot(Strict):
    """How the machine boots; the fields of a device type's `boot` that differ between machines."""

    console_device: Annotated[
        str,
        StringConstraints(pattern=r"^tty[A-Za-z0-9]{1,16}$"),
        _otherwise("write the kernel's name of the port, such as ttyS0"),
    ] = "ttyS0"
    console_speed: Literal[9600, 19200, 38400, 57600, 115200, 921600, 1500000] = 115200
    golden_timeout_s: int = Field(default=300, ge=5, le=3600)
    variant_timeout_s: int = Field(default=180, ge=5, le=3600)
    power_off_s: float = Field(default=10.0, ge=0, le=120)


def prefix_of(name: str) -> str:
    """Return the beginning of the names of a machine's addresses: `XEON_8380_1` for xeon-8380-1."""
    words = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
    return words if words[:1].isalpha() else f"D_{words}"


class NewDevice(Strict):
    """One machine to add to a lab."""

    name: NewName
    device_type: NewName
    """Type of the machine. Machines of one type have the same topology and boot settings."""
    lab: NewName = "local"
    arch: CpuArch = "x86_64"
    topology: Topology | None = None
    """CPU topology as the golden system measured it; None before the trial."""
    power: Power
    console: Console
    """TCP port at which a console server offers the serial console, or wqlab-netconsole the kernel's log."""
    netconsole: (
        Annotated[
            Netconsole,
            _otherwise(
                "write it as +6665@192.0.2.11/eth0,6666@192.0.2.1/: the machine's port, address and interface, then"
                " those of the receiver"
            ),
        ]
        | None
    ) = None
    """For a machine without a serial port: where its kernels send their log, as the kernel's parameter."""
    ssh: Ssh
    """Also of the machine's own system."""
    choose_golden: (
        Annotated[
            str,
            StringConstraints(pattern=r"^[A-Za-z0-9_./-][A-Za-z0-9 _./:=@-]{0,199}$"),
            _otherwise("write a command without quotation marks, such as grub-reboot wqlab"),
        ]
        | None
    ) = None
    """For a machine that starts a system of its own by default: the command that chooses the golden system for one
    start, run there as root. None: the golden system starts by default."""
    boot: NewBoot = NewBoot()
    scratch: list[ScratchName] = Field(default_factory=list, max_length=64)
    """Disks, by their names in /dev/disk/by-id, that plans may overwrite."""
    rehearsal: bool = False
    """True for a machine that emulates a real one: its figures are no evidence of speed."""

    @property
    def prefix(self) -> str:
        """Return the beginning of the names of its addresses: `XEON_8380_1` for xeon-8380-1."""
        return prefix_of(self.name)

    @property
    def own_system(self) -> OwnSystem | None:
        """Return how the lab restarts the machine's own system; None if it has none.

        One time limit is described for both systems: that of the golden system.
        """
        if self.choose_golden is None:
            return None
        return OwnSystem(choose_golden=self.choose_golden, timeout_s=self.boot.golden_timeout_s)
