"""QEMU processes, with a small program in place of QEMU."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from wqlab_bench import confinement
from wqlab_bench.machine import Machine, MachineError, guest_of

from .conftest import FAKE_QEMU


async def wait_for(output: bytearray, text: bytes) -> None:
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


PRINT_ENVIRONMENT = """
import os, sys
print(sorted(set(os.environ) - {'LC_CTYPE', 'WQLAB_STATE', 'WQLAB_DATA_DIR'}), os.getpid(), file=sys.stderr)
sys.exit(1)
"""


def test_program_in_place_of_qemu_gets_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WQLAB_WORKER_TOKEN", "secret")

    async def start(command: list[str]) -> str:
        with pytest.raises(MachineError) as error:
            await Machine(command).start(lambda _: None, lambda _: None)
        return str(error.value)

    program = ["/usr/bin/python3", "-c", PRINT_ENVIRONMENT]
    assert "['LC_ALL', 'PATH']" in asyncio.run(start(program))
    assert "['PWD'] 1" in asyncio.run(start(confinement.confine(program, []))), "it is the first process it sees"


def test_confined_machine_is_dead_after_kill() -> None:
    """bubblewrap ends after the program that it confines."""

    async def scenario() -> None:
        program = FAKE_QEMU[1]
        machine = Machine(confinement.confine(["/usr/bin/python3", program], [Path(program)]))
        output = bytearray()
        await machine.start(output.extend, lambda _: None)
        await wait_for(output, b"wqlab-ready")
        assert machine._process is not None
        guest = guest_of(machine._process.pid)
        assert guest != machine._process.pid
        await machine.kill()
        with pytest.raises(ProcessLookupError):
            os.kill(guest, 0)

    asyncio.run(scenario())
