"""Diagnosis of a kernel that crashes on a device with a crash kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wqlab_contracts.enums import ErrorKind, RunPurpose
from wqlab_contracts.specs import OwnSystem
from wqlab_worker.backends import crash_kernel
from wqlab_worker.backends.send_image import VariantImage
from wqlab_worker.backends.ssh import CommandResult
from wqlab_worker.backends.verify_boot import infrastructure_failure
from wqlab_worker.measure.device_interface import DeviceFailure

from .scripted_variant import MACHINE_CHECK, Scene, ScriptedSsh

CRASH_KERNEL_STARTS = b"""\
[    0.000000] Linux version 6.12.117 (wqlab@wqlab)\r
[    0.000000] Command line: console=ttynull nr_cpus=1 wqlab.crash_kernel\r
"""
CRASH_LOG = b"""\
[    7.000000] wqlab-crash-log begins\r
[    7.000100] [  120.000000] Kernel panic - not syncing: a crash that netconsole cannot send\r
[    7.000200] [  120.000100] Call Trace:\r
[    7.000300] [  120.000200]  flush_workqueue_prep_pwqs+0x1d6/0x200\r
[    7.000400] wqlab-crash-log ends\r
"""


CRASH_S = 60
NETCONSOLE = "+6665@192.0.2.11/eth0,6666@192.0.2.1/"


@pytest.fixture(params=[None, OwnSystem(timeout_s=3600)], ids=["golden-by-default", "own-system"])
def crashing(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Yield a running variant that has a crash kernel and whose console is netconsole."""
    scene = Scene(netconsole=NETCONSOLE, variant_timeout_s=CRASH_S, own_system=request.param)
    scene.device._has_crash_kernel = True
    scene.strategy.tap.expect_crash_kernel()
    yield scene
    scene.strategy.tap.stop()


def test_a_crash_that_only_the_crash_kernel_reports_is_the_kernels_failure(crashing: Scene) -> None:
    strategy = crashing.strategy
    strategy.on_wait[CRASH_S] = lambda: strategy.console.say(CRASH_KERNEL_STARTS + CRASH_LOG)
    kind, summary = crashing.diagnose_boot(None)
    assert kind is ErrorKind.KERNEL
    assert summary == "panic: Kernel panic - not syncing: a crash that netconsole cannot send"


def test_a_crash_kernel_that_prints_no_log_shows_that_the_kernel_crashed(crashing: Scene) -> None:
    strategy = crashing.strategy
    strategy.on_wait[CRASH_S] = lambda: strategy.console.say(CRASH_KERNEL_STARTS)
    kind, summary = crashing.diagnose_boot(None)
    assert kind is ErrorKind.KERNEL
    assert summary == (
        "panic: the kernel crashed during `measure`; its crash kernel started, but printed no report of the crash"
    )


def test_a_report_that_was_cut_off_is_read_whole_from_the_crash_log(crashing: Scene) -> None:
    strategy = crashing.strategy
    strategy.console.say(b"[  120.000000] Kernel panic - not syncing: a crash that netconsole cannot send\r\n")
    strategy.on_wait[CRASH_S] = lambda: strategy.console.say(CRASH_KERNEL_STARTS + CRASH_LOG)
    assert strategy.wait(lambda: strategy.tap.fatal is not None, 0)
    with pytest.raises(DeviceFailure) as caught:
        crashing.device.script("measure", {}, 0.05)
    assert [frame.function for frame in caught.value.failure.stack] == ["flush_workqueue_prep_pwqs"]


def test_a_variant_that_crashes_while_its_crash_kernel_is_sent_is_the_kernels_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(crash_kernel_mib=256)
    scene.strategy.console.say(MACHINE_CHECK.replace(b"Fatal machine check", b"a crash"))

    def load(*_: object) -> str | None:
        assert scene.strategy.wait(lambda: scene.strategy.tap.fatal is not None, 0)
        raise infrastructure_failure("the kernel image did not arrive whole on the device", of_variant=True)

    monkeypatch.setattr(crash_kernel, "load", load)
    with pytest.raises(DeviceFailure) as caught:
        scene.device._load_crash_kernel()
    scene.strategy.tap.stop()
    assert caught.value.failure.kind is ErrorKind.KERNEL


def load_crash_kernel(monkeypatch: pytest.MonkeyPatch, reason: str | None, purpose: RunPurpose) -> dict[str, str]:
    """Return the facts of a boot whose crash kernel is not loaded for `reason`; None: it is."""
    scene = Scene(crash_kernel_mib=256, purpose=purpose)
    scene.strategy.tap.stop()
    loaded: list[VariantImage] = []

    def load(_: object, image: VariantImage) -> str | None:
        loaded.append(image)
        return reason

    monkeypatch.setattr(crash_kernel, "load", load)
    facts = scene.device._load_crash_kernel()
    assert loaded == [scene.baseline]
    return facts


def test_the_crash_kernel_is_the_baselines_and_a_fact_of_the_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_crash_kernel(monkeypatch, None, RunPurpose.MEASURE) == {"crash kernel": "the baseline's, in 256 MiB"}


def test_a_boot_without_its_crash_kernel_is_measured_but_fails_a_health_check(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "the running kernel reserved no memory for a crash kernel"
    facts = load_crash_kernel(monkeypatch, reason, RunPurpose.MEASURE)
    assert facts == {"crash kernel": f"not loaded: {reason}"}
    with pytest.raises(DeviceFailure) as caught:
        load_crash_kernel(monkeypatch, reason, RunPurpose.HEALTH_CHECK)
    assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "CONFIG_CRASH_DUMP" in caught.value.failure.advice


@pytest.mark.parametrize("loaded", [False, True])
def test_a_kernel_that_pretends_its_crash_kernel_started_hides_no_report(loaded: bool) -> None:
    scene = Scene(ssh=ScriptedSsh([], script=CommandResult(0, b"", b"")))
    if loaded:
        scene.strategy.tap.expect_crash_kernel()
    oops = b"[    9.0] BUG: kernel NULL pointer dereference, address: 0000000000000008\r\n---[ end trace 0 ]---\r\n"
    try:
        scene.strategy.console.say(CRASH_KERNEL_STARTS + oops)
        assert scene.strategy.wait(lambda: scene.strategy.tap.offset > len(CRASH_KERNEL_STARTS), 0)
        scene.strategy.wait(lambda: False, 0)
        with pytest.raises(DeviceFailure) as caught:
            scene.ssh.systems = [None]
            scene.device.script("measure", {}, 0.05)
        assert caught.value.failure.kind is ErrorKind.KERNEL
        assert ("kernel NULL pointer" in caught.value.failure.summary) is not loaded
    finally:
        scene.strategy.tap.stop()
