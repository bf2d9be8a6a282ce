"""The virtual bench: every emulated unit of the data folder as a device with console, outlet and SSH address."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from wqlab_contracts import bench_addresses
from wqlab_contracts.bench_addresses import Accelerator, Published, PublishedDevice
from wqlab_contracts.specs import CpuArch, DeviceType

from . import qemu
from .capacity import Slots
from .control_api import Interface
from .emulated_device import Device
from .ports import Ports

log = logging.getLogger(__name__)


class BenchError(Exception):
    """The bench cannot start; the text says what to do."""


@dataclass(frozen=True)
class Settings:
    state: Path
    golden: Mapping[CpuArch, qemu.Golden]
    """Devices of an architecture that is not here are refused."""
    firmware: qemu.Firmware
    lab: str
    accelerator: Accelerator
    capacity: int


class Bench:
    """Owns the devices from `start()` to `stop()`; publishes where they are in between."""

    def __init__(self, device_types: Mapping[str, DeviceType], settings: Settings) -> None:
        self._settings = settings
        self._ports = Ports(settings.state / "bench" / "ports.json")
        self._slots = Slots(settings.capacity)
        self._devices: dict[str, Device] = {}
        self._published = Published(
            http=f"http://127.0.0.1:{self._ports.http()}",
            capacity=settings.capacity,
            accelerator=settings.accelerator,
            emulator=qemu.described(settings.accelerator),
            devices={},
        )
        for device_type in device_types.values():
            if device_type.emulated:
                self._add(device_type)
        self._runner: web.AppRunner | None = None

    def _add(self, device_type: DeviceType) -> None:
        consoles = self._settings.state / "bench" / "consoles"
        for unit in device_type.units:
            if unit.lab != self._settings.lab:
                continue
            ports = self._ports.device(unit.name)
            try:
                command = self._command(device_type, ports.ssh)
            except qemu.UnsupportedTypeError as error:
                self._published.refused[device_type.name] = str(error)
                log.error("device type %s", error)
                return
            log_file = consoles / f"{unit.name}.log"
            self._devices[unit.name] = Device(unit.name, command, log_file, self._slots)
            self._published.devices[unit.name] = PublishedDevice(
                index=ports.index,
                console=f"127.0.0.1:{ports.console}",
                ssh_port=ports.ssh,
                power_url=f"{self._published.http}/power/{ports.index}",
                log=str(log_file),
                device_type=device_type.name,
            )

    def _command(self, device_type: DeviceType, ssh_port: int) -> list[str]:
        settings = self._settings
        golden = settings.golden.get(device_type.arch)
        if golden is None:
            raise qemu.UnsupportedTypeError(
                f"{device_type.name}: this lab has no golden system for {device_type.arch}; "
                f"`make {device_type.arch}` makes one"
            )
        return qemu.command(device_type, golden, ssh_port, settings.accelerator, settings.firmware)

    async def start(self) -> Published:
        """Listens everywhere, then publishes. Raises BenchError if a remembered port is now someone else's."""
        try:
            await self._listen()
        except OSError as error:
            raise BenchError(
                f"{error}: end what listens there, or remove {self._ports.file} to have other ports chosen"
            ) from error
        bench_addresses.write(self._settings.state, self._published)
        return self._published

    async def _listen(self) -> None:
        for name, device in self._devices.items():
            await device.console.listen(self._ports.device(name).console)
        indices = {place.index: name for name, place in self._published.devices.items()}
        self._runner = web.AppRunner(Interface(self._devices, indices).application(), access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._ports.http()).start()

    async def stop(self) -> None:
        """Switches every device off."""
        bench_addresses.path(self._settings.state).unlink(missing_ok=True)
        if self._runner is not None:
            await self._runner.cleanup()
        await asyncio.gather(*(device.close() for device in self._devices.values()))


async def serve(bench: Bench) -> None:
    """Runs until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        place = await bench.start()
        log.info("%d devices at %s, %d at once, %s", len(place.devices), place.http, place.capacity, place.accelerator)
        await ended.wait()
    finally:
        await bench.stop()
