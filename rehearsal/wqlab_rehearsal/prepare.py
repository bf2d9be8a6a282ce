"""Write what rehearsal machines need: a data folder with the files of docs/hardware, and the files of their daemons."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from wqlab_bench import devicetree, qemu
from wqlab_bench import ports as bench_ports
from wqlab_bench.device_types import load_device_types
from wqlab_contracts.bench_addresses import Accelerator
from wqlab_contracts.specs import CpuArch, DeviceType

from . import (
    addresses,
    bmc,
    console_server,
    debian_system,
    dut_control,
    faults,
    links,
    machine_faults,
    netboot,
    network,
    pdu,
    qemu_command,
    redfish,
    serial_line,
    system_disk,
    u_boot,
)
from .machines import MACHINES, RehearsalMachine

_DATA = ("kernels", "testplans", "intake")
_KEPT_PORTS = "ports.json"


class RehearsalError(Exception):
    """A machine cannot be rehearsed; the message says what to do."""


@dataclass(frozen=True)
class Program:
    """A daemon of a machine."""

    name: str
    command: list[str]
    summary: str


@dataclass(frozen=True)
class Settings:
    """Folders, and what the machines boot."""

    repository: Path
    """Folder with docs/hardware and the data folders."""
    folder: Path
    """Folder for everything that is written."""
    state: Path
    """State folder of the lab."""
    golden: Mapping[CpuArch, qemu.Golden]
    """Golden system of each architecture; the kernels have the recipe of the device types."""
    accelerator: Accelerator
    lab: str
    cache: Path
    """Folder for what takes long to make and does not change."""

    @property
    def data(self) -> Path:
        """Data folder of the lab that measures on the machines."""
        return self.folder / "data"

    @property
    def commands(self) -> Path:
        """Folder of commands that stand in for others; it comes first in the PATH of the lab's programs."""
        return self.folder / "bin"

    @property
    def exporters(self) -> Path:
        """Folder of the files that the lab's labgrid exporter includes."""
        return self.state / "labgrid" / "exporter.yaml.d"


def write_data(names: Sequence[str], settings: Settings) -> dict[str, DeviceType]:
    """Make the data folder with the device types of docs/hardware as they stand, and addresses.env beside them.

    Return the device types by machine. Raises RehearsalError and DataError.
    """
    machines = [_machine(name) for name in names]
    types = settings.data / "device-types"
    types.mkdir(parents=True, exist_ok=True)
    for name in _DATA:
        link = settings.data / name
        link.unlink(missing_ok=True)
        link.symlink_to(settings.repository / name)
    for file in types.glob("*"):
        file.unlink()
    hardware = settings.repository / "docs" / "hardware"
    shutil.copy(settings.repository / "device-types" / "common.yaml", types)
    settings.exporters.mkdir(parents=True, exist_ok=True)
    known: dict[str, str] = {}
    for machine in machines:
        shutil.copy(hardware / "device-types" / f"{machine.device_type}.yaml", types)
        shutil.copy(hardware / "labgrid" / machine.exporter, settings.exporters)
        known |= addresses.values(machine, _ports(machine, settings), settings.lab, _own(machine, settings))
    addresses.write(types, known)
    found = load_device_types(settings.data)
    return {machine.name: found[machine.device_type] for machine in machines}


def write_machine(name: str, device_type: DeviceType, settings: Settings) -> list[Program]:
    """Write the configuration files of one machine; return the programs to start, in this order.

    Raises RehearsalError, netboot.NetbootError, debian_system.DebianError, ext4.Ext4Error,
    devicetree.DeviceTreeError and topology.TopologyError.
    """
    machine, ports = _machine(name), _ports(_machine(name), settings)
    folder = _own(machine, settings)
    guest = folder / "guest"
    guest.mkdir(parents=True, exist_ok=True)
    qemu_command.make_disks(guest, machine)
    configuration = network.Configuration(
        sockets=[qemu_command.socket(guest, number) for number in range(len(qemu_command.cards(machine)))],
        dnsmasq=_write_boot_files(machine, device_type, settings, folder),
        ssh_port=ports.ssh,
        faults=faults.file_of(folder),
        netconsole_port=ports.netconsole if machine.uart is None else None,
    )
    (folder / "network.json").write_text(configuration.model_dump_json())
    module = ["python", "-m", "wqlab_rehearsal"]
    programs = [
        Program(f"{name}-network", [*module[:2], f"{module[2]}.network", str(folder / "network.json")], "DHCP and TFTP")
    ]
    for card in machine.cards:
        if card.negotiation_s:
            command = [*module[:2], f"{module[2]}.link", str(guest), str(card.negotiation_s)]
            programs.append(Program(f"{name}-link", command, "network link"))
    power_on = folder / "power-on"
    if machine.power == "redfish":
        programs += _redfish_programs(machine, ports, folder, power_on)
        console: list[str] = []
    elif machine.power == "ipmi" and machine.uart is not None:
        wires = bmc.BmcPorts(ports.power_behind, ports.kcs, ports.serial)
        _write_password(folder, bmc.PASSWORD)
        programs.append(Program(f"{name}-bmc", bmc.write(folder / "bmc", machine.device, wires, power_on), "BMC"))
        console = bmc.qemu_arguments(wires, machine.uart)
        programs += _console_programs(
            name, folder, ports, (console_server.RAW, console_server.serial_over_lan(ports.power))
        )
    else:
        line = folder / "console"
        programs.append(
            Program(f"{name}-line", [*module[:2], f"{module[2]}.serial_line", str(line), str(guest / "uart")], "line")
        )
        console = serial_line.qemu_arguments(guest / "uart")
        accepter = console_server.RFC2217
        if machine.power == "servo":
            accepter = console_server.RAW
            daemon = [*module[:2], f"{module[2]}.servod", str(ports.power_behind), str(power_on), str(line)]
            programs.append(Program(f"{name}-servod", daemon, "debug cable"))
            _write_dut_control(settings.commands)
        else:
            programs.append(Program(f"{name}-pdu", pdu.write(folder / "pdu", ports.power_behind, power_on), "PDU"))
        programs += _console_programs(
            name, folder, ports, (accepter, console_server.serial_port(line)), tcp_power=machine.power == "servo"
        )
    command = qemu_command.command(machine, device_type, guest, settings.accelerator, console)
    start = machine_faults.Start(command, machine.training_s, machine.disks[0].serial)
    machine_faults.keep(folder, start)
    return programs


def _write_boot_files(machine: RehearsalMachine, device_type: DeviceType, settings: Settings, folder: Path) -> Path:
    """Write the golden system where the machine's firmware finds it; return the file of dnsmasq's configuration."""
    if machine.arch not in settings.golden:
        raise RehearsalError(f"{machine.name} needs a golden system for {machine.arch}; run `make arm64`")
    golden = settings.golden[machine.arch]
    served = netboot.Served(golden.kernel, golden.rootfs, qemu.golden_arguments(device_type, golden))
    tftp, dnsmasq, leases = folder / "tftp", folder / "dnsmasq.conf", folder / "leases"
    if machine.arch == "arm64":
        board = qemu_command.board(machine, device_type.topology)
        tree = devicetree.device_tree(device_type.name, device_type.topology, board, folder / "trees")
        u_boot.write_files(tftp, served, tree)
        dnsmasq.write_text(u_boot.dnsmasq_configuration(tftp, leases, machine.device, machine.cards[0].mac))
        return dnsmasq
    firmware = netboot.UEFI if machine.uefi else netboot.BIOS
    if machine.system_disk is None:
        netboot.write_files(tftp, served, firmware)
    else:
        tftp.mkdir(exist_ok=True)
        disk = qemu_command.disk_file(folder / "guest", machine.system_disk)
        if machine.own_system:
            debian = debian_system.build(settings.cache)
            system_disk.make_with_own_system(folder / "system", disk, served, debian, golden.ssh_key)
        else:
            system_disk.make(folder / "system", disk, served)
    dnsmasq.write_text(netboot.dnsmasq_configuration(tftp, leases, machine.device, machine.cards, firmware))
    return dnsmasq


def _console_programs(
    name: str, folder: Path, ports: addresses.Ports, ends: tuple[str, str], *, tcp_power: bool = False
) -> list[Program]:
    """Return the programs between the lab and a serial console. `ends` are ser2net's accepter and connector."""
    server = console_server.write(folder / "ser2net", ports.console_behind, *ends)
    return [
        Program(f"{name}-console", server, "console server"),
        Program(f"{name}-links", _write_links(folder, ports, tcp_power=tcp_power), "lines that can have faults"),
    ]


def _write_links(folder: Path, ports: addresses.Ports, *, tcp_power: bool) -> list[str]:
    """Write the configuration of the lines between the lab and the machine's equipment; return their command."""
    configuration = links.Configuration(
        faults=faults.file_of(folder),
        power=links.Line(listen=ports.power, to=ports.power_behind),
        power_protocol="tcp" if tcp_power else "udp",
        console=links.Line(listen=ports.console, to=ports.console_behind),
        monitor=qemu_command.monitor(folder / "guest"),
    )
    file = folder / "links.json"
    file.write_text(configuration.model_dump_json())
    return ["python", "-m", "wqlab_rehearsal.links", str(file)]


def _write_dut_control(folder: Path) -> None:
    """Write the command `dut-control` to `folder`: only a rehearsal may find it instead of the real one."""
    folder.mkdir(exist_ok=True)
    command = folder / "dut-control"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {dut_control.__name__} "$@"\n')
    command.chmod(0o755)


def _redfish_programs(machine: RehearsalMachine, ports: addresses.Ports, folder: Path, start: Path) -> list[Program]:
    """Return the programs of a machine without a serial port: its BMC, and the receiver of its console."""
    _write_password(folder, redfish.PASSWORD)
    host = addresses.HOST
    receiver = ["wqlab-netconsole", "--udp", f"{host}:{ports.netconsole}", "--tcp", f"{host}:{ports.console}"]
    bmc_command = redfish.write(folder / "bmc", machine.device, ports.power, start)
    return [
        Program(f"{machine.name}-console", [*receiver, "--from", host], "receiver of netconsole"),
        Program(f"{machine.name}-bmc", bmc_command, "Redfish"),
    ]


def _write_password(folder: Path, password: str) -> None:
    file = addresses.password_file(folder)
    file.touch(mode=0o600)
    file.write_text(password)


def as_json(names: Sequence[str], programs: Sequence[Program]) -> str:
    """Return what `wqlab-lab` reads: the devices, and the programs in start order."""
    devices = [_machine(name).device for name in names]
    return json.dumps({"devices": devices, "programs": [asdict(program) for program in programs]})


def _machine(name: str) -> RehearsalMachine:
    if name not in MACHINES:
        raise RehearsalError(f"no rehearsal machine {name!r}; there are: {', '.join(MACHINES)}")
    return MACHINES[name]


def _own(machine: RehearsalMachine, settings: Settings) -> Path:
    folder = settings.folder / machine.name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _ports(machine: RehearsalMachine, settings: Settings) -> addresses.Ports:
    """Return the machine's ports, chosen at the first call and kept."""
    file = settings.folder / _KEPT_PORTS
    kept: dict[str, dict[str, int]] = json.loads(file.read_text()) if file.exists() else {}
    chosen = kept.setdefault(machine.name, {})
    if missing := [each.name for each in fields(addresses.Ports) if each.name not in chosen]:
        taken = {port for each in kept.values() for port in each.values()}
        for name in missing:
            chosen[name] = bench_ports.free_port(taken)
            taken.add(chosen[name])
        file.write_text(json.dumps(kept))
    return addresses.Ports(**kept[machine.name])
