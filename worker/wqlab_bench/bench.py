"""The virtual bench: provide each emulated device of the data folder with a console, an outlet and an SSH address."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from wqlab_contracts import bench_addresses
from wqlab_contracts.bench_addresses import Accelerator, Published, PublishedDevice
from wqlab_contracts.specs import CpuArch, DeviceType

from . import qemu
from .capacity import Slots
from .control_api import ControlApi
from .emulated_device import EmulatedDevice
from .instrument import support
from .ports import Ports
from .relay import LOOPBACK, relay

log = logging.getLogger(__name__)


MODEL_CHECK_S = 10.0
"""Interval between looks for the emulator of modelled devices, which a program of another lab or user may build."""


class BenchError(Exception):
    """The bench cannot start; the message says what to do."""


@dataclass(frozen=True)
class Settings:
    """Settings of the bench."""

    state: Path
    golden: Mapping[CpuArch, qemu.Golden]
    """Golden system by architecture; devices of other architectures are refused."""
    cache: Path
    """Folder for generated firmware and the plugin of instrumented devices."""
    lab: str
    accelerator: Accelerator
    capacity: int
    host: str = LOOPBACK
    """Name or IPv4 address of this machine. The bench listens on it, and publishes it as the devices' address."""


class Bench:
    """All emulated devices of a lab. Their addresses are published between `start()` and `stop()`."""

    def __init__(self, device_types: Mapping[str, DeviceType], settings: Settings) -> None:
        self._settings = settings
        self._address = _resolve(settings.host)
        self._ports = Ports(settings.state / "bench" / "ports.json")
        self._slots = Slots(settings.capacity)
        self._devices: dict[str, EmulatedDevice] = {}
        self._published = Published(
            http=f"http://{settings.host}:{self._ports.http()}",
            capacity=settings.capacity,
            accelerator=settings.accelerator,
            emulator=qemu.describe_emulator(settings.accelerator),
            devices={},
        )
        self._modelled = [each for each in device_types.values() if each.modelled]
        self._watch: asyncio.Task[None] | None = None
        for device_type in device_types.values():
            if device_type.instrumented:
                self._check_instrumented(device_type)
            elif device_type.on_bench:
                self._add(device_type)
        self._runner: web.AppRunner | None = None
        self._relays: list[asyncio.Server] = []

    def _add(self, device_type: DeviceType) -> None:
        consoles = self._settings.state / "bench" / "consoles"
        for device in device_type.units:
            if device.lab != self._settings.lab:
                continue
            ports = self._ports.device(device.name)
            try:
                command = self._command(device_type, ports.ssh)
            except qemu.UnsupportedTypeError as error:
                self._published.refused[device_type.name] = str(error)
                log.error("device type %s", error)
                return
            log_file = consoles / f"{device.name}.log"
            self._devices[device.name] = EmulatedDevice(device.name, command, log_file, self._slots)
            self._published.devices[device.name] = PublishedDevice(
                index=ports.index,
                console=f"{self._settings.host}:{ports.console}",
                ssh_port=ports.ssh,
                power_url=f"{self._published.http}/power/{ports.index}",
                log=str(log_file),
                device_type=device_type.name,
            )

    def _check_instrumented(self, device_type: DeviceType) -> None:
        """Refuse a type that the lab's worker could not emulate; the bench itself does not run its devices."""
        if all(device.lab != self._settings.lab for device in device_type.units):
            return
        try:
            self._golden(device_type)
            support.check(device_type, self._settings.cache)
        except qemu.UnsupportedTypeError as error:
            self._published.refused[device_type.name] = str(error)
            log.log(logging.INFO if device_type.modelled else logging.ERROR, "device type %s", error)

    def _command(self, device_type: DeviceType, ssh_port: int) -> list[str]:
        settings = self._settings
        golden = self._golden(device_type)
        return qemu.command(
            device_type, golden, ssh_port, settings.accelerator, qemu.Firmware(settings.cache / "firmware")
        )

    def _golden(self, device_type: DeviceType) -> qemu.Golden:
        golden = self._settings.golden.get(device_type.arch)
        if golden is None:
            raise qemu.UnsupportedTypeError(
                f"{device_type.name}: this lab has no golden system for {device_type.arch}; "
                f"run `make {device_type.arch}` to make one"
            )
        return golden

    async def start(self) -> Published:
        """Listen on all ports, then publish them. Raises BenchError if a remembered port is in use."""
        try:
            await self._listen()
        except OSError as error:
            raise BenchError(
                f"{error}: stop the program that listens there, or remove {self._ports.file} to choose other ports"
            ) from error
        bench_addresses.write(self._settings.state, self._published)
        self._watch = asyncio.create_task(self._watch_models())
        return self._published

    async def _watch_models(self) -> None:
        """Publish refused modelled types as soon as their emulator is built, which goes on in the background."""
        while missing := [each for each in self._modelled if each.name in self._published.refused]:
            await asyncio.sleep(MODEL_CHECK_S)
            for device_type in missing:
                reason = self._published.refused.pop(device_type.name)
                await asyncio.to_thread(self._check_instrumented, device_type)
                if self._published.refused.get(device_type.name) != reason:
                    bench_addresses.write(self._settings.state, self._published)

    async def _listen(self) -> None:
        for name, device in self._devices.items():
            ports = self._ports.device(name)
            await device.console.listen(ports.console, self._address)
            if self._address != LOOPBACK:
                self._relays.append(await relay(self._address, ports.ssh))
        indices = {published.index: name for name, published in self._published.devices.items()}
        self._runner = web.AppRunner(ControlApi(self._devices, indices).application(), access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._address, self._ports.http()).start()

    async def stop(self) -> None:
        """Switch all devices off and stop listening."""
        if self._watch is not None:
            self._watch.cancel()
        bench_addresses.path(self._settings.state).unlink(missing_ok=True)
        if self._runner is not None:
            await self._runner.cleanup()
        for each in self._relays:
            each.close()
        await asyncio.gather(*(device.close() for device in self._devices.values()))


def _resolve(host: str) -> str:
    """Return the IPv4 address of `host`. Raises BenchError."""
    try:
        return socket.gethostbyname(host)
    except OSError as error:
        raise BenchError(f"--host {host}: {error.strerror}; give a name or an IPv4 address of this machine") from error


async def serve(bench: Bench) -> None:
    """Run the bench until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        published = await bench.start()
        log.info(
            "%d devices at %s, up to %d running at once, accelerator %s",
            *(len(published.devices), published.http, published.capacity, published.accelerator),
        )
        await ended.wait()
    finally:
        await bench.stop()
