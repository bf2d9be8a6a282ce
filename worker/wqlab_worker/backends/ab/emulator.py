"""Measure on an emulated device of this host, which starts each kernel itself: no golden system, no kexec."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from wqlab_bench import qemu
from wqlab_bench.firmware import FirmwareError
from wqlab_bench.machine import Machine, MachineError
from wqlab_contracts.bench_addresses import Accelerator
from wqlab_contracts.enums import Arm, DeviceStep
from wqlab_contracts.messages import Artifact, BlockPlan, BootKey, DeviceFacts, RunJob, RunResult
from wqlab_contracts.specs import DeviceType

from ...build.modules import files_for_kernel
from ...measure.device_interface import DeviceFailure
from ...measure.measuring_loop import measure
from ..console_tap import ConsoleTap, Wakeup
from ..device_access import BootTimes, DeviceAccess
from ..interface import Cancel, EventSink
from ..send_image import VariantImage
from ..ssh import FixedSsh, SshServer
from ..ssh_device import SshDevice
from ..verify_boot import infrastructure_failure
from .fed_console import FedConsole

T = TypeVar("T")


class EmulatorBackend:
    """Backend that starts QEMU for each boot.

    `initramfs` has the path of each arm's image. `fetch(artifact)` returns a file's path on this machine. Firmware is
    built in `cache`. `keyfile` is the private key for `public_key`, a blob in base64.
    """

    def __init__(
        self,
        device_type: DeviceType,
        accelerator: Accelerator,
        *,
        initramfs: Mapping[Arm, Path],
        fetch: Callable[[Artifact], Path],
        cache: Path,
        keyfile: Path,
        public_key: str,
    ) -> None:
        self._device_type = device_type
        self._accelerator = accelerator
        self._initramfs = initramfs
        self._fetch = fetch
        self._firmware = qemu.Firmware(cache / "firmware")
        self._keyfile = keyfile
        self._public_key = public_key

    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: EventSink, cancel: Cancel) -> RunResult:
        wakeup = Wakeup()
        access = EmulatorAccess(
            job.device, self._command, emit, cancel, wakeup, keyfile=self._keyfile, public_key=self._public_key
        )
        images = {
            kernel.image.sha256: VariantImage(self._fetch(kernel.image), kernel.image.sha256)
            for kernel in job.kernels.values()
        }
        modules = {arm: files_for_kernel(job, kernel, self._fetch) for arm, kernel in job.kernels.items()}
        facts = {"emulator": qemu.describe_emulator(self._accelerator)}
        threading.Thread(target=wake_when_canceled, args=(cancel, wakeup), name="cancel", daemon=True).start()
        try:
            return measure(job, remaining, SshDevice(access, job, images, facts, modules), emit, cancel)
        finally:
            access.close()

    def _command(self, arm: Arm, kernel: Path, arguments: str, ssh_port: int) -> list[str]:
        system = qemu.System(kernel, self._initramfs[arm], arguments)
        # A guest that restarts ends the emulator, so that no later boot is taken for the one under test.
        return qemu.system_command(
            self._device_type, system, ssh_port, self._accelerator, self._firmware, ["-no-reboot"]
        )


class EmulatorAccess(DeviceAccess):
    """Access to a guest whose emulator lives as long as its boot.

    `command(arm, kernel, arguments, ssh_port)` returns the emulator's command line.
    """

    def __init__(
        self,
        device: DeviceFacts,
        command: Callable[[Arm, Path, str, int], list[str]],
        emit: EventSink,
        cancel: Cancel,
        wakeup: Wakeup,
        *,
        keyfile: Path,
        public_key: str,
    ) -> None:
        self.device, self.cancel, self.wakeup, self.public_key = device, cancel, wakeup, public_key
        self._command = command
        self._keyfile = keyfile
        self._console = FedConsole(self._type)
        self.tap = ConsoleTap(self._console, emit, wakeup)
        self.place_lost = lambda: None
        self.times, self.token, self.golden_boot_id = BootTimes(), "", ""
        self.jumped, self.stage = False, DeviceStep.POWER
        self._loop = asyncio.new_event_loop()
        # QEMU ends with the thread that started it, so one thread starts every emulator.
        self._thread = threading.Thread(target=self._loop.run_forever, name="emulator", daemon=True)
        self._thread.start()
        self._machine: Machine | None = None
        self._exit: tuple[int, str] | None = None
        """Exit status and error output of an emulator that ended by itself."""
        self.tap.start()

    def close(self) -> None:
        """Stop the threads, after the last boot has ended."""
        self.tap.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # --- DeviceAccess -------------------------------------------------------------------------------------------

    def boot_variant(self, key: BootKey, image: VariantImage) -> None:
        self.end_boot()
        self.times, self.token, self._exit = BootTimes(), secrets.token_hex(8), None
        self.stage, self.jumped = DeviceStep.KEXEC, True
        started = time.monotonic()
        port = _free_port()
        self.ssh = FixedSsh(SshServer("127.0.0.1", port, "root", str(self._keyfile)))
        try:
            command = self._command(key.arm, image.path, self.command_line(), port)
            self.tap.begin_boot(key)
            self.tap.begin_variant()
            machine = Machine(command)
            self._run(machine.start(self._console.feed, self._ended))
        except (MachineError, qemu.UnsupportedTypeError, FirmwareError) as error:
            raise infrastructure_failure(f"the emulator does not start: {error}") from error
        self._machine = machine
        self.await_variant(self.device.boot.variant_timeout_s)
        self.times.kexec = time.monotonic() - started

    def end_boot(self) -> None:
        if self._machine is not None:
            self.ssh.close()
            machine, self._machine = self._machine, None
            self._run(machine.kill())
            self._console.drain()
        self.tap.end_boot()

    def type_line(self) -> None:
        self._console.write(b"\n")

    def has_restarted(self) -> bool:
        """Return True if the guest restarted or switched itself off."""
        return super().has_restarted() or (self._exit is not None and self._exit[0] == 0)

    def interrupted(self) -> bool:
        return super().interrupted() or (self._exit is not None and self._exit[0] != 0)

    def raise_if_interrupted(self) -> None:
        super().raise_if_interrupted()
        if self._exit is not None and self._exit[0] != 0:
            raise self._emulator_failure(*self._exit)

    # --- the emulator -------------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _type(self, data: bytes) -> None:
        if self._machine is not None:
            self._loop.call_soon_threadsafe(self._machine.type, data)

    def _ended(self, status: int, error_output: str) -> None:
        self._console.drain()
        self._exit = status, error_output
        self.wakeup.notify()

    def _emulator_failure(self, status: int, said: str) -> DeviceFailure:
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return infrastructure_failure(
            f"the emulator {how}" + (f": {said.splitlines()[-1]}" if said else ""),
            excerpt=said[-2000:],
            advice="The kernel kills the largest process of a host without memory: `dmesg` says so."
            if status == -9
            else "",
        )


def wake_when_canceled(cancel: Cancel, wakeup: Wakeup) -> None:
    """Wake all waits of a run when it is canceled."""
    cancel.wait()
    wakeup.notify()


def _free_port() -> int:
    """Return a port of this host that is free now; if another program takes it first, the emulator does not start."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
