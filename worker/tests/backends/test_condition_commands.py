"""Device conditions: the commands that devices get, on trees of /sys and /proc from the kernel's documentation."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from pydantic import ValidationError

from wqlab_contracts.messages import RunJob
from wqlab_contracts.specs import Conditions
from wqlab_worker.backends import condition_commands, probe, temperature
from wqlab_worker.backends.condition_commands import NOT_AVAILABLE, TOO_HOT, Change
from wqlab_worker.backends.device_conditions import DeviceConditions
from wqlab_worker.backends.kexec import KexecStrategy
from wqlab_worker.backends.ssh import CommandResult

from .sysfs_trees import ACPI_CPUFREQ, AMD_PSTATE, CPU, EDAC, INTEL_PSTATE, IRQS, MEMORY, UPTIME, Device

MEASURING = Conditions(
    governor="performance", boost=False, irq_affinity="0-1", idle_latency_us=2, ksm=False,
    transparent_hugepages="madvise",
)  # fmt: skip


@pytest.mark.parametrize("driver", [ACPI_CPUFREQ, INTEL_PSTATE, AMD_PSTATE], ids=["acpi", "intel", "amd"])
def test_conditions_are_set_read_back_and_restored(tmp_path: Path, driver: dict[str, str]) -> None:
    files = driver | IRQS | MEMORY
    device = Device(tmp_path, files)
    _, found = device.apply(MEASURING)
    lacks_idle = driver is ACPI_CPUFREQ
    assert {name for name, each in found.items() if not each.satisfied} == (
        {"idle_latency_us"} if lacks_idle else set()
    )
    after = device.contents
    assert {after[name] for name in files if name.endswith("scaling_governor")} == {"performance"}
    assert {after[name] for name in files if name.endswith("/boost")} <= {"0"}
    assert after.get(f"{CPU}/intel_pstate/no_turbo", "1") == "1", "inverted"
    assert {after[name] for name in IRQS} == {"0-1"}
    assert after["sys/kernel/mm/ksm/run"] == "0"

    # The kernel shows the choice in brackets, and takes the bare word.
    assert after["sys/kernel/mm/transparent_hugepage/enabled"] == "madvise"
    facts = device.restore(MEASURING)
    assert device.contents | {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"} == files
    assert device.contents["sys/kernel/mm/transparent_hugepage/enabled"] == "always"
    if lacks_idle:
        assert facts == {"conditions put back": "9 files"}, "two governors, boost, four interrupts, two of memory"


def test_idle_states_deeper_than_the_limit_are_disabled(tmp_path: Path) -> None:
    device = Device(tmp_path, INTEL_PSTATE)
    _, found = device.apply(Conditions(idle_latency_us=2))
    assert found["idle_latency_us"].text == "POLL, C1_ACPI, C1E (at most 2 us; C6 disabled)"
    assert found["idle_latency_us"].fact == "idle states"
    disabled = {name for name, text in device.contents.items() if name.endswith("/disable") and text == "1"}
    assert disabled == {f"{CPU}/cpu{n}/cpuidle/state3/disable" for n in range(4)}
    assert device.restore(Conditions(idle_latency_us=2))["conditions put back"] == "4 files"
    assert device.contents == INTEL_PSTATE

    assert device.apply(Conditions(idle_latency_us=0))[1]["idle_latency_us"].actual.startswith("POLL (at most 0 us;")
    assert device.apply(Conditions(idle_latency_us=200))[1]["idle_latency_us"].satisfied, "and enabled again"
    assert device.contents == INTEL_PSTATE


def test_idle_state_that_stays_enabled_is_found(tmp_path: Path) -> None:
    device = Device(tmp_path, INTEL_PSTATE, refusing=[f"{CPU}/cpu2/cpuidle/state3/disable"])
    _, found = device.apply(Conditions(idle_latency_us=10))
    assert found["idle_latency_us"].text == "C6 on on 1 of 4 CPUs (wanted at most 10 us)"


@pytest.mark.parametrize(
    ("active", "control", "declared", "text"),
    [
        ("1", "on", True, "on"),
        ("1", "on", False, "on (wanted off)"),
        ("0", "off", False, "off"),
        ("0", "off", True, "off (wanted on)"),
        ("0", "notsupported", True, "off (notsupported) (wanted on)"),
        ("0", "notimplemented", True, "off (notimplemented) (wanted on)"),
        ("0", "forceoff", False, "off (forceoff)"),
    ],
)
def test_smt_is_compared_with_what_the_kernel_reports(
    tmp_path: Path, active: str, control: str, declared: bool, text: str
) -> None:
    device = Device(tmp_path, {f"{CPU}/smt/active": active, f"{CPU}/smt/control": control})
    wanted = Conditions(smt=declared, required=["smt"])
    changes, found = device.apply(wanted)
    assert found["smt"].text == text
    assert bool(condition_commands.unmet_conditions(wanted, list(found.values()))) is ("wanted" in text)
    assert all(change.was == change.now for change in changes), "SMT is set on the command line only"


def test_turbo_that_the_firmware_locks_is_read_back(tmp_path: Path) -> None:
    """With turbo disabled in the firmware, intel_pstate refuses writes to no_turbo, which reads 1."""
    files = INTEL_PSTATE | {f"{CPU}/intel_pstate/no_turbo": "1"}
    device = Device(tmp_path, files, refusing=[f"{CPU}/intel_pstate/no_turbo"])
    wanted = Conditions(boost=True, required=["boost"])
    _, found = device.apply(wanted)
    assert found["boost"].text == "off (wanted on)"
    assert [each.name for each in condition_commands.unmet_conditions(wanted, list(found.values()))] == ["boost"]
    assert device.restore(wanted) == {"throttled": "never"}
    assert condition_commands.needs_restoring(device.applied), "the counters are read again"


def test_boost_of_a_single_policy_counts(tmp_path: Path) -> None:
    device = Device(tmp_path, AMD_PSTATE, refusing=[f"{CPU}/cpufreq/policy1/boost"])
    assert device.apply(Conditions(boost=False))[1]["boost"].text == "off, on (wanted off)"


def test_governor_that_a_policy_lacks_is_read_back(tmp_path: Path) -> None:
    device = Device(tmp_path, INTEL_PSTATE, refusing=[f"{CPU}/cpufreq/policy3/scaling_governor"])
    _, found = device.apply(Conditions(governor="performance"))
    assert found["governor"].text == "performance, powersave (wanted performance)"


QUEUES = ["proc/irq/44/smp_affinity_list", "proc/irq/45/smp_affinity_list"]


@pytest.mark.parametrize(
    ("refusing", "text"),
    [
        (QUEUES, "0-1 (2 of 4; the kernel places the others)"),
        (list(IRQS), "0-3 (wanted 0-1)"),
        ([], "0-1"),
    ],
)
def test_interrupts_that_cannot_be_moved_are_counted(tmp_path: Path, refusing: list[str], text: str) -> None:
    device = Device(tmp_path, IRQS, refusing)
    wanted = Conditions(irq_affinity="0,1", required=["irq_affinity"])
    _, found = device.apply(wanted)
    assert found["irq_affinity"].text == text
    assert bool(condition_commands.unmet_conditions(wanted, list(found.values()))) is ("wanted" in text)


@pytest.mark.parametrize(
    ("files", "wanted", "text"),
    [
        ({}, Conditions(governor="performance"), f"{NOT_AVAILABLE} (wanted performance)"),
        ({}, Conditions(transparent_hugepages="never"), "never (not in this kernel)"),
        ({}, Conditions(transparent_hugepages="always"), f"{NOT_AVAILABLE} (wanted always)"),
        ({}, Conditions(ksm=False), "off (not in this kernel)"),
        ({}, Conditions(ksm=True), f"{NOT_AVAILABLE} (wanted on)"),
        ({}, Conditions(smt=True), f"{NOT_AVAILABLE} (wanted on)"),
        ({}, Conditions(idle_latency_us=1), f"{NOT_AVAILABLE} (wanted at most 1 us)"),
        (MEMORY, Conditions(transparent_hugepages="always"), "always"),
    ],
)
def test_condition_that_the_kernel_does_not_know(
    tmp_path: Path, files: dict[str, str], wanted: Conditions, text: str
) -> None:
    device = Device(tmp_path, files)
    (found,) = device.apply(wanted)[1].values()
    assert found.text == text
    assert condition_commands.needs_restoring(device.applied) is False, "nothing was changed"


def test_missing_condition_fails_only_if_required(tmp_path: Path) -> None:
    wanted = Conditions(boost=False)
    (found,) = Device(tmp_path, {}).apply(wanted)[1].values()
    assert condition_commands.unmet_conditions(wanted, [found]) == []
    assert condition_commands.unmet_conditions(wanted.model_copy(update={"required": ["boost"]}), [found]) == [found]


def test_file_that_is_not_restored_is_named(tmp_path: Path) -> None:
    device = Device(tmp_path, ACPI_CPUFREQ)
    wanted = Conditions(boost=False, governor="performance")
    device.apply(wanted)
    (tmp_path / f"{CPU}/cpufreq/boost").chmod(0o444)
    assert device.restore(wanted) == {"conditions put back": f"2 of 3 files; not /{CPU}/cpufreq/boost"}


class Connection:
    """The part of KexecStrategy that conditions use, to a tree of files."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.commands: list[str] = []

    def command(self, command: str, timeout_s: float) -> CommandResult:
        self.commands.append(command)
        return CommandResult(0, self.device.run_for_bytes(command), b"")


@pytest.mark.parametrize(("files", "commands", "facts"), [({}, 1, {}), (MEMORY, 2, {"conditions put back": "1 files"})])
def test_device_is_asked_to_restore_only_what_was_changed(
    tmp_path: Path, job: RunJob, files: dict[str, str], commands: int, facts: dict[str, str]
) -> None:
    connection = Connection(Device(tmp_path, files))
    wanted = job.device.model_copy(update={"conditions": Conditions(ksm=False)})
    conditions = DeviceConditions(cast(KexecStrategy, connection), wanted)
    conditions.apply()
    assert conditions.restore() == facts
    assert len(connection.commands) == commands


def test_throttling_and_memory_errors_during_the_boot_are_counted(tmp_path: Path) -> None:
    device = Device(tmp_path, INTEL_PSTATE | EDAC)
    wanted = Conditions(boost=False)
    device.apply(wanted)
    device.write({f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count": "3" for n in (1, 2)})
    device.write({"sys/devices/system/edac/mc/mc0/ce_count": "5"})
    facts = device.restore(wanted)
    assert facts == {
        "conditions put back": "1 files",
        "throttled": "6 times, summed over the CPUs",
        "memory errors": "3 corrected, 0 uncorrected",
    }


def test_corrected_memory_errors_are_reported_before_they_are_counted(tmp_path: Path) -> None:
    """Without an interrupt the kernel reads the banks every `check_interval` seconds, and most boots are shorter."""
    interval = "sys/devices/system/machinecheck/machinecheck0/check_interval"
    device = Device(tmp_path, INTEL_PSTATE | EDAC | {interval: "12c"})
    device.apply(Conditions(boost=False))
    assert (tmp_path / interval).read_text().strip() == "12c"
    device.restore(Conditions(boost=False))
    assert (tmp_path / interval).read_text().strip() == "1"


# --- temperature without a connection (LAVA) --------------------------------------------------------------------------

HOT = {
    "sys/class/hwmon/hwmon0/name": "nvme",
    "sys/class/hwmon/hwmon0/temp1_input": "30000",
    "sys/class/hwmon/hwmon1/name": "coretemp",
    "sys/class/hwmon/hwmon1/temp1_input": "71000",
    "sys/class/hwmon/hwmon1/temp2_input": "69000",
}
COOL = HOT | {"sys/class/hwmon/hwmon1/temp1_input": "48500", "sys/class/hwmon/hwmon1/temp2_input": "47000"}


@pytest.mark.parametrize(
    ("sensors", "required", "status", "text"),
    [
        (COOL, True, 0, "48.5 °C"),
        (HOT, True, TOO_HOT, "71.0 °C (wanted below 55.5 °C)"),
        (HOT, False, 0, "71.0 °C (wanted below 55.5 °C)"),
        ({}, True, TOO_HOT, f"{NOT_AVAILABLE} (wanted below 55.5 °C)"),
        ({}, False, 0, f"{NOT_AVAILABLE} (wanted below 55.5 °C)"),
    ],
)
def test_device_that_measures_alone_checks_its_temperature(
    tmp_path: Path, sensors: dict[str, str], required: bool, status: int, text: str
) -> None:
    wanted = Conditions(start_below_c=55.5, cool_s=0, required=["temperature"] if required else [])
    answer = Device(tmp_path, sensors | UPTIME).run(condition_commands.apply_command(wanted, wait=True), status=status)
    found = condition_commands.evaluate_temperature(wanted, answer)
    assert found is not None
    assert found.text == text


def test_device_that_measures_alone_waits_until_it_is_cool(tmp_path: Path) -> None:
    """The sensor falls while the shell waits; the clock of this tree stands still, so only the sensor ends the wait."""
    device = Device(tmp_path, HOT | UPTIME)
    wanted = Conditions(start_below_c=55, cool_s=600, required=["temperature"])
    chip = "/sys/class/hwmon/hwmon1"
    cooling = f"{{ sleep 1; echo 48000 >{chip}/temp1_input; echo 47000 >{chip}/temp2_input; }} &\n"
    answer = device.run(cooling + condition_commands.apply_command(wanted, wait=True))
    found = condition_commands.evaluate_temperature(wanted, answer)
    assert found is not None
    assert found.text == "48.0 °C"


def test_connected_device_does_not_wait_in_its_shell() -> None:
    assert condition_commands.apply_command(Conditions(start_below_c=55)) == "", "the worker waits: it can be canceled"


# --- without a device -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "kernels"),
    [("0,1,2", "0-2"), ("0-0", "0"), ("5,0-1,1-2,07", "0-2,5,7"), ("0-3", "0-3"), ("2,0", "0,2"), ("10,9", "9-10")],
)
def test_cpu_lists_are_compared_by_content(written: str, kernels: str) -> None:
    wanted = Conditions(irq_affinity=written, required=["irq_affinity"])
    (found,) = condition_commands.evaluate(wanted, f"/proc/irq/9/smp_affinity_list\t0-23\t{kernels}\n")
    assert (found.text, found.satisfied) == (kernels, True)
    assert Conditions.model_validate_json(wanted.model_dump_json()) == wanted


def test_no_conditions_give_no_command() -> None:
    assert condition_commands.apply_command(Conditions()) == ""
    assert condition_commands.apply_command(Conditions(), wait=True) == ""
    assert condition_commands.restore_command(Conditions()) == ""


def test_lines_that_are_no_changes_are_skipped() -> None:
    answer = "sh: something\nwaited\t5\nnote\ta\tb\n/sys/a\t1\t2\n/sys/b:3\n"
    assert condition_commands.read_changes(answer) == [Change("/sys/a", "1", "2")]


def test_boot_parameters_come_from_conditions() -> None:
    assert Conditions(smt=False, mitigations="auto").kernel_arguments == "nosmt mitigations=auto"
    assert Conditions(smt=True).kernel_arguments == ""


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"required": ["boost"]}, "boost is listed under required, but it has no value"),
        ({"required": ["temperature"]}, "temperature is listed under required, but it has no value"),
        ({"governor": "performance; reboot"}, "governor"),
        ({"irq_affinity": "0-3 $(reboot)"}, "irq_affinity"),
        ({"idle_latency_us": -1}, "idle_latency_us"),
    ],
)
def test_bad_conditions_are_refused(bad: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Conditions.model_validate(bad)


def test_every_boot_records_its_conditions() -> None:
    """The environment records the conditions even if none is requested."""
    files = {f"/{name}": text for name, text in (ACPI_CPUFREQ | COOL).items()}
    files["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"] = "schedutil"
    facts = probe._environment(files, {}, "")
    assert (facts["governor"], facts["boost"], facts["temperature"]) == ("schedutil", "on", "48.5 °C")
    emulated = probe._environment({}, {}, "")
    assert [emulated[name] for name in ("governor", "boost", "temperature")] == [NOT_AVAILABLE] * 3


def test_shell_and_worker_agree_on_the_hottest_sensor(tmp_path: Path) -> None:
    from .test_temperature import TREES

    for number, (sensors, degrees) in enumerate(TREES):
        (folder := tmp_path / str(number)).mkdir()
        device = Device(folder, {f"sys/class/{name}": text for name, text in sensors.items()} | UPTIME)
        wanted = Conditions(start_below_c=1, cool_s=0)
        answer = device.run(condition_commands.apply_command(wanted, wait=True) + 'echo "hottest $hottest"')
        assert temperature.hottest_celsius(temperature.parse_files(answer)) == degrees
        assert answer.splitlines()[-1] == f"hottest {'' if degrees is None else f'{degrees * 1000:.0f}'}"
