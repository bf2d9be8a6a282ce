"""Addresses of a new machine, and the commands that switch its power."""

from __future__ import annotations

from .description import DebugCable, Ipmi, NewDevice, Redfish


def addresses(device: NewDevice) -> dict[str, str]:
    """Return the machine's values for addresses.env, by name."""
    values = {
        "LAB": device.lab,
        "CONSOLE_HOST": device.console.host,
        "CONSOLE_PORT": str(device.console.port),
        "SSH_HOST": device.ssh.host,
        "SSH_PORT": str(device.ssh.port),
    }
    power = device.power
    if isinstance(power, Ipmi):
        values |= {
            "BMC": power.host,
            "BMC_PORT": str(power.port),
            "BMC_USER": power.user,
            "BMC_PASSWORD_FILE": power.password_file,
            "BMC_CIPHER": str(power.cipher),
        }
    elif isinstance(power, Redfish):
        values |= {"BMC": power.url, "BMC_USER": power.user, "BMC_PASSWORD_FILE": power.password_file}
        values |= {"BMC_CERTIFICATE": power.certificate} if power.certificate is not None else {}
        values |= {"BMC_SYSTEM": power.system} if power.system is not None else {}
    elif isinstance(power, DebugCable):
        values["SERVO_PORT"] = str(power.port)
    else:
        values |= {"PDU": power.labgrid_host, "PDU_OUTLET": str(power.outlet)}
    if device.netconsole is not None:
        values["NETCONSOLE"] = device.netconsole
    values |= {f"SCRATCH_{number}": name for number, name in enumerate(device.scratch, 1)}
    return {f"{device.prefix}_{name}": value for name, value in values.items()}


def power_commands(device: NewDevice) -> dict[str, str] | None:
    """Return the power commands with their values in place, as the lab will run them; None for an outlet."""
    commands = named_power_commands(device)
    if commands is None:
        return None
    for name, value in addresses(device).items():
        commands = {key: text.replace(f"${{{name}}}", value) for key, text in commands.items()}
    return commands


def named_power_commands(device: NewDevice) -> dict[str, str] | None:
    """Return the power commands, with addresses as `${NAME}`; None for an outlet, which labgrid switches."""
    power, prefix = device.power, device.prefix
    if isinstance(power, Ipmi):
        return _ipmi_commands(prefix)
    if isinstance(power, Redfish):
        command = (
            f"wqlab-redfish --url ${{{prefix}_BMC}} --user ${{{prefix}_BMC_USER}}"
            f" --password-file ${{{prefix}_BMC_PASSWORD_FILE}}"
        )
        if power.certificate is not None:
            command += f" --certificate ${{{prefix}_BMC_CERTIFICATE}}"
        if power.system is not None:
            command += f" --system ${{{prefix}_BMC_SYSTEM}}"
        return {"turn_on": f"{command} on", "turn_off": f"{command} off"}
    if isinstance(power, DebugCable):
        command = f"dut-control --port ${{{prefix}_SERVO_PORT}} power_state"
        return {"turn_on": f"{command}:on", "turn_off": f"{command}:off"}
    return None


def _ipmi_commands(prefix: str) -> dict[str, str]:
    """Return the power commands of a BMC. The lab switches off before it switches on, and many BMCs refuse to switch
    off a machine that is off, so the command asks for the status first."""
    power = (
        f"ipmitool -I lanplus -H ${{{prefix}_BMC}} -p ${{{prefix}_BMC_PORT}} -C ${{{prefix}_BMC_CIPHER}}"
        f" -U ${{{prefix}_BMC_USER}} -f ${{{prefix}_BMC_PASSWORD_FILE}} chassis power"
    )
    return {
        "turn_on": f"{power} on",
        "turn_off": f'sh -c \'power="{power}"; $power status | grep -q "is off" || $power off\'',
    }
