"""What to do about a failed step of a device trial: advice by what a machine or its equipment said. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_contracts.new_devices.description import DebugCable, Ipmi, NewDevice, Redfish

from . import diagnose_console
from .ssh import is_key_refused

_IPMI: Sequence[tuple[str, str]] = (
    ("RAKP 2 HMAC is invalid", "The password is wrong: correct {password_file}."),
    ("RAKP 2 message indicates an error : unauthorized name", "The BMC has no user {user} with IPMI access: add it."),
    ("unauthorized name", "The BMC has no user {user} with IPMI access: add it."),
    ("invalid role", "Give user {user} the privilege level administrator or operator on the BMC's LAN channel."),
    (
        "Insufficient privilege",
        "Give user {user} the privilege level administrator or operator on the BMC's LAN channel.",
    ),
    ("cipher suite", "Try cipher suite 3: old BMCs do not know 17."),
    (
        "Unable to read password",
        "Make {password_file} readable for the lab's user, with the password in its first line.",
    ),
    ("could not open", "Make {password_file} readable for the lab's user, with the password in its first line."),
    (
        "Unable to establish IPMI",
        "No answer as expected at {host}, UDP port {port}: check the BMC's address and cable, that `IPMI over LAN` is"
        " on, the user and password, and try cipher suite 3.",
    ),
    ("Name or service not known", "{host} is no known name: correct it, or give an address."),
    ("No such file or directory", "Install ipmitool on the lab's host."),
    ("did not answer in", "The BMC does not answer in time: check its address, and try cipher suite 3 for an old BMC."),
)
_REDFISH: Sequence[tuple[str, str]] = (
    (
        "user or password is wrong",
        "Correct user {user} and {password_file}; the user needs the right to reset the system.",
    ),
    (
        "--certificate",
        "Save the BMC's certificate with `openssl s_client -connect {host}:{port} </dev/null | openssl x509`, compare"
        " its fingerprint with that of the BMC's page, and name the file.",
    ),
    ("choose one by --system", "Name the system that is this machine."),
    ("no system", "Correct the name of the system."),
    (
        "allows no",
        "The BMC does not allow this kind of reset: describe the machine's power by another way, such as IPMI.",
    ),
    ("Name or service not known", "{host} is no known name: correct it, or give an address."),
    ("refused", "No service answers at {host}, port {port}: check that Redfish is on, and the port."),
    ("did not answer", "Check the BMC's address and cable, and that the lab's host reaches port {port}."),
    ("No such file or directory", "Run this on the lab's host, where `wqlab-redfish` is part of the worker."),
)
_DEBUG_CABLE: Sequence[tuple[str, str]] = (
    ("No such file or directory", "Install `dut-control` (hdctools) on the lab's host."),
    ("refused", "No servod listens at port {port} of the lab's host: start it for this cable, or correct the port."),
    (
        "",
        "Run `dut-control --port {port} power_state` on the lab's host: the cable must be in the right port, and CCD"
        " open.",
    ),
)
_PDU: Sequence[tuple[str, str]] = (
    (
        "SNMP",
        "Check that SNMPv1 is on at {host} and that its community `private` may write, which labgrid's driver uses.",
    ),
    (
        "snmp",
        "Install the Debian package snmp on the lab's host; check that SNMPv1 is on at {host}, community `private`.",
    ),
    ("401", "The unit asks for a password, which labgrid's driver for {model} cannot give: allow access without one."),
    ("Name or service not known", "{host} is no known name: correct it, or give an address."),
    ("resolve", "{host} is no known name: correct it, or give an address."),
    ("", "Check address, model ({model}) and outlet ({outlet}) of the unit, and that the lab's host reaches it."),
)


def power(device: NewDevice, said: str) -> str:
    """Return the advice for a power switch that failed and `said` this."""
    switch = device.power
    by_kind = {"ipmi": _IPMI, "redfish": _REDFISH, "debug_cable": _DEBUG_CABLE, "pdu": _PDU}
    known = by_kind[switch.kind]
    values = {name: str(value) for name, value in switch.model_dump().items()}
    for mark, advice in known:
        if mark in said:
            return advice.format(**values)
    return "Run the power switch by hand on the lab's host, and compare its answer."


def console_port(device: NewDevice, said: str) -> str:
    """Return the advice for a console whose port cannot be opened."""
    host, port = device.console.host, device.console.port
    if "refused" in said and device.netconsole is not None:
        return f"wqlab-netconsole does not listen at {host}:{port}: start it there with `--tcp`, or correct the port."
    if "refused" in said:
        return f"No console server listens at {host}:{port}: start ser2net or conserver there, or correct the port."
    if "RFC2217" in said:
        return f"{host}:{port} does not speak RFC 2217: choose raw, or ser2net's accepter telnet(rfc2217),tcp,{port}."
    if "not known" in said or "resolve" in said or "resolution" in said:
        return f"{host} is no known name: correct it, or give an address."
    return f"Check that the lab's host reaches {host}:{port}: address, firewall, and the console server."


def silence(device: NewDevice) -> str:
    """Return the advice for a machine that is switched on and prints nothing."""
    boot = device.boot
    outlet = "the machine itself is switched on at its own switch, and starts when power returns"
    if isinstance(device.power, Ipmi | Redfish):
        switch = "that this BMC is the machine's own"
    elif isinstance(device.power, DebugCable):
        switch = "that this debug cable is the machine's own, and that its battery is charged"
    else:
        switch = f"the outlet number, that {outlet}"
    if device.netconsole is not None:
        starts = "is the boot loader's default" if device.choose_golden is None else "starts once it is chosen"
        return (
            f"Check {switch}; that the golden system {starts}, with"
            f" `netconsole={device.netconsole}` on its command line; and that wqlab-netconsole receives there."
        )
    return (
        f"Check {switch}; that the console server's port is this machine's; and that the firmware's serial redirection"
        f" is on, at {boot.console_speed} baud and on {boot.console_device}."
    )


def no_golden(device: NewDevice, console: bytes) -> str:
    """Return the advice for a machine that prints, but not the golden system's ready line."""
    if hint := diagnose_console.boot_hint(console):
        return f"{hint.text[:1].upper()}{hint.text[1:]}. {hint.advice}"
    if diagnose_console.network_report(console):
        return "The golden system started, but has no ready line yet: check its DHCP lease, or wait longer."
    if b"Linux version" in console:
        return "A kernel started without a ready line: see that it is the golden system, with `wqlab.ssh=KEY`."
    words = f"console={device.boot.console_device},{device.boot.console_speed}"
    if device.netconsole is not None:
        words = f"netconsole={device.netconsole}"
    return (
        f"Check the boot order and the server of the golden system, that its kernel has `{words}`, and that"
        f" {device.boot.golden_timeout_s} s are enough for the firmware."
    )


def no_echo(device: NewDevice) -> str:
    return (
        "The console can be read, but not written: see that the console server's connection is not read-only, that flow"
        f" control is off, and that {device.boot.console_device} is the golden system's console."
    )


def no_ssh(device: NewDevice, said: str, console: bytes) -> str:
    """Return the advice for a golden system that is up, but does not answer by SSH; `said` is SSH's reason."""
    where = f"{device.ssh.host}:{device.ssh.port}"
    if is_key_refused(said):
        return "The golden system has another key: put the lab's public key as `wqlab.ssh=KEY` on its command line."
    if "resolve" in said or "not known" in said:
        return f"{device.ssh.host} is no known name: correct it, or give the address."
    if "refused" in said:
        return f"Something else answers at {where}, or no SSH server runs: compare the `network:` lines on the console."
    report = diagnose_console.network_report(console)
    advice = diagnose_console.network_advice(report, device.ssh.host)
    return f"{advice} Its console says: {report}" if report else advice


def no_kexec(said: str) -> str:
    """Return the advice for a kernel that was not started by kexec."""
    if "not permitted" in said or "lockdown" in said:
        return "The kernel refuses kexec: switch secure boot off in the firmware."
    if "not found" in said:
        return "The golden system has no kexec: serve the lab's own image (docs/hardware)."
    if "initrd" in said or "/sys/firmware" in said:
        return "The golden system does not keep its image: put `retain_initrd` on its command line."
    if "not one byte" in said:
        return (
            "Read the console after the jump. A network card that is not reset by kexec, or another console, is the"
            " usual reason."
        )
    return "Read the console after the jump; the kernel needs this machine's drivers (recipe measure-hardware)."
