"""The page that adds a machine, in Chromium on the real API; a test takes the part of the lab's worker."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from server.tests.support.scene import Scene
from wqlab_contracts.enums import Outcome, StepOutcome
from wqlab_contracts.messages.device_trials import (
    TrialFile,
    TrialProgress,
    TrialResult,
    TrialStep,
    TrialStepResult,
)
from wqlab_server.lab import trials
from wqlab_server.models import Lab
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction

from .conftest import MakePerson

pytestmark = pytest.mark.scenario

TEXTS = {
    TrialStep.CONSOLE: "192.0.2.5:7002 is open",
    TrialStep.POWER_OFF: "the switch answered in 0.5 s",
    TrialStep.POWER_ON: "first text on the console 20.0 s after power on",
    TrialStep.GOLDEN: "up 129.3 s after power on",
    TrialStep.ECHO: "the console answers to a line feed",
    TrialStep.SSH: "root may log in at 192.0.2.41:22, and it is the machine on the console",
    TrialStep.MACHINE: "ACME R740: 2 sockets, 1 L3 each with 40 cores, 2 threads per core, 2 NUMA nodes, smt_last",
    TrialStep.KEXEC: "the kernel was up 42.3 s after `kexec -l`, and answers by SSH",
    TrialStep.RESET: "silent without power; first text 20.1 s after power on, another boot up 131.0 s after power on",
}
FIX = "The firmware got no boot file: check DHCP, TFTP, the cable and the boot order."


def step(name: TrialStep) -> TrialStepResult:
    return TrialStepResult(step=name, outcome=StepOutcome.OK, at=datetime.now(UTC), text=TEXTS[name])


class Worker:
    """The lab's worker, for one trial."""

    def __init__(self, sessions: SessionFactory, settings: Settings, trial_id: int) -> None:
        self._sessions, self._id = sessions, trial_id
        with transaction(sessions) as session:
            _, self._fence = trials.claim(session, trial_id, "w/1", settings, None)

    def report(self, doing: str, ended: Sequence[TrialStep]) -> None:
        with transaction(self._sessions) as session:
            steps = [step(each) for each in ended]
            trials.progress(session, self._id, TrialProgress(fence=self._fence, doing=doing, steps=steps))

    def finish(self, result: TrialResult) -> None:
        with transaction(self._sessions) as session:
            trials.finish(session, self._id, self._fence, result)


def failed() -> TrialResult:
    no_boot = TrialStepResult(
        step=TrialStep.GOLDEN,
        outcome=StepOutcome.FAILED,
        at=datetime.now(UTC),
        text="no ready line in 300 s, though 2040 bytes came on the console",
        fix=FIX,
        console=">>Start PXE over IPv4.\nPXE-E18: Server response timeout.\n",
    )
    order = list(TrialStep)
    later = order[order.index(TrialStep.GOLDEN) + 1 :]
    skipped = [
        TrialStepResult(step=each, outcome=StepOutcome.SKIPPED, at=datetime.now(UTC), text="needs the golden system")
        for each in later
    ]
    return TrialResult(outcome=Outcome.FAILED, steps=[*map(step, order[:3]), no_boot, *skipped])


PASSED = TrialResult(
    outcome=Outcome.PASSED,
    steps=[step(each) for each in TrialStep],
    files=[
        TrialFile(path="device-types/rack3-xeon.yaml", added="name: rack3-xeon\nunits:\n  - name: m1\n", written=True),
        TrialFile(path="device-types/addresses.env", added="# m1\nM1_BMC=192.0.2.40\n", written=True),
        TrialFile(path="labgrid/exporter.yaml.d/m1.yaml", added="m1:\n  NetworkSerialPort:\n", written=True),
    ],
)


def fill(page: Page) -> None:
    for label, text in {
        "Name": "m1",
        "BMC's address": "192.0.2.40",
        "Console server's address": "192.0.2.5",
        "TCP port": "7002",
        "Address of the golden system": "192.0.2.41",
    }.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("combobox", name="Device type").fill("rack3-xeon")


def trial_of(page: Page) -> int:
    page.wait_for_url(re.compile(r"/new-device\?trial="))
    return int(page.url.rpartition("=")[2])


@pytest.fixture
def lab_with_worker(sessions: SessionFactory, scene: Scene) -> None:
    scene.devices()
    with transaction(sessions) as session:
        session.merge(Lab(name="local", capacity=1))


@pytest.mark.usefixtures("lab_with_worker")
def test_a_machine_is_tried_corrected_and_added(
    person: MakePerson, sessions: SessionFactory, lab_settings: Settings, pictures: Path
) -> None:
    root = person("admin")
    page = root.page
    faults: list[str] = []
    root.open("/lab")
    page.get_by_role("link", name="Add a machine").click()
    fill(page)
    faults += root.faults_in_views("new-device-form", pictures)
    page.get_by_label("TCP port", exact=True).fill("70020")
    page.get_by_role("button", name="Try the machine").click()
    expect(page.get_by_text(re.compile("less than or equal to 65535")).first).to_be_visible()
    page.get_by_label("TCP port", exact=True).fill("7002")
    page.get_by_role("button", name="Try the machine").click()

    worker = Worker(sessions, lab_settings, trial_of(page))
    worker.report("waiting for text on the console", [TrialStep.CONSOLE, TrialStep.POWER_OFF])
    steps = page.get_by_role("list", name="Steps of the trial")
    expect(steps.get_by_text(TEXTS[TrialStep.POWER_OFF])).to_be_visible()
    expect(steps.get_by_text("waiting for text on the console")).to_be_visible()
    faults += root.faults_in_views("new-device-running", pictures)
    worker.finish(failed())
    expect(page.get_by_text(f"Fix: {FIX}")).to_be_visible()
    faults += root.faults_in_views("new-device-failed", pictures)

    page.get_by_role("button", name="Change and try again").click()
    expect(page.get_by_label("BMC's address")).to_have_value("192.0.2.40")
    page.get_by_role("button", name="Try the machine").click()
    worker = Worker(sessions, lab_settings, trial_of(page))
    worker.finish(PASSED)
    expect(page.get_by_text("labgrid/exporter.yaml.d/m1.yaml")).to_be_visible()
    expect(page.get_by_text("wqlab device check m1")).to_be_visible()
    faults += root.faults_in_views("new-device-added", pictures)
    assert not faults, "\n".join(faults)


@pytest.mark.usefixtures("lab_with_worker")
def test_a_machine_with_redfish_and_netconsole_is_described(
    person: MakePerson, sessions: SessionFactory, pictures: Path
) -> None:
    root = person("admin")
    page = root.page
    root.open("/new-device")
    switch = page.get_by_label("Switched by")
    switch.select_option(label="Chromebook's debug cable (dut-control)")
    expect(page.get_by_label("Architecture")).to_have_value("arm64")
    expect(page.get_by_label("Port of servod")).to_have_value("9999")
    switch.select_option(label="BMC (Redfish)")
    page.get_by_label("Architecture").select_option("x86_64")
    fill(page)
    expect(page.get_by_label("Console in the kernel")).to_be_visible()
    page.get_by_label("Netconsole", exact=True).fill("+6665@192.0.2.11/eth0")
    expect(page.get_by_label("Console in the kernel")).to_have_count(0)
    page.get_by_label("Host of wqlab-netconsole").fill("192.0.2.5")
    page.get_by_label("Certificate file").fill("/etc/wqlab/bmc.pem")
    page.get_by_label("Command that chooses the golden system").fill("grub-reboot wqlab")
    page.get_by_role("button", name="Try the machine").click()
    expect(page.get_by_label("Netconsole", exact=True)).to_have_attribute("aria-invalid", "true")
    faults = root.faults_in_views("new-device-redfish", pictures)
    page.get_by_label("Netconsole", exact=True).fill("+6665@192.0.2.11/eth0,6666@192.0.2.5/")
    page.get_by_role("button", name="Try the machine").click()
    trial = trial_of(page)
    with transaction(sessions) as session:
        device = trials.read(session, trial).device
    assert device.power.model_dump() == {
        "kind": "redfish", "host": "192.0.2.40", "port": 443, "user": "lab", "system": None,
        "password_file": "/etc/wqlab/redfish-password", "certificate": "/etc/wqlab/bmc.pem",
    }  # fmt: skip
    assert device.netconsole == "+6665@192.0.2.11/eth0,6666@192.0.2.5/"
    assert device.choose_golden == "grub-reboot wqlab"
    assert not faults, "\n".join(faults)


@pytest.mark.usefixtures("lab_with_worker")
def test_only_administrators_see_the_form(person: MakePerson) -> None:
    other = person("maintain")
    other.open("/lab")
    expect(other.page.get_by_role("link", name="Add a machine")).to_have_count(0)
    other.open("/new-device")
    expect(other.page.get_by_text("Only administrators can add machines")).to_be_visible()
