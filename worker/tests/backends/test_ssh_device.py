"""Diagnosis of a script that does not end and of a variant that does not come up.

The device is scripted, without power switch and labgrid; the console tap is real.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind
from wqlab_contracts.messages import Finding
from wqlab_contracts.specs import OwnSystem
from wqlab_worker.backends import answering_system, device_access
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.kexec import KexecStrategy
from wqlab_worker.measure.device_interface import DeviceFailure

from .scripted_variant import GOLDEN, GOLDEN_READY, LOST, MACHINE_CHECK, OURS, TOKEN, Scene


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.strategy.tap.stop()


def test_golden_system_answering_before_ready_line_is_a_restart(scene: Scene) -> None:
    kind, summary = scene.diagnose_boot(GOLDEN)
    assert kind is ErrorKind.KERNEL
    assert "the kernel under test is gone: the device restarted by itself during `measure`" in summary
    assert scene.restarted()


def test_firmware_output_does_not_hide_a_restart(scene: Scene) -> None:
    strategy = scene.strategy
    strategy.console.echo = b"BIOS: memory test\r\n"
    strategy.on_wait[scene.golden_timeout_s] = lambda: strategy.console.say(GOLDEN_READY)
    kind, _ = scene.diagnose_boot(None)
    assert kind is ErrorKind.KERNEL
    assert scene.restarted()


def test_a_restart_whose_ready_line_was_garbled_is_found_by_ssh(scene: Scene) -> None:
    scene.strategy.console.echo = b"BIOS: memory test\r\n"
    assert scene.diagnose_boot(None, GOLDEN)[0] is ErrorKind.KERNEL
    assert scene.restarted()


def test_live_console_of_the_variant_is_a_network_failure(scene: Scene) -> None:
    scene.strategy.console.echo = b"\r\n"
    kind, summary = scene.diagnose_boot(None, None)
    assert (kind, summary) == (
        ErrorKind.INFRASTRUCTURE,
        "the network connection to tiny-1 broke during `measure`; its console still answers",
    )
    assert scene.golden_timeout_s in scene.strategy.waited
    assert not scene.sink.of(Finding)


@pytest.mark.parametrize("systems", [(OURS,), (None, OURS)])
def test_broken_connection_to_the_variant_is_infrastructure(scene: Scene, systems: tuple[str | None, ...]) -> None:
    scene.strategy.console.echo = b"\r\n"
    kind, summary = scene.diagnose_boot(*systems)
    assert kind is ErrorKind.INFRASTRUCTURE
    assert "though the device answers again" in summary


def test_script_timeout_with_live_variant_is_infrastructure(scene: Scene) -> None:
    scene.ssh.script = None
    kind, summary = scene.diagnose_boot(OURS)
    assert kind is ErrorKind.INFRASTRUCTURE
    assert "did not end" in summary


def test_restart_while_listing_blocked_tasks_is_detected(scene: Scene) -> None:
    scene.ssh.script = None
    tap = scene.strategy.tap

    def restart() -> None:
        scene.strategy.console.say(GOLDEN_READY)
        assert scene.strategy.wait(lambda: tap.ready is not None, 0)

    scene.ssh.meanwhile = restart
    assert scene.diagnose_boot(OURS)[0] is ErrorKind.KERNEL
    assert scene.restarted()


def test_a_silent_device_is_a_hang(scene: Scene) -> None:
    kind, summary = scene.diagnose_boot(None)
    assert kind is ErrorKind.KERNEL
    assert "no answer by SSH and no console output" in summary
    assert scene.golden_timeout_s not in scene.strategy.waited


def test_silence_on_a_console_without_input_is_not_blamed_on_the_kernel_alone() -> None:
    """Its console and SSH need the same network."""
    scene = Scene(netconsole="+6665@192.0.2.11/eth0,6666@192.0.2.1/")
    scene.strategy.console.echo = b"\r\n"
    scene.ssh.systems = [None]
    try:
        with pytest.raises(DeviceFailure) as caught:
            scene.device.script("measure", {}, 0.05)
    finally:
        scene.strategy.tap.stop()
    failure = caught.value.failure
    assert (failure.kind, failure.counts_against_arm) == (ErrorKind.INFRASTRUCTURE, True)
    assert "the network of tiny-1 is down" in failure.summary
    assert scene.strategy.console.bytes.empty(), "nothing was typed"


OWN_SYSTEM = "BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro quiet\n"


@pytest.mark.parametrize("netconsole", [None, "+6665@192.0.2.11/eth0,6666@192.0.2.1/"])
def test_a_restart_into_the_own_system_is_the_kernels_though_it_starts_slowly(
    netconsole: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither firmware nor own system say anything on netconsole; on a serial port the firmware does."""
    monkeypatch.setattr(answering_system, "PAUSE_S", 0.01)
    scene = Scene(netconsole=netconsole, own_system=OwnSystem(timeout_s=3600))
    scene.strategy.console.echo = b"BIOS: memory test\r\n"
    try:
        kind, _ = scene.diagnose_boot(None, None, None, OWN_SYSTEM)
        assert kind is ErrorKind.KERNEL
        assert scene.restarted()
    finally:
        scene.strategy.tap.stop()


# --- a variant that does not come up --------------------------------------------------------------------------------


@pytest.fixture
def jumped(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> KexecStrategy:
    """A strategy right after the jump, without labgrid's drivers."""
    monkeypatch.setattr(device_access, "QUIET_S", 0.02)
    scene.ssh.asked = ["the jump"]
    strategy = object.__new__(KexecStrategy)
    strategy.tap, strategy.wakeup, strategy.ssh = scene.strategy.tap, scene.strategy.wakeup, scene.ssh
    strategy.token, strategy.cancel, strategy.place_lost = TOKEN, Stop(), lambda: None
    strategy.device, strategy.jumped = scene.device._job.device, True
    return strategy


def failure_of(strategy: KexecStrategy, timeout_s: float = 0.05) -> tuple[ErrorKind, str]:
    with pytest.raises(DeviceFailure) as caught:
        strategy.await_variant(timeout_s)
    return caught.value.failure.kind, caught.value.failure.summary


@pytest.mark.parametrize("golden", [None, GOLDEN])
def test_variant_that_does_not_come_up_is_a_hang(scene: Scene, jumped: KexecStrategy, golden: str | None) -> None:
    """A golden system that still answers is not the variant."""
    scene.ssh.systems = [golden] * 100
    said = "hang: the variant did not come up in 0.05 s; not one byte came on the console after the jump"
    assert failure_of(jumped) == (ErrorKind.KERNEL, said)
    [finding] = scene.sink.of(Finding)
    assert (finding.kind, finding.fatal, finding.boot.arm) == (FindingKind.HANG, True, Arm.CANDIDATE)


def test_variant_with_console_output_but_no_ssh_is_a_hang(
    scene: Scene, jumped: KexecStrategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        scene.strategy.tap.feed(b"[    0.000000] Linux version 6.12.1\r\n")
        return "connection refused"

    monkeypatch.setattr(scene.ssh, "connect", refuse)
    assert failure_of(jumped) == (ErrorKind.KERNEL, "hang: the variant did not come up in 0.05 s")


def test_golden_ready_line_instead_of_variant_is_a_restart(scene: Scene, jumped: KexecStrategy) -> None:
    scene.strategy.console.say(GOLDEN_READY)
    assert scene.strategy.wait(lambda: scene.strategy.tap.ready is not None, 0)
    kind, summary = failure_of(jumped, 3600)
    assert kind is ErrorKind.KERNEL
    assert "the variant rebooted by itself before its userland was ready" in summary


def test_a_variant_whose_ready_line_was_garbled_is_found_by_ssh(scene: Scene, jumped: KexecStrategy) -> None:
    scene.ssh.systems = [OURS]
    jumped.await_variant(3600)
    assert not scene.sink.of(Finding)


def test_a_machine_check_is_the_devices_failure_but_excuses_no_kernel(scene: Scene) -> None:
    """A kernel under test can print these lines itself, so they must not discard its block."""
    scene.ssh.script = LOST
    scene.strategy.console.say(MACHINE_CHECK)
    assert scene.strategy.wait(lambda: scene.strategy.tap.fatal is not None, 0)
    with pytest.raises(DeviceFailure) as caught:
        scene.device.script("measure", {}, 0.05)
    failure = caught.value.failure
    assert failure.kind is ErrorKind.INFRASTRUCTURE and caught.value.suspect
    assert failure.counts_against_arm
    assert failure.summary == (
        "the device's hardware reported an uncorrected error: Kernel panic - not syncing: Fatal machine check"
    )
    assert scene.sink.of(Finding) == []
