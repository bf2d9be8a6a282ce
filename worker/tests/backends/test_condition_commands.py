"""Device conditions: the real commands on a captured sysfs tree, run by the devices' shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from wqlab_contracts.specs import Conditions
from wqlab_worker.backends import condition_commands, probe
from wqlab_worker.backends.condition_commands import NOT_AVAILABLE, Change, ConditionResult

# From an AMD Ryzen 9 3900X (amd-pstate), reduced to three policies and four interrupts.
RYZEN = {
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "schedutil",
    "sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "schedutil",
    "sys/devices/system/cpu/cpufreq/policy11/scaling_governor": "schedutil",
    "sys/devices/system/cpu/cpufreq/boost": "1",
    "proc/irq/1/smp_affinity_list": "0-23",
    "proc/irq/9/smp_affinity_list": "0-23",
    "proc/irq/44/smp_affinity_list": "5",
    "sys/class/hwmon/hwmon0/temp1_input": "47875",
    "sys/class/hwmon/hwmon0/temp3_input": "39250",
    "sys/class/hwmon/hwmon1/temp1_input": "-273150",
}
# From a Xeon (intel_pstate).
XEON = {
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "sys/class/thermal/thermal_zone0/temp": "52000",
}
MEASURING = Conditions(governor="performance", boost=False, irq_affinity="0-3")


def tree(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return str(folder)


def sh(command: str) -> str:
    return subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True, text=True).stdout


def applied(root: str, wanted: Conditions) -> tuple[list[Change], dict[str, str]]:
    changes = condition_commands.read_changes(sh(condition_commands.apply_command(wanted, root)))
    return changes, {each.name: each.text for each in condition_commands.evaluate(wanted, changes, root)}


def contents(root: str) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text().strip() for p in Path(root).rglob("*") if p.is_file()}


def test_conditions_are_set_read_back_and_restored(tmp_path: Path) -> None:
    root = tree(tmp_path, RYZEN)
    changes, found = applied(root, MEASURING)
    assert found == {"governor": "performance", "boost": "off", "irq_affinity": "0-3"}
    after = contents(root)
    assert {after[name] for name in RYZEN if name.endswith("governor")} == {"performance"}
    assert after["sys/devices/system/cpu/cpufreq/boost"] == "0"
    assert after["proc/irq/44/smp_affinity_list"] == "0-3"

    sh(condition_commands.restore_command(changes))
    assert contents(root) == RYZEN


def test_intel_no_turbo_is_inverted(tmp_path: Path) -> None:
    root = tree(tmp_path, XEON)
    changes, found = applied(root, Conditions(boost=False))
    assert found == {"boost": "off"}
    assert contents(root)["sys/devices/system/cpu/intel_pstate/no_turbo"] == "1"
    assert applied(root, Conditions(boost=True))[1] == {"boost": "on"}
    sh(condition_commands.restore_command(changes))
    assert contents(root) == XEON


def test_missing_condition_fails_only_if_required(tmp_path: Path) -> None:
    changes, found = applied(tree(tmp_path, {"sys/kernel/x": ""}), MEASURING)
    assert changes == []
    assert found["governor"] == f"{NOT_AVAILABLE} (wanted performance)"
    standing = condition_commands.evaluate(MEASURING, changes)
    assert condition_commands.unmet_conditions(MEASURING, standing) == []
    strict = MEASURING.model_copy(update={"required": ["boost"]})
    assert condition_commands.unmet_conditions(strict, standing) == [
        ConditionResult("boost", "off", NOT_AVAILABLE, satisfied=False)
    ]


@pytest.mark.parametrize(
    ("name", "value", "found", "satisfied"),
    [
        ("governor", "powersave", "performance, powersave (wanted performance)", False),
        ("irq_affinity", "0-23", "0-3 (2 of 3; the kernel places the others)", True),
    ],
)
def test_refused_value_is_read_back(tmp_path: Path, name: str, value: str, found: str, satisfied: bool) -> None:
    """The kernel accepted the value for all files except one."""
    root = tree(tmp_path, RYZEN)
    changes, _ = applied(root, MEASURING)
    last = [change for change in changes if name in change.path or "smp_affinity" in change.path * (name[0] == "i")][-1]
    refused = [change if change is not last else Change(last.path, value, value) for change in changes]
    (standing,) = [each for each in condition_commands.evaluate(MEASURING, refused, root) if each.name == name]
    assert (standing.text, standing.satisfied) == (found, satisfied)


@pytest.mark.parametrize(
    ("written", "kernels"),
    [("0,1,2", "0-2"), ("0-0", "0"), ("5,0-1,1-2,07", "0-2,5,7"), ("0-3", "0-3"), ("2,0", "0,2"), ("10,9", "9-10")],
)
def test_cpu_lists_are_compared_by_content(written: str, kernels: str) -> None:
    wanted = Conditions(irq_affinity=written, required=["irq_affinity"])
    standing = condition_commands.evaluate(wanted, [Change("/proc/irq/9/smp_affinity_list", "0-23", kernels)])
    assert standing == [ConditionResult("irq_affinity", kernels, kernels, satisfied=True)]
    assert Conditions.model_validate_json(wanted.model_dump_json()) == wanted


def test_required_irq_affinity_refused_by_all_fails() -> None:
    wanted = Conditions(irq_affinity="0-3", required=["irq_affinity"])
    refused = [Change(f"/proc/irq/{number}/smp_affinity_list", "0-23", "0-23") for number in (1, 9)]
    assert [
        each.text for each in condition_commands.unmet_conditions(wanted, condition_commands.evaluate(wanted, refused))
    ] == ["0-23 (wanted 0-3)"]


def test_no_conditions_give_no_command() -> None:
    assert condition_commands.apply_command(Conditions()) == ""
    assert condition_commands.restore_command([Change("/sys/a", "1", "1")]) == "", "nothing was changed"


def test_boot_parameters_come_from_conditions() -> None:
    assert Conditions(smt=False, mitigations="auto").kernel_arguments == "nosmt mitigations=auto"
    assert Conditions(smt=True).kernel_arguments == ""


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"required": ["boost"]}, "boost is listed under required, but it has no value"),
        ({"governor": "performance; reboot"}, "governor"),
        ({"irq_affinity": "0-3 $(reboot)"}, "irq_affinity"),
    ],
)
def test_bad_conditions_are_refused(bad: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Conditions.model_validate(bad)


def test_every_boot_records_its_conditions(tmp_path: Path) -> None:
    """The environment records the conditions even if none is requested."""
    files = {f"/{name}": text for name, text in RYZEN.items()}
    files["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"] = "schedutil"
    facts = probe._environment(files, {}, "")
    assert (facts["governor"], facts["boost"], facts["temperature"]) == ("schedutil", "on", "47.9 °C")
    emulated = probe._environment({}, {}, "")
    assert [emulated[name] for name in ("governor", "boost", "temperature")] == [NOT_AVAILABLE] * 3
