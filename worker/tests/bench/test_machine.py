"""QEMU processes, with a small program in place of QEMU."""

from __future__ import annotations

import asyncio

import pytest

from wqlab_bench.machine import Machine, MachineError

from .conftest import FAKE_QEMU


async def wait_for(output: bytearray, text: bytes) -> None:
    async with asyncio.timeout(10):
        while text not in output:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_machine_passes_console_and_monitor_commands() -> None:
    output, exits = bytearray(), []

    async def scenario() -> None:
        machine = Machine(FAKE_QEMU)
        await machine.start(output.extend, lambda *ended: exits.append(ended))
        machine.type(b"hello")
        await wait_for(output, b"got hello\n")
        assert await machine.command("set_link", name="net0", up=False) == {}
        await wait_for(output, b'monitor: set_link {"name": "net0", "up": false}\n')
        await machine.kill()

    asyncio.run(scenario())
    assert exits == [], "a killed machine calls no on_exit"


def test_exit_of_the_guest_is_reported() -> None:
    output, exits = bytearray(), []

    async def scenario() -> None:
        machine = Machine(FAKE_QEMU)
        await machine.start(output.extend, lambda *ended: exits.append(ended))
        machine.type(b"exit")
        async with asyncio.timeout(10):
            while not exits:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        with pytest.raises(MachineError):
            await machine.command("stop")

    asyncio.run(scenario())
    assert exits == [(0, "guest switched itself off")]


@pytest.mark.parametrize("command", [[*FAKE_QEMU, "--refuse"], ["/nonexistent/qemu"]])
def test_failed_start_is_an_error(command: list[str]) -> None:
    async def scenario() -> None:
        with pytest.raises(MachineError):
            await Machine(command).start(lambda _: None, lambda _: None)

    asyncio.run(scenario())
