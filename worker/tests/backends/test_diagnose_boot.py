"""A console that shows nothing of a device that came up."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from wqlab_contracts.enums import Arm, DeviceStep, ErrorKind
from wqlab_contracts.messages import BootKey
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.diagnose_boot import golden_not_up, no_ssh_answer, unusable_console

from .conftest import RecordingSink

TEXT = b"[    0.000000] Linux version 7.1.0 (lab@build)\r\n" * 10


def tap_after(data: bytes) -> ConsoleTap:
    """Return the tap of a boot whose console had these bytes."""
    tap = ConsoleTap(SimpleNamespace(), RecordingSink(), Wakeup())
    tap.begin_boot(BootKey(block=0, position=0, arm=Arm.BASELINE, attempt=0))
    if data:
        tap.feed(data)
    return tap


@pytest.mark.parametrize(
    ("data", "says", "advice"),
    [
        (b"", "is mute: the device answers by SSH, but not one byte came", "cable and console server port"),
        (random.Random(1).randbytes(2000), "is garbled: 2000 bytes came, and they are not text", "Check the speed"),
    ],
)
def test_a_boot_with_an_unusable_console_is_no_clean_boot(data: bytes, says: str, advice: str) -> None:
    failure = unusable_console(tap_after(data), "xeon-8380-1")
    assert failure and failure.failure.kind is ErrorKind.INFRASTRUCTURE and failure.suspect
    assert f"the console of xeon-8380-1 {says}" in failure.failure.summary
    assert advice in failure.failure.advice
    assert failure.stage is DeviceStep.CONSOLE


def test_a_readable_console_is_usable() -> None:
    assert unusable_console(tap_after(TEXT), "xeon-8380-1") is None


def test_a_system_of_someone_else_is_named_with_what_ssh_said() -> None:
    failure = golden_not_up(tap_after(TEXT + b"build7 login: "), 900, "root@xeon: Permission denied (publickey).")
    assert failure.failure.summary == (
        f"the golden system did not come up in 900 s: {len(TEXT) + 14} bytes came on the console; another system asks "
        "for a login: the device booted from a disk, or from another server; SSH said: root@xeon: Permission denied "
        "(publickey)."
    )
    assert failure.failure.excerpt.endswith("build7 login:")


def test_a_variant_that_lost_its_card_is_named() -> None:
    lost = (
        b"network: no Ethernet interface found in 30 s: not plugged in, or this kernel lacks its driver or firmware\r\n"
    )
    failure = no_ssh_answer(
        tap_after(TEXT + lost), "the variant", "192.0.2.11", "no route", of_variant=True, stage=None
    )
    assert "Its console says: network: no Ethernet interface found" in failure.failure.summary
    assert "does not survive kexec" in failure.failure.advice
    assert failure.failure.of_variant and failure.suspect
