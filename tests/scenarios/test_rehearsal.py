"""Rehearsal machines: a machine of docs/hardware behind its own protocols is checked, measures, and is no hardware."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.addresses_file import read_addresses
from wqlab_contracts.enums import Arm, BootState, DeviceHealth, ExitCode, Outcome
from wqlab_contracts.new_devices.trial import TrialStep
from wqlab_lab.paths import LabPaths
from wqlab_lab.rehearse import rehearsal_lab, start

from .conftest import EXAMPLE, SERIES, Lab, one_start_at_a_time
from .processes import processes_of_lab

pytestmark = [pytest.mark.scenario, pytest.mark.device, pytest.mark.nightly, pytest.mark.timeout(7200)]

DEVICES = {
    "xeon": ("xeon-8380-1", "xeon-8380-2s"),
    "ryzen": ("ryzen-box-1", "ryzen-3900x-box"),
    "ssh-only": ("ssh-only-1", "ssh-only-server"),
    "dual-boot": ("dual-boot-1", "dual-boot-server"),
    "chromebook": ("chromebook-mt8183-1", "chromebook-mt8183"),
}
"""Machine -> device and device type."""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=list(DEVICES))
def machine(request: pytest.FixtureRequest) -> Iterator[tuple[str, Lab]]:
    """Start a lab with one rehearsal machine; yield the machine's name and the lab."""
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    paths = LabPaths(ROOT, Path(os.environ["WQLAB_CACHE"]), state)
    lab = rehearsal_lab(paths, print)
    own = lab.paths
    own.state.mkdir()
    patch = pytest.MonkeyPatch()
    patch.setenv("WQLAB_NOTICE", "")  # `start` sets it; other tests of this process must not see it
    try:
        with one_start_at_a_time():
            start(lab, paths, [request.param], pages=False)
        # The stand-in for dut-control, as for the lab's programs.
        environment = os.environ | {"PATH": f"{own.data.parent / 'bin'}:{os.environ['PATH']}", "NO_COLOR": "1"}
        environment |= {"WQLAB_URL": own.url, "WQLAB_TOKEN": own.token("admin")}
        environment["WQLAB_TREE"] = paths.golden_tree  # whose kernel `start` has built
        yield request.param, Lab(environment, own.data, "")
    finally:
        patch.undo()
        lab.stop()
        if keep := os.environ.get("WQLAB_KEEP_LOGS"):
            shutil.copytree(own.log, Path(keep) / own.state.name, dirs_exist_ok=True)
        left = processes_of_lab(own.state)
        lab.down()
        for folder in (state, own.state):
            shutil.rmtree(folder, ignore_errors=True)
    assert not left, f"the lab left processes behind: {left}"


def assert_no_hardware_evidence(report: dict[str, Any]) -> None:
    (target,) = report["targets"]
    assert target["emulated"]
    assert {each["evidence"] for each in target["comparisons"]} == {"mechanism", "none"}


def submit_study(lab: Lab, device_type: str) -> int:
    """Submit two settings of dm-crypt in one boot of the tree's kernel."""
    return lab.submit(
        *("--settings-only", "--target", f"dm-crypt-affinity@{device_type}", "--blocks", "1"),
        *("--param", "total_ios=96", "--scenario", "LOW"),
        *("--setting", "scope=system,strict=0", "--setting", "scope=cache,strict=1"),
    )


def test_a_machine_measures_the_real_kernel(machine: tuple[str, Lab]) -> None:
    """Boot once through BMC or PDU, firmware, GRUB and kexec. The health check before it boots the same way."""
    name, lab = machine
    device, device_type = DEVICES[name]
    report = lab.finish(submit_study(lab, device_type))
    assert_no_hardware_evidence(report)
    (run,) = (target["run_id"] for target in report["targets"])
    boots = [boot for boot in lab.client().run(run).boots if boot.valid]
    assert boots
    command_line = boots[0].cmdline or ""
    assert "wqlab.ip=" not in command_line, "the address came from DHCP"
    shown = lab.wqlab("devices", "show", device)
    assert "good" in shown


def test_a_device_check_is_green(machine: tuple[str, Lab]) -> None:
    name, lab = machine
    checked = lab.wqlab("device", "check", DEVICES[name][0])
    assert "scratch" in checked


SLOW_S = 150
"""`golden_timeout_s` under the fault `tftp-slow`, with which the golden system takes a quarter of an hour to load."""
FAULTS = {
    "dhcp-late": ("does not answer by SSH", "no address: no DHCP server answered"),
    "dhcp-address": ("does not answer by SSH", "192.0.2.77/24"),
    "dhcp-second": ("does not answer by SSH", "from 192.0.2.2"),
    "tftp-slow": (f"did not come up in {SLOW_S} s", "the boot loader was still loading the golden files"),
    # The emulated NVMe controller has no answer for a full disk: Linux reads a medium error.
    "disk-full": ("cannot be written", "The disk may be worn out, full"),
    "disk-renamed": ("does not exist: the disk is missing or was replaced", "nvme-QEMU_NVMe_Ctrl_REPLACED0001"),
    "clock-1970": ("the clock says", "not between 2020 and 2059"),
    "memory-error-fatal": ("the device's hardware reported an uncorrected error", "Fatal machine check"),
}
"""Fault -> texts of what the lab says (docs/hardware/faults.md). These need one or two boots each."""
ONLY = {"tftp-slow": "xeon"}
"""Fault -> the machine that is slow enough."""
IGNORED = {"xeon": "bmc-ignores", "ryzen": "pdu-ignores"}
"""Machine -> the fault of its power switch, which acknowledges commands and does nothing."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_and_the_device_comes_back(machine: tuple[str, Lab], fault: str) -> None:
    """The check of the release puts the device back."""
    name, lab = machine
    if name == "chromebook" and fault in {"disk-renamed", "memory-error-fatal"}:
        pytest.skip("the SD card has a fixed serial number, and arm64 no machine check that QEMU injects")
    if ONLY.get(fault, name) != name:
        pytest.skip(f"a fault of {ONLY[fault]}")
    device = DEVICES[name][0]
    folder = lab.data.parent / name
    spec = lab.data / "device-types" / f"{DEVICES[name][1]}.yaml"
    declared = spec.read_text()
    if fault == "tftp-slow":
        spec.write_text(re.sub(r"golden_timeout_s: \d+", f"golden_timeout_s: {SLOW_S}", declared))
    set_fault(folder, fault)  # starts a program: the server has read the file again by then
    try:
        said = lab.wqlab("device", "check", device, codes=(4,))
        shown = lab.wqlab("devices", "show", device)
    finally:
        set_fault(folder)
        spec.write_text(declared)
    lab.wqlab("devices", "release", device)
    health = checked_health(lab, device)
    assert "infrastructure: " in said
    for text in FAULTS[fault]:
        assert text in " ".join(said.split())
    assert "quarantined" in shown
    assert health is DeviceHealth.GOOD


def test_a_power_switch_that_ignores_commands_is_named(machine: tuple[str, Lab]) -> None:
    """The fault begins in a boot of a check, so the next power cycle leaves the old system running.

    The device is suspect then, and comes back by the health check that follows.
    """
    name, lab = machine
    if name not in IGNORED:
        pytest.skip("its power switch has no such fault")
    device, folder = DEVICES[name][0], lab.data.parent / name
    check = ["wqlab", "device", "check", device]
    with subprocess.Popen(check, env=lab.environment, stdout=subprocess.PIPE, text=True) as checking:
        wait_for_measurement(lab, device)
        set_fault(folder, IGNORED[name])
        try:
            said, _ = checking.communicate()
        finally:
            set_fault(folder)
    assert checking.returncode == ExitCode.INFRASTRUCTURE
    assert "infrastructure: " in said and "the device was never off" in " ".join(said.split())
    assert checked_health(lab, device) is DeviceHealth.GOOD


def wait_for_measurement(lab: Lab, device: str) -> None:
    """Wait until a boot of the device measures."""
    client = lab.client()
    while True:
        lease = client.device(device).lease
        boots = client.run(lease.run_id).boots if lease is not None else []
        if boots and boots[-1].state is BootState.MEASURING:
            return
        time.sleep(1)  # the boots of a check have no event for clients


SURVIVED = {
    "bmc-reboots": "",
    "spanning-tree": "",
    "console-drops": "",
    "memory-error": "lines on the console, the first: ",
}
"""Fault -> what the fact `hardware errors` of a boot says; these end no boot."""


@pytest.mark.parametrize("fault", SURVIVED)
def test_a_fault_that_ends_no_boot_is_recorded_at_most(machine: tuple[str, Lab], fault: str) -> None:
    name, lab = machine
    if fault == "memory-error" and name == "chromebook":
        pytest.skip("arm64 has no machine check that QEMU injects")
    folder = lab.data.parent / name
    set_fault(folder, fault)
    try:
        report = lab.finish(submit_study(lab, DEVICES[name][1]))
    finally:
        set_fault(folder)
    run = lab.client().run(report["targets"][0]["run_id"])
    boots = [boot for boot in run.boots if boot.valid]
    assert boots
    assert SURVIVED[fault] in boots[0].environment.get("hardware errors", "")


def checked_health(lab: Lab, device: str) -> DeviceHealth:
    """Return the health that a device gets by the check that its release or its failure ordered."""
    while (health := lab.client().device(device).health) in {DeviceHealth.UNKNOWN, DeviceHealth.SUSPECT}:
        time.sleep(2)  # the end of a health check has no event for clients
    return health


def set_fault(folder: Path, *names: str) -> None:
    """Give a rehearsal machine these faults, as a maintainer does."""
    subprocess.run(["wqlab-rehearsal", "fault", str(folder), *names], check=True)


def test_a_series_is_judged_by_counts_only(machine: tuple[str, Lab]) -> None:
    name, lab = machine
    target = f"xfs-fsync@{DEVICES[name][1]}"
    report = lab.finish(lab.submit("--mbox", str(EXAMPLE), "--target", target, "--blocks", "2"))
    assert_no_hardware_evidence(report)
    # Kernels for arm64 inline the locks that the plan counts (docs/plans/xfs-fsync.md).
    expected = "unsupported" if name == "chromebook" else "improvement"
    assert report["targets"][0]["verdict"] == expected


def test_a_crash_that_netconsole_cannot_send_is_read_from_the_crash_kernel(machine: tuple[str, Lab]) -> None:
    name, lab = machine
    if name not in {"ssh-only", "dual-boot"}:
        pytest.skip("its console is no netconsole")
    series = str(SERIES / "panics-without-netconsole.mbox")
    submission = lab.submit("--mbox", series, "--target", f"xfs-fsync@{DEVICES[name][1]}", "--blocks", "1")
    report = lab.finish(submission, codes=(ExitCode.SERIES_FAILED,))
    failure = report["submission"]["failure"]
    assert "a crash that netconsole cannot send" in failure["summary"]
    assert "flush_workqueue_prep_pwqs" in {frame["function"] for frame in failure["stack"]}
    client, run = lab.client(), report["targets"][0]["run_id"]
    candidates = [boot for boot in client.run(run).boots if boot.arm is Arm.CANDIDATE]
    baselines = [boot for boot in client.run(run).boots if boot.arm is Arm.BASELINE]
    assert candidates and any(boot.outcome is Outcome.PASSED for boot in baselines)
    for boot in candidates:
        console = lab.wqlab("console", str(run), "--boot", str(boot.id))
        before, _, log = console.partition("wqlab-crash-log begins")
        assert "a crash that netconsole cannot send" in log
        assert "a crash that netconsole cannot send" not in before


def common_answers(known: Mapping[str, str], prefix: str) -> dict[str, str]:
    names = ("CONSOLE_HOST", "CONSOLE_PORT", "SSH_HOST", "SSH_PORT", "SCRATCH")
    return {name.lower(): known[f"{prefix}_{name}"] for name in names}


def answers_of_xeon(known: Mapping[str, str]) -> dict[str, str]:
    own = {key.removeprefix("XEON_8380_1_"): value for key, value in known.items()}
    return common_answers(known, "XEON_8380_1") | {
        "power": "ipmi", "bmc": own["BMC"], "bmc_port": own["BMC_PORT"], "bmc_user": own["BMC_USER"],
        "bmc_cipher": own["BMC_CIPHER"], "bmc_password_file": own["BMC_PASSWORD_FILE"], "console_device": "ttyS1",
    }  # fmt: skip


def answers_of_ssh_only(known: Mapping[str, str], prefix: str = "SSH_ONLY_1") -> dict[str, str]:
    own = {key.removeprefix(f"{prefix}_"): value for key, value in known.items()}
    host, _, port = own["BMC"].removeprefix("https://").partition(":")
    return common_answers(known, prefix) | {
        "power": "redfish", "bmc": host, "bmc_port": port, "bmc_user": own["BMC_USER"],
        "bmc_password_file": own["BMC_PASSWORD_FILE"], "bmc_certificate": own["BMC_CERTIFICATE"],
        "netconsole": f"+6665@{own['ADDRESS']}/eth0,6666@{own['NETCONSOLE_HOST']}/",
    }  # fmt: skip


def answers_of_dual_boot(known: Mapping[str, str]) -> dict[str, str]:
    return answers_of_ssh_only(known, "DUAL_BOOT_1") | {"choose_golden": "grub-reboot wqlab"}


def answers_of_ryzen(known: Mapping[str, str]) -> dict[str, str]:
    own = {key.removeprefix("RYZEN_BOX_1_"): value for key, value in known.items()}
    host, _, port = own["PDU"].partition(":")
    return common_answers(known, "RYZEN_BOX_1") | {
        "power": "pdu", "pdu_model": "apc", "pdu": host, "pdu_port": port, "pdu_outlet": "3",
        "console_protocol": "rfc2217",
    }  # fmt: skip


def answers_of_chromebook(known: Mapping[str, str]) -> dict[str, str]:
    own = {key.removeprefix("CHROMEBOOK_MT8183_1_"): value for key, value in known.items()}
    return common_answers(known, "CHROMEBOOK_MT8183_1") | {
        "power": "debug_cable", "servo_port": own["SERVOD_PORT"], "arch": "arm64", "console_device": "ttyAMA0",
    }  # fmt: skip


ANSWERS: Mapping[str, Callable[[Mapping[str, str]], dict[str, str]]] = {
    "xeon": answers_of_xeon,
    "ssh-only": answers_of_ssh_only,
    "dual-boot": answers_of_dual_boot,
    "ryzen": answers_of_ryzen,
    "chromebook": answers_of_chromebook,
}
"""Machine -> what a person would type about it, from the rehearsal's addresses."""


def test_the_wizard_tries_each_step(machine: tuple[str, Lab]) -> None:
    """The machine is tried by its addresses alone, as if it were new; no run uses it meanwhile."""
    name, lab = machine
    device, _ = DEVICES[name]
    lab.wqlab("devices", "quarantine", device, "--reason", "is tried as a new machine")
    known, _ = read_addresses(lab.data / "device-types")
    answers = {"name": "tried-1", "device_type": "tried", "golden_timeout_s": "900"} | ANSWERS[name](known)
    state = lab.data.parents[1]
    kept = state / "new-devices/tried-1.json"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps(answers))
    command = ["wqlab", "device", "add", "tried-1", "--only-try", "--rehearsal"]
    command += ["--data", str(lab.data), "--state", str(state)]
    enter = "\n" * 40  # takes each kept answer
    done = subprocess.run(command, input=enter, env=lab.environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    tried = done.stdout
    assert "tried-1 passed every step" in tried
    netconsole = name in {"ssh-only", "dual-boot"}
    assert tried.count("ok      ") == len(TrialStep) - netconsole, "nothing can be typed on netconsole"
