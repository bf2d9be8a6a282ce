"""The `wqlab-rehearsal` command: write the files of rehearsal machines, and give the machines faults."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from wqlab_bench import accelerator, devicetree, environment, ports, topology
from wqlab_contracts.loading import DataError

from . import debian_system, ext4, faults, machine_faults, netboot, prepare, qemu_command, redfish
from .machines import MACHINES


def main() -> None:
    arguments = _parser().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        arguments.run(arguments)
    except (
        environment.UsageError,
        DataError,
        ports.PortsError,
        topology.TopologyError,
        devicetree.DeviceTreeError,
        prepare.RehearsalError,
        netboot.NetbootError,
        debian_system.DebianError,
        ext4.Ext4Error,
        qemu_command.QemuError,
        faults.FaultError,
        redfish.CertificateError,
    ) as error:
        sys.exit(f"wqlab-rehearsal: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wqlab-rehearsal", description="Emulate machines of docs/hardware behind their protocols."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    write = commands.add_parser("prepare", help="write the files of machines and print their programs as JSON")
    write.add_argument("machines", nargs="+", choices=list(MACHINES), metavar="NAME", help=", ".join(MACHINES))
    write.add_argument("--repository", type=Path, required=True, help="folder with docs/hardware and the data")
    write.add_argument("--folder", type=Path, required=True, help="folder for everything that is written")
    write.add_argument(
        "--golden", type=Path, required=True, metavar="FILE", help="golden systems, as for `wqlab-bench serve`"
    )
    write.set_defaults(run=_prepare)

    fault = commands.add_parser("fault", help="give a machine faults of real machines (docs/hardware/faults.md)")
    fault.add_argument("folder", type=Path, help="folder of the machine in the rehearsal's folder")
    fault.add_argument("names", nargs="*", metavar="NAME", help=f"none: no fault; {', '.join(faults.FAULTS)}")
    fault.set_defaults(run=_fault)
    return parser


def _prepare(arguments: argparse.Namespace) -> None:
    state, cache = environment.folder("WQLAB_STATE"), environment.folder("WQLAB_CACHE")
    golden = environment.golden_systems(arguments.golden, state / "keys" / "lab_ed25519.pub")
    settings = prepare.Settings(
        repository=arguments.repository.absolute(),
        folder=arguments.folder.absolute(),
        state=state,
        golden=golden,
        accelerator=accelerator.choose("auto", golden["x86_64"], cache),
        lab=environment.lab(),
        cache=cache,
    )
    types = prepare.write_data(arguments.machines, settings)
    programs = [each for name in types for each in prepare.write_machine(name, types[name], settings)]
    print(prepare.as_json(arguments.machines, programs))


def _fault(arguments: argparse.Namespace) -> None:
    if not arguments.folder.is_dir():
        raise environment.UsageError(f"{arguments.folder} is not the folder of a rehearsal machine")
    faults.write(arguments.folder, arguments.names)
    machine_faults.apply(arguments.folder)
