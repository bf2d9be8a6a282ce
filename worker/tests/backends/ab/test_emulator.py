"""Boots of `wqlab ab` in an emulator, with a small program in place of QEMU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootKey, DeviceFacts, Finding
from wqlab_worker.backends.ab.emulator import EmulatorAccess
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.backends.console_tap import Wakeup
from wqlab_worker.backends.send_image import VariantImage
from wqlab_worker.measure.device_interface import DeviceFailure

from ..conftest import RecordingSink

ROOT = Path(__file__).parents[4]
GUEST = [sys.executable, str(Path(__file__).parent / "fake_guest.py")]
KEY = BootKey(block=0, position=0, arm=Arm.CANDIDATE, attempt=0)
IMAGE = VariantImage(Path("/kernel"), "0" * 64)
PANIC = "[    1.000000] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n"

Boot = Callable[..., EmulatorAccess]


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def stop() -> Stop:
    return Stop()


@pytest.fixture
def access(sink: RecordingSink, stop: Stop) -> Iterator[Boot]:
    """Make an access whose emulator is this command."""
    made: list[EmulatorAccess] = []
    kind = load_data(ROOT).device_types["tiny"]
    device = DeviceFacts(
        name="qemu", device_type="tiny", lab="ab", arch=kind.arch, topology=kind.topology, boot=kind.boot, emulated=True
    )

    def make(*command: str) -> EmulatorAccess:
        made.append(
            EmulatorAccess(
                device, lambda *_: list(command), sink, stop, Wakeup(), keyfile=Path("/nowhere"), public_key="key"
            )
        )
        return made[-1]

    yield make
    for each in made:
        each.end_boot()
        each.close()


def failure_of(access: EmulatorAccess) -> DeviceFailure:
    with pytest.raises(DeviceFailure) as caught:
        access.boot_variant(KEY, IMAGE)
    return caught.value


def test_a_guest_that_restarts_during_its_boot_is_a_failure_of_its_kernel(access: Boot, sink: RecordingSink) -> None:
    failure = failure_of(access(*GUEST, "Linux version 6.12.1\r\n", "exit")).failure
    assert failure.kind is ErrorKind.KERNEL and "rebooted by itself" in failure.summary
    [finding] = sink.of(Finding)
    assert (finding.kind, finding.boot) == (FindingKind.HANG, KEY)


def test_a_panic_on_the_console_ends_the_boot(access: Boot) -> None:
    failure = failure_of(access(*GUEST, PANIC, "stay")).failure
    assert failure.kind is ErrorKind.KERNEL and "Unable to mount root fs" in failure.summary


def test_a_killed_emulator_is_no_failure_of_the_kernel(access: Boot, sink: RecordingSink) -> None:
    failure = failure_of(access(*GUEST, "Linux version 6.12.1\r\n", "crash")).failure
    assert failure.kind is ErrorKind.INFRASTRUCTURE and not failure.of_variant
    assert "killed by signal 9: qemu: cannot allocate memory" in failure.summary
    assert sink.of(Finding) == []


@pytest.mark.parametrize(
    "command", [["/nowhere/qemu"], [sys.executable, "-c", "raise SystemExit('no such CPU model')"]]
)
def test_an_emulator_that_does_not_start_is_named(access: Boot, command: list[str]) -> None:
    failure = failure_of(access(*command)).failure
    assert failure.kind is ErrorKind.INFRASTRUCTURE and "the emulator does not start" in failure.summary


def test_a_cancellation_ends_the_boot(access: Boot, stop: Stop) -> None:
    stop.request(canceled("interrupted"))
    assert failure_of(access(*GUEST, "Linux version 6.12.1\r\n", "stay")).failure.kind is ErrorKind.CANCELED


def test_all_that_a_guest_printed_belongs_to_its_boot(access: Boot, sink: RecordingSink) -> None:
    """Output that is still on its way when the emulator is killed is recorded before the boot ends."""
    text = "line\r\n" * 20_000
    emulator = access(*GUEST, text + PANIC, "stay")
    failure_of(emulator)
    emulator.end_boot()
    assert emulator.tap.offset >= len(text)
    assert emulator.tap.bytes_while_off == 0


def test_a_line_feed_is_typed_on_the_console(access: Boot) -> None:
    emulator = access(*GUEST, PANIC, "echo")
    failure_of(emulator)
    before = emulator.tap.offset
    emulator.type_line()
    assert emulator.wakeup.wait_for(lambda: emulator.tap.offset > before, 60)
