"""An emulated device: its outlet, its QEMU process, its console and its injected faults."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from .capacity import Slots
from .console import Console
from .faults import READY, Fault, FaultKind, Trigger, garble
from .machine import Machine, MachineError

log = logging.getLogger(__name__)

_NETWORK_DEVICE = "net0"
_CONSOLE_FAULTS = {FaultKind.MUTE, FaultKind.GARBLED_CONSOLE}


class MachineLike(Protocol):
    """The interface of `Machine` that a device uses."""

    async def start(self, on_output: Callable[[bytes], None], on_exit: Callable[[int, str], None]) -> None: ...
    async def command(self, execute: str, /, **arguments: Any) -> Any: ...
    def type(self, data: bytes) -> None: ...
    async def kill(self) -> None: ...


class EmulatedDevice:
    """A device on a switched outlet. The outlet can be on while the device does not run."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_file: Path,
        slots: Slots,
        make_machine: Callable[[Sequence[str]], MachineLike] = Machine,
    ) -> None:
        self.name = name
        self.console = Console(log_file, self._type)
        self._command = command
        self._slots = slots
        self._make_machine = make_machine
        self._machine: MachineLike | None = None
        self._outlet = False
        self._switching = asyncio.Lock()
        self._faults: list[Fault] = []
        self._active: set[Fault] = set()
        self._power_ons_with: dict[Fault, int] = {}
        """Fault -> power-ons since it was set."""
        self._triggers: dict[Fault, Trigger] = {}
        self._noise = random.Random(0)  # noqa: S311
        self._power_ons = 0
        self._detail = ""
        self._background: set[asyncio.Task[None]] = set()

    # --- the outlet ---------------------------------------------------------------------------------------------

    @property
    def outlet(self) -> bool:
        return self._outlet

    async def switch(self, on: bool) -> None:
        """Switch the outlet; if this fails, it stays off.

        Raises capacity.Busy if no slot becomes free, MachineError if QEMU fails.
        """
        async with self._switching:
            for fault in self._faults_of(FaultKind.SLOW_POWER):
                await asyncio.sleep(fault.seconds)
                self._active.add(fault)
                self._remove_once_faults(FaultKind.SLOW_POWER)
            if on and not self._outlet:
                await self._power_on()
            elif not on and self._outlet:
                await self._power_off()

    async def _power_on(self) -> None:
        for fault in self._faults:
            self._power_ons_with[fault] = self._power_ons_with.get(fault, 0) + 1
        if self._faults_of(FaultKind.DEAD):
            self._active.update(self._faults_of(FaultKind.DEAD))
            self._outlet, self._detail = True, "does not start (fault)"
            return
        await self._slots.take(self.name)
        self.console.start_log()
        self._triggers = {fault: _trigger(fault) for fault in self._due_faults() if _is_triggered(fault)}
        # Console faults apply from the first byte.
        self._active.update(
            fault for fault in self._due_faults() if fault.kind in _CONSOLE_FAULTS and not _is_triggered(fault)
        )
        self._machine = machine = self._make_machine(self._command)
        try:
            await machine.start(self._on_output, self._on_exit)
        except MachineError as error:
            self._machine, self._detail = None, str(error)
            self._slots.release(self.name)
            raise
        self._outlet, self._detail = True, ""
        self._power_ons += 1
        for fault in self._due_faults():
            if not _is_triggered(fault) and fault.kind not in _CONSOLE_FAULTS:
                await self._start_fault(fault)

    async def _power_off(self) -> None:
        machine, self._machine = self._machine, None
        self._outlet, self._detail = False, ""
        if machine is not None:
            await machine.kill()
            self._slots.release(self.name)
        self._remove_once_faults(*FaultKind)
        self._active.clear()

    async def close(self) -> None:
        async with self._switching:
            await self._power_off()
        await self.console.close()

    # --- faults -------------------------------------------------------------------------------------------------

    @property
    def faults(self) -> list[Fault]:
        return list(self._faults)

    async def set_faults(self, faults: Sequence[Fault]) -> None:
        """Replace all faults: end those that are removed and start new ones. Raises MachineError."""
        async with self._switching:
            removed = [fault for fault in self._faults if fault not in faults]
            added = [fault for fault in faults if fault not in self._faults]
            self._faults = list(faults)
            for fault in removed:
                self._triggers.pop(fault, None)
                self._power_ons_with.pop(fault, None)
                if fault in self._active:
                    self._active.discard(fault)
                    await self._end_fault(fault)
            for fault in added:
                if fault.every > 1:
                    continue  # it waits for its power-on
                if fault.when is not None:
                    self._triggers[fault] = _trigger(fault)
                elif self._machine is not None and fault.kind is not FaultKind.DEAD:
                    await self._start_fault(fault)

    async def _start_fault(self, fault: Fault) -> None:
        machine = self._machine
        if machine is None or fault.kind is FaultKind.SLOW_POWER:
            return
        log.info("%s: fault %s", self.name, fault.kind)
        self._active.add(fault)
        if fault.kind is FaultKind.HANG:
            await machine.command("stop")
        elif fault.kind is FaultKind.NETWORK_CUT:
            await machine.command("set_link", name=_NETWORK_DEVICE, up=False)
        elif fault.kind is FaultKind.PANIC:
            # SysRq is a serial BREAK and a letter (Documentation/admin-guide/sysrq.rst); c crashes the kernel.
            await machine.command("chardev-send-break", id="console")
            machine.type(b"c")
            self._remove_once_faults(FaultKind.PANIC)
            if fault in self._faults:
                self._triggers[fault] = _trigger(fault)

    async def _end_fault(self, fault: Fault) -> None:
        if self._machine is None:
            return
        if fault.kind is FaultKind.HANG:
            await self._machine.command("cont")
        elif fault.kind is FaultKind.NETWORK_CUT:
            await self._machine.command("set_link", name=_NETWORK_DEVICE, up=True)

    def _due_faults(self) -> list[Fault]:
        """Return the faults that affect the current power-on."""
        return [fault for fault in self._faults if self._power_ons_with.get(fault, 0) % fault.every == 0]

    def _faults_of(self, kind: FaultKind) -> list[Fault]:
        return [fault for fault in self._due_faults() if fault.kind is kind]

    def _remove_once_faults(self, *kinds: FaultKind) -> None:
        """Remove the `once` faults of these kinds that have started."""
        self._faults = [f for f in self._faults if not (f.once and f.kind in kinds and f in self._active)]

    # --- callbacks of the machine -------------------------------------------------------------------------------

    def _on_output(self, data: bytes) -> None:
        active = {fault.kind for fault in self._active}
        if FaultKind.MUTE not in active:
            self.console.write(garble(data, self._noise) if FaultKind.GARBLED_CONSOLE in active else data)
        for fault, trigger in list(self._triggers.items()):
            if trigger.seen(data):
                self._in_background(self._start_fault(fault))

    def _on_exit(self, status: int, error_output: str) -> None:
        """Note that the guest switched itself off (status 0) or that QEMU failed. The outlet stays on.

        If QEMU failed, the console's clients are disconnected: they must not take the silence for a hang of the guest.
        """
        self._machine, self._detail = None, f"QEMU ended with status {status}: {error_output}".rstrip(": ")
        log.warning("%s: %s", self.name, self._detail)
        self._slots.release(self.name)
        if status:
            self.console.disconnect()

    def _type(self, data: bytes) -> None:
        if self._machine is not None:
            self._machine.type(data)

    def _in_background(self, work: Any) -> None:
        async def ignore_machine_errors() -> None:
            with contextlib.suppress(MachineError):
                await work

        task = asyncio.create_task(ignore_machine_errors())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def status(self) -> dict[str, Any]:
        """Return the state of the device for the HTTP API."""
        return {
            "outlet": "on" if self._outlet else "off",
            "running": self._machine is not None,
            "detail": self._detail,
            "power_ons": self._power_ons,
            "console_clients": self.console.clients,
            "faults": [fault.model_dump(mode="json") for fault in self._faults],
        }


def _is_triggered(fault: Fault) -> bool:
    """Return True if the fault starts with a console text. A panic always does, because it needs a running kernel."""
    return fault.when is not None or fault.kind is FaultKind.PANIC


def _trigger(fault: Fault) -> Trigger:
    return Trigger(fault.when or READY)
