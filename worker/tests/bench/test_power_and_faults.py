"""Power switching and faults of a device, with a small program in place of QEMU."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from wqlab_bench.capacity import Busy, Slots
from wqlab_bench.emulated_device import EmulatedDevice
from wqlab_bench.faults import Fault, FaultKind
from wqlab_bench.machine import MachineError

from .conftest import FAKE_QEMU, Client, free_port

READY = b"wqlab-ready token=- boot_id=fake\n"
MakeDevice = Callable[..., EmulatedDevice]


def with_console(device: EmulatedDevice, scenario: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        port = free_port()
        await device.console.listen(port)
        try:
            await scenario(await Client.connect(port))
        finally:
            await device.close()

    asyncio.run(run())


def test_console_connection_survives_power_cycles(make_device: MakeDevice) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        for _ in range(3):
            await device.switch(True)
            await client.until(READY)
            client.send(b"hello")
            await client.until(b"got hello")
            await device.switch(False)
            assert not device.outlet
        assert client.seen.count(READY) == 3

    with_console(device, scenario)
    assert device.status()["power_ons"] == 3


def test_failed_emulator_closes_the_console_connections(make_device: MakeDevice) -> None:
    """Silence of a console that stays connected means that the guest hangs."""
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.switch(True)
        await client.until(READY)
        client.send(b"crash")
        with pytest.raises(EOFError):
            await client.until(b"more output")
        assert device.status()["detail"].startswith("QEMU ended with status -9")

    with_console(device, scenario)


def test_output_before_power_off_is_logged(make_device: MakeDevice, tmp_path: Path) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.switch(True)
        await client.until(READY)
        client.send(b"flood 20000")
        await client.until(b"flooded\n")

    with_console(device, scenario)
    lines = (tmp_path / "device.log").read_text().splitlines()
    assert lines[1:-1] == [f"line {number}" for number in range(20000)]


def test_outlet_stays_on_after_guest_switches_itself_off(make_device: MakeDevice) -> None:
    slots = Slots(1)
    device, other = make_device("device", slots), make_device("other", slots)

    async def scenario(client: Client) -> None:
        await device.switch(True)
        await client.until(READY)
        client.send(b"exit")
        while device.status()["running"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert device.outlet
        assert "guest switched itself off" in device.status()["detail"]
        await other.switch(True)  # the slot is free again
        await other.close()
        await device.switch(False)
        await device.switch(True)
        await client.until(READY)

    with_console(device, scenario)


def test_busy_error_names_running_devices(make_device: MakeDevice) -> None:
    slots = Slots(1, wait_s=0.1)
    first, second = make_device("first", slots), make_device("second", slots)

    async def scenario() -> None:
        await first.switch(True)
        with pytest.raises(Busy, match=r"1 of 1 devices are running \(first\)"):
            await second.switch(True)
        assert not second.outlet
        await first.switch(False)
        await second.switch(True)
        assert slots.holders == ["second"]
        await first.close()
        await second.close()
        assert slots.holders == []

    asyncio.run(scenario())


def test_power_on_waits_for_a_free_slot(make_device: MakeDevice) -> None:
    slots = Slots(1)
    first, second = make_device("first", slots), make_device("second", slots)

    async def scenario() -> None:
        await first.switch(True)
        turn = asyncio.create_task(second.switch(True))
        await asyncio.sleep(0.05)
        assert not turn.done()
        await first.switch(False)
        await turn
        assert second.outlet
        await first.close()
        await second.close()

    asyncio.run(scenario())


def test_failed_start_of_qemu_releases_the_slot(make_device: MakeDevice) -> None:
    slots = Slots(1, wait_s=0.1)
    device = make_device("device", slots, "--refuse")

    async def scenario() -> None:
        for _ in range(2):
            with pytest.raises(MachineError, match="could not set up host forwarding rule"):
                await device.switch(True)
        assert not device.outlet
        assert slots.holders == []
        await device.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("kind", "start", "end"),
    [
        (FaultKind.HANG, b"monitor: stop", b"monitor: cont"),
        (
            FaultKind.NETWORK_CUT,
            b'monitor: set_link {"name": "net0", "up": false}',
            b'monitor: set_link {"name": "net0", "up": true}',
        ),
    ],
)
def test_fault_starts_and_ends_on_running_device(
    make_device: MakeDevice, kind: FaultKind, start: bytes, end: bytes
) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.switch(True)
        await client.until(READY)
        await device.set_faults([Fault(kind=kind)])
        await client.until(start)
        await device.set_faults([])
        await client.until(end)
        await device.set_faults([Fault(kind=kind)])
        await client.until(start)
        await device.switch(False)
        await device.switch(True)
        await client.until(start)  # the fault stays until it is removed

    with_console(device, scenario)


def test_panic_sends_sysrq_on_serial_line(make_device: MakeDevice) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.switch(True)
        await client.until(READY)
        await device.set_faults([Fault(kind=FaultKind.PANIC, once=True)])
        await client.until(b'monitor: chardev-send-break {"id": "console"}')
        assert device.faults == []
        assert b"got c\n" in client.seen or (await client.until(b"got c\n")) is None

    with_console(device, scenario)


def test_console_text_starts_the_fault_once(make_device: MakeDevice) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.set_faults([Fault(kind=FaultKind.HANG, when="boot_id=fake", once=True)])
        await device.switch(True)
        await client.until(b"monitor: stop")
        assert len(device.faults) == 1
        await device.switch(False)
        assert device.faults == []
        await device.switch(True)
        await client.until(READY)
        client.send(b"hello")
        await client.until(b"got hello")
        assert b"monitor: stop" not in client.seen.rpartition(READY)[2]

    with_console(device, scenario)


def test_dead_device_has_power_but_no_output(make_device: MakeDevice) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.set_faults([Fault(kind=FaultKind.DEAD, once=True)])
        await device.switch(True)
        assert device.outlet
        assert not device.status()["running"]
        assert await client.stays_silent(0.3)
        await device.switch(False)
        await device.switch(True)
        await client.until(READY)

    with_console(device, scenario)


def test_flaky_device_is_dead_at_every_third_power_on(make_device: MakeDevice) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.switch(True)
        await device.set_faults([Fault(kind=FaultKind.DEAD, every=3)])
        await device.switch(False)
        runs = []
        for _ in range(6):
            await device.switch(True)
            runs.append(device.status()["running"])
            await device.switch(False)
        assert runs == [True, True, False, True, True, False]

    with_console(device, scenario)


def test_flaky_device_hangs_at_every_second_power_on(make_device: MakeDevice) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.switch(True)
        await client.until(READY)
        await device.set_faults([Fault(kind=FaultKind.HANG, every=2), Fault(kind=FaultKind.MUTE, every=3)])
        await device.switch(False)
        for fault in (False, True):
            await device.switch(True)
            await client.until(READY)
            if fault:
                await client.until(b"monitor: stop")
            await device.switch(False)
        assert client.seen.count(b"monitor: stop") == 1
        await device.switch(True)
        assert await client.stays_silent(0.3)

    with_console(device, scenario)


def test_mute_and_garbled_console_faults_affect_the_log(make_device: MakeDevice, tmp_path: Path) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.set_faults([Fault(kind=FaultKind.MUTE)])
        await device.switch(True)
        assert await client.stays_silent(0.3)
        assert (tmp_path / "device.log").read_bytes() == b""
        await device.set_faults([Fault(kind=FaultKind.GARBLED_CONSOLE)])
        client.send(b"x" * 1000)
        while len(client.seen) < 1000:
            client.seen += await client.reader.read(4096)
        assert 20 < 1000 - client.seen.count(b"x") < 300
        assert (tmp_path / "device.log").read_bytes() == client.seen

    with_console(device, scenario)


def test_slow_power_fault_delays_once(make_device: MakeDevice) -> None:
    device = make_device()

    async def scenario(client: Client) -> None:
        await device.set_faults([Fault(kind=FaultKind.SLOW_POWER, seconds=0.4, once=True)])
        begun = time.monotonic()
        await device.switch(True)
        assert time.monotonic() - begun >= 0.4
        await client.until(READY)
        assert device.faults == []

    with_console(device, scenario)


def test_devices_are_killed_with_their_bench(tmp_path: Path) -> None:
    program = f"""
import asyncio
from pathlib import Path
from wqlab_bench.emulated_device import EmulatedDevice
from wqlab_bench.capacity import Slots

async def run():
    device = EmulatedDevice("device", {FAKE_QEMU!r}, Path({str(tmp_path / "device.log")!r}), Slots(1))
    await device.switch(True)
    print(device._machine._process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(run())
"""
    bench = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert bench.stdout is not None
    child = int(bench.stdout.readline())
    os.kill(child, 0)
    bench.send_signal(signal.SIGKILL)
    bench.wait()
    state = Path(f"/proc/{child}/stat")
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
