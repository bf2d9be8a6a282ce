"""Boots on a machine by kexec, with a small program in place of ssh."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from wqlab_contracts.enums import Arm, ErrorKind
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootKey, DeviceFacts
from wqlab_worker.backends.ab import machine
from wqlab_worker.backends.ab.machine import Machine, MachineAccess
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.backends.console_tap import Wakeup
from wqlab_worker.backends.send_image import VariantImage
from wqlab_worker.backends.ssh import SshServer
from wqlab_worker.measure.device_interface import DeviceFailure

from ..conftest import RecordingSink

ROOT = Path(__file__).parents[4]
KEYS = [BootKey(block=0, position=n, arm=arm, attempt=0) for n, arm in enumerate((Arm.BASELINE, Arm.CANDIDATE))]


PANIC = """\
[    1.234567] Kernel panic - not syncing: Fatal exception
[    1.234599] CPU: 0 UID: 0 PID: 1 Comm: init Not tainted 6.12.1 #1
[    1.234612] ---[ end Kernel panic - not syncing: Fatal exception ]---"""


@dataclass
class Rehearsal:
    """A machine that is a folder, and the access to it."""

    folder: Path
    access: MachineAccess
    image: VariantImage
    stop: Stop
    said: list[str] = field(default_factory=list)

    def set(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def commands(self) -> list[str]:
        return (self.folder / "commands").read_text().splitlines()

    def failure(self, key: BootKey = KEYS[0]) -> DeviceFailure:
        with pytest.raises(DeviceFailure) as caught:
            self.access.boot_variant(key, self.image)
        return caught.value


@pytest.fixture
def rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rehearsal]:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / "fake_ssh.py"} "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "machine"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE_MACHINE", str(folder))
    for name, seconds in (("QUIET_S", 0.05), ("OWN_EVERY_S", 0.0)):
        monkeypatch.setattr(machine, name, seconds)
    kind = load_data(ROOT).device_types["tiny"]
    device = DeviceFacts(
        name="ryzen",
        device_type="ryzen",
        lab="ab",
        arch=kind.arch,
        topology=kind.topology,
        boot=kind.boot,
        emulated=False,
    )
    files = {arm: tmp_path / arm.value for arm in (Arm.BASELINE, Arm.CANDIDATE)}
    for path in files.values():
        path.write_bytes(b"initramfs")
    (tmp_path / "image").write_bytes(b"kernel")
    own = SshServer("machine", 0, "root", "", user_config=True, new_host_key=False)
    lab = SshServer("machine", 0, "root", str(tmp_path / "key"), user_config=True)
    said: list[str] = []
    stop = Stop()
    access = MachineAccess(
        Machine("ryzen", own, lab, has_systemd=True, restart_s=60),
        device, files, b"", RecordingSink(), stop, Wakeup(), public_key="blob", say=said.append,
    )  # fmt: skip
    found = Rehearsal(folder, access, VariantImage(tmp_path / "image", "0" * 64), stop, said)
    found.set(running="own", after="lab lab own", watchdog="yes")
    yield found
    access.close()


def test_the_first_kernel_starts_from_the_distribution_and_the_next_from_there(rehearsal: Rehearsal) -> None:
    access = rehearsal.access
    access.boot_variant(KEYS[0], rehearsal.image)
    assert access.tap.contains("Linux version 6.12.1")
    first = rehearsal.commands()
    assert "own: systemctl kexec" in first and any("/dev/shm/wqlab.abc123/ld.so" in each for each in first)
    token = access.token
    access.end_boot()
    access.boot_variant(KEYS[1], rehearsal.image)
    second = rehearsal.commands()[len(first) :]
    assert not any(each.startswith("own:") for each in second), "the distribution is not needed in between"
    assert any(each.startswith("lab: kexec -a -l /lab/variant") for each in second)
    assert access.token != token and f"wqlab.token={access.token}" in (rehearsal.folder / "command_line").read_text()
    assert {"panic=1", "wqlab.watchdog=1"} <= set((rehearsal.folder / "command_line").read_text().split())
    access.end_boot()
    access.restart_into_distribution()
    assert (rehearsal.folder / "running").read_text() == "own"
    assert rehearsal.said[-1] == "ryzen: its own system runs again"


def test_a_machine_that_was_not_left_is_not_restarted(rehearsal: Rehearsal) -> None:
    rehearsal.access.restart_into_distribution()
    assert not (rehearsal.folder / "commands").exists()


def test_distribution_that_lets_in_the_key_of_its_user_is_not_restarted(rehearsal: Rehearsal) -> None:
    """SSH offers the keys of the user's configuration beside the lab's key."""
    access = rehearsal.access
    access.boot_variant(KEYS[0], rehearsal.image)
    rehearsal.set(running="own", lets_in="yes", crash_log=PANIC)
    assert access.running_command_line(lambda: False, 5, 5) == "root=/dev/sda2 quiet\n"
    assert access.tap.fatal is not None, "its crash log is read"
    access.end_boot()
    access.restart_into_distribution()
    assert not any("reboot" in each for each in rehearsal.commands())
    assert rehearsal.said[-1] == "ryzen: its own system runs again"


def test_kernel_that_starts_after_a_cancellation_is_restarted_too(rehearsal: Rehearsal) -> None:
    rehearsal.access.boot_variant(KEYS[0], rehearsal.image)
    rehearsal.set(running="none", after="own")

    def say(text: str) -> None:
        rehearsal.said.append(text)
        if "waiting" in text:
            rehearsal.set(running="lab")

    rehearsal.access._say = say
    rehearsal.access.restart_into_distribution()
    assert rehearsal.said[-1] == "ryzen: its own system runs again"


def test_restart_into_the_distribution_is_a_failure_of_the_kernel(rehearsal: Rehearsal) -> None:
    """A panic restarts the machine before the kernel under test answers."""
    rehearsal.set(after="own")
    failure = rehearsal.failure().failure
    assert failure.kind is ErrorKind.KERNEL and "rebooted by itself" in failure.summary


def test_panic_is_read_from_the_memory_of_the_firmware(rehearsal: Rehearsal) -> None:
    """The kernel panics before its network is up, and the distribution has its log."""
    rehearsal.set(after="own", crash_log=PANIC)
    failure = rehearsal.failure().failure
    assert failure.kind is ErrorKind.KERNEL
    assert failure.summary == "panic: Kernel panic - not syncing: Fatal exception"


def test_crash_during_a_script_is_read_there_too(rehearsal: Rehearsal) -> None:
    access = rehearsal.access
    access.boot_variant(KEYS[0], rehearsal.image)
    rehearsal.set(running="own", crash_log=PANIC)
    assert access.running_command_line(lambda: False, 5, 5) == "root=/dev/sda2 quiet\n"
    assert access.tap.fatal is not None and "Fatal exception" in access.tap.fatal.title


def test_watchdog_runs_across_the_first_kexec(rehearsal: Rehearsal) -> None:
    object.__setattr__(rehearsal.access._machine, "watchdogs", ["iTCO_wdt"])
    rehearsal.set(armed="iTCO_wdt")
    rehearsal.access.boot_variant(KEYS[0], rehearsal.image)
    commands = rehearsal.commands()
    armed = commands.index("own: sh -s 300 iTCO_wdt")
    assert commands[armed + 1] == "own: systemctl kexec"
    assert len(rehearsal.said) == 1


def test_error_of_kexec_is_the_reason_of_the_failure(rehearsal: Rehearsal) -> None:
    rehearsal.set(kexec_refuses="kexec_file_load failed: Key was rejected by service")
    failure = rehearsal.failure().failure
    assert failure.kind is ErrorKind.INFRASTRUCTURE and "Key was rejected" in failure.summary
    rehearsal.access.restart_into_distribution()
    assert (rehearsal.folder / "running").read_text() == "own"
    assert rehearsal.said == [], "the machine was not left"


def test_run_waits_for_a_restart_by_hand_after_a_hang(rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    access = rehearsal.access
    access.boot_variant(KEYS[0], rehearsal.image)
    access.end_boot()
    rehearsal.set(running="none", watchdog="")
    access._has_watchdog = False

    def press(text: str) -> None:
        rehearsal.said.append(text)
        rehearsal.set(running="own", after="lab")

    monkeypatch.setattr(access, "_say", press)
    access.boot_variant(KEYS[1], rehearsal.image)
    assert [each for each in rehearsal.said if "press its button" in each]


def test_run_does_not_wait_for_a_machine_that_never_answered(rehearsal: Rehearsal) -> None:
    rehearsal.set(running="none")
    object.__setattr__(rehearsal.access._machine, "restart_s", 0)
    failure = rehearsal.failure()
    assert failure.failure.kind is ErrorKind.INFRASTRUCTURE and "does not answer by SSH" in failure.failure.summary
    assert rehearsal.said == []


def test_user_who_logged_in_since_a_restart_ends_the_run(rehearsal: Rehearsal) -> None:
    """The user of the command has agreed that the sessions in `accepted` end; the session of `later` is new."""
    accepted = [f"logged in: {each}, who loses their work" for each in ("root", "jane")]
    object.__setattr__(rehearsal.access._machine, "warnings", accepted)
    rehearsal.set(logins="login=jane")
    rehearsal.access.boot_variant(KEYS[0], rehearsal.image)
    later = "jane on pts/1"
    rehearsal.set(running="own", after="lab", logins=f"login={later}")
    rehearsal.access.end_boot()
    failure = rehearsal.failure(KEYS[1]).failure
    assert failure.kind is ErrorKind.INFRASTRUCTURE and f"logged in: {later}" in failure.summary
    assert (rehearsal.folder / "running").read_text() == "own"


def test_a_cancellation_leaves_the_distribution_alone(rehearsal: Rehearsal) -> None:
    rehearsal.stop.request(canceled("interrupted"))
    assert rehearsal.failure().failure.kind is ErrorKind.CANCELED
    assert (rehearsal.folder / "running").read_text() == "own"


@pytest.mark.parametrize(("watchdog", "said"), [("yes", "some minutes after a hang"), ("", "no watchdog runs")])
def test_user_is_told_once_whether_a_watchdog_runs(rehearsal: Rehearsal, watchdog: str, said: str) -> None:
    rehearsal.set(watchdog=watchdog)
    for key in KEYS:
        rehearsal.access.boot_variant(key, rehearsal.image)
        rehearsal.access.end_boot()
    assert [each for each in rehearsal.said if "watchdog" in each] == rehearsal.said
    assert len(rehearsal.said) == 1 and said in rehearsal.said[0]
