"""Trees of /sys and /proc as the kernel's documentation describes them, and a shell that sees them as its own.

The commands that the lab sends to devices run here unchanged: bubblewrap puts a tree where they look for it. The values
are those of Documentation/admin-guide/pm/{cpufreq,cpuidle,intel_pstate,amd-pstate}.rst, admin-guide/ras.rst,
arch/x86/resctrl.rst, hwmon/{coretemp,k10temp}.rst and core-api/irq/irq-affinity.rst.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from wqlab_contracts.specs import Conditions
from wqlab_worker.backends import condition_commands
from wqlab_worker.backends.condition_commands import Change, ConditionResult

CPU = "sys/devices/system/cpu"


def policies(numbers: Iterable[int], **values: str) -> dict[str, str]:
    return {f"{CPU}/cpufreq/policy{n}/{name}": value for n in numbers for name, value in values.items()}


def idle_states(cpus: Iterable[int], states: Mapping[str, int]) -> dict[str, str]:
    """Return the folders of idle states: name -> exit latency in microseconds, shallowest first."""
    return {
        f"{CPU}/cpu{cpu}/cpuidle/state{number}/{file}": value
        for cpu in cpus
        for number, (name, latency) in enumerate(states.items())
        for file, value in {"name": name, "latency": str(latency), "disable": "0"}.items()
    }


ACPI_CPUFREQ = {
    **policies(
        range(2),
        scaling_driver="acpi-cpufreq",
        scaling_governor="schedutil",
        scaling_available_governors="ondemand performance schedutil",
    ),
    f"{CPU}/cpufreq/boost": "1",
}
INTEL_PSTATE = {
    **policies(
        range(4),
        scaling_driver="intel_pstate",
        scaling_governor="powersave",
        scaling_available_governors="performance powersave",
        energy_performance_preference="balance_performance",
    ),
    f"{CPU}/intel_pstate/status": "active",
    f"{CPU}/intel_pstate/no_turbo": "0",
    f"{CPU}/intel_pstate/turbo_pct": "36",
    f"{CPU}/intel_pstate/max_perf_pct": "100",
    **idle_states(range(4), {"POLL": 0, "C1_ACPI": 1, "C1E": 2, "C6": 133}),
    **{f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count": "0" for n in range(4)},
    f"{CPU}/smt/active": "1",
    f"{CPU}/smt/control": "on",
}
AMD_PSTATE = {
    **policies(
        range(3),
        scaling_driver="amd-pstate-epp",
        scaling_governor="powersave",
        energy_performance_preference="balance_performance",
        boost="1",
        amd_pstate_highest_perf="166",
    ),
    f"{CPU}/amd_pstate/status": "active",
    f"{CPU}/cpufreq/boost": "1",
    **idle_states(range(3), {"POLL": 0, "C1": 1, "C2": 400}),
    f"{CPU}/smt/active": "0",
    f"{CPU}/smt/control": "notsupported",
}
IRQS = {f"proc/irq/{number}/smp_affinity_list": "0-3" for number in (1, 9, 44, 45)}
"""44 and 45 are the queues of an NVMe disk: the kernel places these itself."""
MEMORY = {
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "sys/kernel/mm/ksm/run": "1",
}
EDAC = {
    "sys/devices/system/edac/mc/mc0/mc_name": "Intel_10nm Socket#0 IMC#0",
    "sys/devices/system/edac/mc/mc0/ce_count": "2",
    "sys/devices/system/edac/mc/mc0/ue_count": "0",
}
UPTIME = {"proc/uptime": "120.31 400.00"}


class Device:
    """A shell whose /sys, /proc and /run are a tree."""

    def __init__(self, folder: Path, files: Mapping[str, str], refusing: Iterable[str] = ()) -> None:
        self.folder = folder
        for name in ("sys", "proc", "run"):
            (folder / name).mkdir()
        self.write(files)
        for name in refusing:
            # The kernel answers a write with an error, and reads give the old value.
            (folder / name).chmod(0o444)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")

    def run(self, command: str, *, status: int = 0) -> str:
        """Run a command as the device's shell does, and return its output."""
        return self.run_for_bytes(command, status=status).decode()

    def run_for_bytes(self, command: str, *, status: int = 0) -> bytes:
        bound = [word for name in ("sys", "proc", "run") for word in ("--bind", str(self.folder / name), f"/{name}")]
        done = subprocess.run(
            ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "--dev", "/dev", *bound, "/bin/sh", "-c", command],
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (status, b"")
        return done.stdout

    def apply(self, wanted: Conditions) -> tuple[list[Change], dict[str, ConditionResult]]:
        self.applied = self.run(condition_commands.apply_command(wanted))
        results = condition_commands.evaluate(wanted, self.applied)
        return condition_commands.read_changes(self.applied), {each.name: each for each in results}

    def restore(self, wanted: Conditions) -> dict[str, str]:
        return condition_commands.restored_facts(self.applied, self.run(condition_commands.restore_command(wanted)))

    @property
    def contents(self) -> dict[str, str]:
        found = {}
        for top in ("sys", "proc"):
            for path in (self.folder / top).rglob("*"):
                if path.is_file():
                    found[str(path.relative_to(self.folder))] = path.read_text().rstrip("\n")
        return found
