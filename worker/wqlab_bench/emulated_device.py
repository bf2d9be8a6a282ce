"""One device: its outlet, the machine behind it, its console, and the faults it is asked to show."""

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
_WIRE = {FaultKind.MUTE, FaultKind.GARBLED_CONSOLE}


class MachineLike(Protocol):
    """What a device needs of the machine behind it; `Machine` is the real one."""

    async def start(self, on_output: Callable[[bytes], None], on_exit: Callable[[str], None]) -> None: ...
    async def command(self, execute: str, /, **arguments: Any) -> Any: ...
    def type(self, data: bytes) -> None: ...
    async def kill(self) -> None: ...


class Device:
    """Behaves like a device on an outlet: the outlet's state is one thing, whether the device lives another."""

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
        self._struck: set[Fault] = set()
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
        """Switches the outlet; an outlet that cannot be switched on stays off.

        Raises `capacity.Busy` if no slot for another device gets free, MachineError if QEMU fails.
        """
        async with self._switching:
            for fault in self._having(FaultKind.SLOW_POWER):
                await asyncio.sleep(fault.seconds)
                self._struck.add(fault)
                self._forget_once(FaultKind.SLOW_POWER)
            if on and not self._outlet:
                await self._power_on()
            elif not on and self._outlet:
                await self._power_off()

    async def _power_on(self) -> None:
        if self._having(FaultKind.DEAD):
            self._struck.update(self._having(FaultKind.DEAD))
            self._outlet, self._detail = True, "does not start (fault)"
            return
        await self._slots.take(self.name)
        self.console.begin()
        self._triggers = {fault: _trigger(fault) for fault in self._faults if _waits(fault)}
        # A bad line is bad from the first byte on.
        self._struck.update(fault for fault in self._faults if fault.kind in _WIRE and not _waits(fault))
        self._machine = machine = self._make_machine(self._command)
        try:
            await machine.start(self._on_output, self._on_exit)
        except MachineError as error:
            self._machine, self._detail = None, str(error)
            self._slots.give_back(self.name)
            raise
        self._outlet, self._detail = True, ""
        self._power_ons += 1
        for fault in self._faults:
            if not _waits(fault) and fault.kind not in _WIRE:
                await self._strike(fault)

    async def _power_off(self) -> None:
        machine, self._machine = self._machine, None
        self._outlet, self._detail = False, ""
        if machine is not None:
            await machine.kill()
            self._slots.give_back(self.name)
        self._forget_once(*FaultKind)
        self._struck.clear()

    async def close(self) -> None:
        async with self._switching:
            await self._power_off()
        await self.console.close()

    # --- faults -------------------------------------------------------------------------------------------------

    @property
    def faults(self) -> list[Fault]:
        return list(self._faults)

    async def set_faults(self, faults: Sequence[Fault]) -> None:
        """Replaces the faults: those that are gone heal, new ones strike. Raises MachineError."""
        async with self._switching:
            removed = [fault for fault in self._faults if fault not in faults]
            added = [fault for fault in faults if fault not in self._faults]
            self._faults = list(faults)
            for fault in removed:
                self._triggers.pop(fault, None)
                if fault in self._struck:
                    self._struck.discard(fault)
                    await self._heal(fault)
            for fault in added:
                if fault.when is not None:
                    self._triggers[fault] = _trigger(fault)
                elif self._machine is not None and fault.kind is not FaultKind.DEAD:
                    await self._strike(fault)

    async def _strike(self, fault: Fault) -> None:
        machine = self._machine
        if machine is None or fault.kind is FaultKind.SLOW_POWER:
            return
        log.info("%s: fault %s", self.name, fault.kind)
        self._struck.add(fault)
        if fault.kind is FaultKind.HANG:
            await machine.command("stop")
        elif fault.kind is FaultKind.NETWORK_CUT:
            await machine.command("set_link", name=_NETWORK_DEVICE, up=False)
        elif fault.kind is FaultKind.PANIC:
            # A serial BREAK, then a letter, is SysRq (Documentation/admin-guide/sysrq.rst); c crashes the kernel.
            await machine.command("chardev-send-break", id="console")
            machine.type(b"c")
            self._forget_once(FaultKind.PANIC)
            if fault in self._faults:
                self._triggers[fault] = _trigger(fault)

    async def _heal(self, fault: Fault) -> None:
        if self._machine is None:
            return
        if fault.kind is FaultKind.HANG:
            await self._machine.command("cont")
        elif fault.kind is FaultKind.NETWORK_CUT:
            await self._machine.command("set_link", name=_NETWORK_DEVICE, up=True)

    def _having(self, kind: FaultKind) -> list[Fault]:
        return [fault for fault in self._faults if fault.kind is kind]

    def _forget_once(self, *kinds: FaultKind) -> None:
        """One-shot faults of these kinds that have struck are over."""
        self._faults = [f for f in self._faults if not (f.once and f.kind in kinds and f in self._struck)]

    # --- the machine's side -------------------------------------------------------------------------------------

    def _on_output(self, data: bytes) -> None:
        struck = {fault.kind for fault in self._struck}
        if FaultKind.MUTE not in struck:
            self.console.write(garble(data, self._noise) if FaultKind.GARBLED_CONSOLE in struck else data)
        for fault, trigger in list(self._triggers.items()):
            if trigger.seen(data):
                self._in_background(self._strike(fault))

    def _on_exit(self, words: str) -> None:
        """The guest switched itself off or QEMU died: the outlet is still on, as with a real device."""
        log.warning("%s: %s", self.name, words)
        self._machine, self._detail = None, words
        self._slots.give_back(self.name)

    def _type(self, data: bytes) -> None:
        if self._machine is not None:
            self._machine.type(data)

    def _in_background(self, work: Any) -> None:
        async def guarded() -> None:
            with contextlib.suppress(MachineError):
                await work

        task = asyncio.create_task(guarded())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def status(self) -> dict[str, Any]:
        """For people and the HTTP interface."""
        alive = self._machine is not None
        return {
            "outlet": "on" if self._outlet else "off",
            "running": alive,
            "detail": self._detail,
            "power_ons": self._power_ons,
            "console_clients": self.console.clients,
            "faults": [fault.model_dump(mode="json") for fault in self._faults],
        }


def _waits(fault: Fault) -> bool:
    """A panic without text waits for a system that can panic: a device that is just switched on has no kernel yet."""
    return fault.when is not None or fault.kind is FaultKind.PANIC


def _trigger(fault: Fault) -> Trigger:
    return Trigger(fault.when or READY)
