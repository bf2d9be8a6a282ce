"""The `wqlab-bench` command: run the virtual bench and prepare its files."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from wqlab_contracts import bench_addresses
from wqlab_contracts.loading import DataError
from wqlab_contracts.specs import CpuArch

from . import accelerator, bench, capacity, devicetree, exporter, firmware, ports, qemu, rootfs
from .device_types import load_device_types
from .rehearsal import debian_system, ext4, faults, machine_faults, netboot, prepare, qemu_command, redfish
from .rehearsal.machines import MACHINES
from .topology import TopologyError


class GoldenFiles(BaseModel):
    """An entry of the file given with `serve --golden`. Paths are absolute."""

    kernel: Path
    rootfs: Path


class UsageError(Exception):
    """The caller must set or create something, which the message names."""


def main() -> None:
    arguments = _parser().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        arguments.run(arguments)
    except (
        UsageError,
        DataError,
        bench.BenchError,
        ports.PortsError,
        rootfs.RootfsError,
        firmware.FirmwareError,
        exporter.ExporterError,
        prepare.RehearsalError,
        netboot.NetbootError,
        debian_system.DebianError,
        ext4.Ext4Error,
        qemu_command.QemuError,
        faults.FaultError,
        redfish.CertificateError,
        devicetree.DeviceTreeError,
        TopologyError,
    ) as error:
        sys.exit(f"wqlab-bench: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="wqlab-bench", description="Run the virtual bench of emulated devices.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    build = commands.add_parser(
        "rootfs", help="build the root filesystem of the devices unless it is cached, and print its path"
    )
    build.add_argument("--arch", choices=("x86_64", "arm64"), default="x86_64", help="default: %(default)s")
    build.set_defaults(run=_rootfs)

    run = commands.add_parser("serve", help="run the bench until SIGTERM or SIGINT")
    run.add_argument(
        "--golden",
        type=Path,
        required=True,
        metavar="FILE",
        help='JSON file with the golden system of each architecture: {"x86_64": {"kernel": FILE, "rootfs": FILE}, ...}',
    )
    run.add_argument("--ssh-key", type=Path, metavar="FILE", help="SSH public key; default: lab_ed25519.pub of the lab")
    run.add_argument(
        "--capacity", type=int, metavar="N", help="number of devices that may run at once; default: one per core"
    )
    run.add_argument(
        "--host",
        default="127.0.0.1",
        help="name or IPv4 address of this machine on which the devices are reached; default: %(default)s",
    )
    run.add_argument("--accelerator", choices=("auto", "kvm", "tcg"), default="auto", help="default: %(default)s")
    run.set_defaults(run=_serve)

    write = commands.add_parser("exporter", help="write the configuration of labgrid's exporter for the lab's devices")
    write.add_argument(
        "--output", type=Path, metavar="FILE", help="output file; default: labgrid/exporter.yaml of the lab"
    )
    write.set_defaults(run=_exporter)

    rehearsal = commands.add_parser(
        "rehearsal", help="write the files of rehearsal machines and print their programs as JSON (docs/hardware)"
    )
    rehearsal.add_argument("machines", nargs="+", choices=list(MACHINES), metavar="NAME", help=", ".join(MACHINES))
    rehearsal.add_argument("--repository", type=Path, required=True, help="folder with docs/hardware and the data")
    rehearsal.add_argument("--folder", type=Path, required=True, help="folder for everything that is written")
    rehearsal.add_argument("--golden", type=Path, required=True, metavar="FILE", help="as with `serve`")
    rehearsal.set_defaults(run=_rehearsal)

    fault = commands.add_parser(
        "fault", help="give a rehearsal machine faults of real machines (docs/hardware/faults.md)"
    )
    fault.add_argument("folder", type=Path, help="folder of the machine in the rehearsal's folder")
    fault.add_argument("names", nargs="*", metavar="NAME", help=f"none: no fault; {', '.join(faults.FAULTS)}")
    fault.set_defaults(run=_fault)

    sync = commands.add_parser(
        "places", help="create and delete labgrid places, so that there is one for each device of the lab"
    )
    sync.set_defaults(run=_places)
    return parser


def _rootfs(arguments: argparse.Namespace) -> None:
    print(rootfs.build(_folder("WQLAB_CACHE"), arguments.arch))


def _serve(arguments: argparse.Namespace) -> None:
    state, cache = _folder("WQLAB_STATE"), _folder("WQLAB_CACHE")
    device_types = load_device_types(_folder("WQLAB_DATA_DIR"))
    golden = _golden(arguments.golden, _key_blob(arguments.ssh_key or state / "keys" / "lab_ed25519.pub"))
    settings = bench.Settings(
        state=state,
        golden=golden,
        cache=cache,
        lab=_lab(),
        accelerator=accelerator.choose(arguments.accelerator, golden["x86_64"], cache),
        capacity=arguments.capacity or capacity.default_size(),
        host=arguments.host,
    )
    asyncio.run(bench.serve(bench.Bench(device_types, settings)))


def _golden(file: Path, ssh_key: str) -> dict[CpuArch, qemu.Golden]:
    try:
        systems = TypeAdapter(dict[CpuArch, GoldenFiles]).validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"{file} has no valid list of golden systems: {error}") from error
    if "x86_64" not in systems:
        raise UsageError(f"{file} has no golden system for x86_64")
    for files in systems.values():
        for path in (files.kernel, files.rootfs):
            if not path.is_file():
                raise UsageError(f"file {path} does not exist")
    return {arch: qemu.Golden(files.kernel, files.rootfs, ssh_key) for arch, files in systems.items()}


def _rehearsal(arguments: argparse.Namespace) -> None:
    state, cache = _folder("WQLAB_STATE"), _folder("WQLAB_CACHE")
    golden = _golden(arguments.golden, _key_blob(state / "keys" / "lab_ed25519.pub"))
    settings = prepare.Settings(
        repository=arguments.repository.absolute(),
        folder=arguments.folder.absolute(),
        state=state,
        golden=golden,
        accelerator=accelerator.choose("auto", golden["x86_64"], cache),
        lab=_lab(),
        cache=cache,
    )
    types = prepare.write_data(arguments.machines, settings)
    programs = [each for name in types for each in prepare.write_machine(name, types[name], settings)]
    print(prepare.as_json(arguments.machines, programs))


def _fault(arguments: argparse.Namespace) -> None:
    if not arguments.folder.is_dir():
        raise UsageError(f"{arguments.folder} is not the folder of a rehearsal machine")
    faults.write(arguments.folder, arguments.names)
    machine_faults.apply(arguments.folder)


def _exporter(arguments: argparse.Namespace) -> None:
    state = _folder("WQLAB_STATE")
    output = arguments.output or state / "labgrid" / "exporter.yaml"
    output.parent.mkdir(parents=True, exist_ok=True)
    exporter.write(state, output)
    print(output)


def _places(_: argparse.Namespace) -> None:
    """Synchronize labgrid's places with this lab's devices, emulated and real, in a process that imports labgrid."""
    coordinator = os.environ.get("LG_COORDINATOR")
    if not coordinator:
        raise UsageError("LG_COORDINATOR is not set; set it to HOST:PORT of labgrid's coordinator")
    try:
        refused = bench_addresses.read(_folder("WQLAB_STATE")).refused
    except FileNotFoundError as error:
        raise UsageError(f"no bench is running: {error.filename} is missing") from error
    device_types = load_device_types(_folder("WQLAB_DATA_DIR"))
    devices = [
        device.name
        for device_type in device_types.values()
        if device_type.name not in refused
        for device in device_type.units
        if device.lab == _lab() and device.backend == "labgrid"
    ]
    module = "wqlab_worker.backends.labgrid_places"
    command = [sys.executable, "-m", module, "--coordinator", coordinator, "--lab", _lab(), *devices]
    sys.exit(subprocess.run(command, check=False).returncode)


def _lab() -> str:
    return os.environ.get("WQLAB_LAB", "local")


def _key_blob(path: Path) -> str:
    try:
        kind, blob = path.read_text().split()[:2]
    except (OSError, ValueError) as error:
        raise UsageError(f"no SSH public key in {path}: {error}") from error
    if kind != "ssh-ed25519":
        raise UsageError(f"{path} is a {kind} key; devices need an ed25519 key")
    return blob


def _folder(variable: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        raise UsageError(f"{variable} is not set")
    return Path(value).absolute()
