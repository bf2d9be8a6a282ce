"""The `wqlab-bench` command: run the virtual bench and prepare its files."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path

from wqlab_contracts import bench_addresses
from wqlab_contracts.loading import DataError

from . import accelerator, bench, capacity, environment, exporter, firmware, ports, rootfs
from .device_types import load_device_types


def main() -> None:
    arguments = _parser().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        arguments.run(arguments)
    except (
        environment.UsageError,
        DataError,
        bench.BenchError,
        ports.PortsError,
        rootfs.RootfsError,
        firmware.FirmwareError,
        exporter.ExporterError,
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

    sync = commands.add_parser(
        "places", help="create and delete labgrid places, so that there is one for each device of the lab"
    )
    sync.set_defaults(run=_places)
    return parser


def _rootfs(arguments: argparse.Namespace) -> None:
    print(rootfs.build(environment.folder("WQLAB_CACHE"), arguments.arch))


def _serve(arguments: argparse.Namespace) -> None:
    state, cache = environment.folder("WQLAB_STATE"), environment.folder("WQLAB_CACHE")
    device_types = load_device_types(environment.folder("WQLAB_DATA_DIR"))
    golden = environment.golden_systems(arguments.golden, arguments.ssh_key or state / "keys" / "lab_ed25519.pub")
    settings = bench.Settings(
        state=state,
        golden=golden,
        cache=cache,
        lab=environment.lab(),
        accelerator=accelerator.choose(arguments.accelerator, golden["x86_64"], cache),
        capacity=arguments.capacity or capacity.default_size(),
        host=arguments.host,
    )
    asyncio.run(bench.serve(bench.Bench(device_types, settings)))


def _exporter(arguments: argparse.Namespace) -> None:
    state = environment.folder("WQLAB_STATE")
    output = arguments.output or state / "labgrid" / "exporter.yaml"
    output.parent.mkdir(parents=True, exist_ok=True)
    exporter.write(state, output)
    print(output)


def _places(_: argparse.Namespace) -> None:
    """Synchronize labgrid's places with this lab's devices, emulated and real, in a process that imports labgrid."""
    coordinator = os.environ.get("LG_COORDINATOR")
    if not coordinator:
        raise environment.UsageError("LG_COORDINATOR is not set; set it to HOST:PORT of labgrid's coordinator")
    try:
        refused = bench_addresses.read(environment.folder("WQLAB_STATE")).refused
    except FileNotFoundError as error:
        raise environment.UsageError(f"no bench is running: {error.filename} is missing") from error
    device_types = load_device_types(environment.folder("WQLAB_DATA_DIR"))
    devices = [
        device.name
        for device_type in device_types.values()
        if device_type.name not in refused
        for device in device_type.units
        if device.lab == environment.lab() and device.backend == "labgrid"
    ]
    module = "wqlab_worker.backends.labgrid_places"
    command = [sys.executable, "-m", module, "--coordinator", coordinator, "--lab", environment.lab(), *devices]
    sys.exit(subprocess.run(command, check=False).returncode)
