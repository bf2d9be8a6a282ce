"""Requirements on every plan and its script."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path

import pytest

from wqlab_contracts.enums import DeviceStep, ErrorKind, StepOutcome, TraceMode
from wqlab_contracts.specs import Profile

from .scripts import NAMES, PLANS, SHELL, call, plan, script


@pytest.mark.parametrize("name", [name for name in NAMES if plan(name).parser != "values"])
def test_the_parser_gives_the_metrics_of_the_plan(name: str) -> None:
    module = importlib.import_module(f"wqlab_worker.measure.parsers.{plan(name).parser}")
    for mode, names in ((TraceMode.TRACED, module.TRACED), (TraceMode.UNTRACED, module.UNTRACED)):
        assert [m.name for m in plan(name).metrics if m.taken_from is mode] == [
            n for n in (m.name for m in plan(name).metrics) if n in names
        ]
        assert {m.name for m in plan(name).metrics if m.taken_from is mode} == set(names)


@pytest.mark.parametrize("name", NAMES)
def test_both_profiles_give_the_script_the_same_parameters(name: str) -> None:
    assert plan(name).hardware.parameters.keys() == plan(name).emulated.parameters.keys()


def test_documentation_names_plans_without_workqueue_series() -> None:
    def watched(profile: Profile) -> bool:
        return bool(profile.repetitions.warmup or profile.repetitions.traced)

    measured = [name for name in NAMES if name != "health-check"]
    assert all(watched(plan(name).hardware) for name in measured)
    without = [name for name in measured if not watched(plan(name).emulated)]
    assert f"{', '.join(without[:-1])} and {without[-1]} have none" in " ".join(
        (PLANS.parent / "docs/plans.md").read_text().split()
    )


def test_documentation_names_plans_without_traced_repetition() -> None:
    """They have no table of how long work items waited. A plan that the page does not describe yet may have none."""
    text = " ".join((PLANS.parent / "docs/plans.md").read_text().split())
    described = [name for name in NAMES if name != "health-check" and name in text]
    profiles = [(name, plan(name).profile(emulated)) for name in described for emulated in (False, True)]
    without = sorted({name for name, profile in profiles if not profile.repetitions.traced})
    assert f"{', '.join(without[:-1])} and {without[-1]} have no traced repetition" in text


@pytest.mark.parametrize("name", NAMES)
def test_the_script_is_posix_shell(name: str) -> None:
    subprocess.run([SHELL, "-n", script(name)], check=True)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "health-check"])
def test_a_missing_program_is_named_and_fails_nothing(tmp_path: Path, name: str) -> None:
    found = call(name, "(need sh no-such-program) || record fact status $?", tmp_path)
    assert found.unsupported == [("*", "this device has no program no-such-program")]
    assert (found.failure, found.facts) == (None, {"status": "1"})


def test_a_device_without_a_program_is_not_fit(tmp_path: Path) -> None:
    found = call("health-check", "(need no-such-program) || :", tmp_path)
    assert found.failure and "no-such-program" in found.failure.summary


def cpus_in(folder: Path, control: str, online: dict[int, bool]) -> None:
    """CPUs in sysfs: an offline CPU has no topology, and CPU 0 no `online` file."""
    root = folder / "devices/system/cpu"
    for cpu, on in online.items():
        (root / f"cpu{cpu}").mkdir(parents=True)
        if cpu:
            (root / f"cpu{cpu}/online").write_text(f"{int(on)}\n")
        if on:
            (root / f"cpu{cpu}/topology").mkdir()
            for name in ("core_id", "physical_package_id", "thread_siblings_list"):
                (root / f"cpu{cpu}/topology/{name}").write_text("0\n")
    (root / "present").write_text(f"0-{max(online)}\n")
    on = [cpu for cpu in online if online[cpu]]
    (root / "online").write_text((f"0-{max(online)}" if len(on) == len(online) else ",".join(map(str, on))) + "\n")
    (root / "smt").mkdir()
    (root / "smt/control").write_text(f"{control}\n")


NOSMT = {0: True, 1: False, 2: True, 3: False}


@pytest.mark.parametrize("control", ["off", "forceoff"])
def test_siblings_offline_by_nosmt_are_accepted(tmp_path: Path, control: str) -> None:
    cpus_in(tmp_path, control, NOSMT)
    found = call("health-check", "check_topology", tmp_path, SYS=str(tmp_path))
    assert found.failure is None
    assert found.steps[DeviceStep.TOPOLOGY] == (
        StepOutcome.OK,
        "SMT is off, so of CPUs 0-3 only 0,2 are online: each reports its core, package and siblings",
    )


@pytest.mark.parametrize("control", ["on", "notsupported", "notimplemented"])
def test_other_offline_cpu_is_a_topology_difference(tmp_path: Path, control: str) -> None:
    cpus_in(tmp_path, control, NOSMT)
    found = call("health-check", "(check_topology) || :", tmp_path, SYS=str(tmp_path))
    assert found.failure and found.failure.summary == "CPUs 0-3 are present, only 0,2 online"


@pytest.mark.parametrize(("control", "online"), [("off", NOSMT), ("on", dict.fromkeys(range(3), True))])
@pytest.mark.parametrize("cpu", [0, 2])
def test_each_online_cpu_reports_its_topology(tmp_path: Path, control: str, online: dict[int, bool], cpu: int) -> None:
    cpus_in(tmp_path, control, online)
    (tmp_path / f"devices/system/cpu/cpu{cpu}/topology/core_id").unlink()
    found = call("health-check", "(check_topology) || :", tmp_path, SYS=str(tmp_path))
    assert found.failure and found.failure.summary == f"cpu{cpu} reports no topology/core_id"


@pytest.mark.parametrize("seconds", [10, 3155760063])
def test_a_clock_without_battery_is_named_also_if_it_lacks_a_century(tmp_path: Path, seconds: int) -> None:
    clock = f'date() {{ if [ "${{1:-}}" = +%s ]; then echo {seconds}; else echo "Wed Jan  1 2070"; fi; }}'
    found = call("health-check", f"{clock}\n(check_clock) || :", tmp_path)
    assert found.failure and found.failure.summary.startswith(
        "the clock says Wed Jan  1 2070, which is not between 2020 and 2059. Set it in the firmware"
    )


def test_a_missing_scratch_disk_is_named_with_the_disks_that_are_there(tmp_path: Path) -> None:
    """Each disk has several names; partitions are no disks."""
    links = tmp_path / "by-id"
    links.mkdir()
    for name, target in {"nvme-eui.1": "n1", "nvme-A_1": "n1", "nvme-A_1-part1": "n1p1", "nvme-B_2": "n2"}.items():
        (tmp_path / target).touch()
        (links / name).symlink_to(tmp_path / target)
    wanted = "/dev/disk/by-id/nvme-C_3"
    found = call("health-check", "(check_scratch) || :", tmp_path, DISKS=str(links), WQLAB_SCRATCH=wanted)
    assert found.failure and found.failure.summary == (
        f"scratch device {wanted} does not exist: the disk is missing or was replaced; the disks of this device are "
        "nvme-A_1, nvme-B_2"
    )


def test_a_disk_that_refuses_writes_is_named(tmp_path: Path) -> None:
    """/dev/full reads as zeros, and each write to it fails."""
    found = call("health-check", "(rewrite_block /dev/full) || :", tmp_path)
    assert found.failure and found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "scratch device /dev/full cannot be written, though it is not marked read-only" in found.failure.summary
    assert "No space left on device" in found.failure.summary


def test_a_disk_that_can_be_written_keeps_its_contents(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    content = bytes(range(256)) * 64
    disk.write_bytes(content)
    found = call("health-check", f"rewrite_block {disk}", tmp_path)
    assert found.failure is None
    assert disk.read_bytes() == content


@pytest.mark.parametrize("caller", ["", "[    T1]", "[  C12]"])
def test_last_of_two_benchmark_runs_counts(tmp_path: Path, caller: str) -> None:
    """The log is that of lib/test_workqueue.c of Linux 7.1, built against 6.12.117 and loaded by busybox; some kernels
    name the caller of each message (CONFIG_PRINTK_CALLER)."""
    log = tmp_path / "dmesg"
    text = (Path(__file__).parent / "test_workqueue_twice.dmesg").read_text()
    log.write_text(re.sub(r"^(\[[ 0-9.]+\])", rf"\1{caller}", text, flags=re.MULTILINE))
    stand_ins = f'dmesg() {{ [ "${{1:-}}" = -c ] || cat {log}; }}\ninsmod() {{ return 1; }}'
    command = f"{stand_ins}\nbenchmark >$WORK/benchmark\nframe benchmark <$WORK/benchmark"
    lines = call("test-workqueue", command, tmp_path, ITEMS="200").frame("benchmark")
    assert len(lines) == 7
    assert lines[0] == "test_workqueue: running 2 threads, 200 items/thread"
    assert lines[1].split() == ["test_workqueue:", "cpu", "3052", "items/sec", "p50=2847", "p90=3780", "p95=5224", "ns"]


@pytest.mark.parametrize(
    ("sums", "failure"),
    [
        ("a a a", None),
        ("a b", (ErrorKind.KERNEL, "the encoder's output is not that of this boot's first repetition: sum ")),
        ("a ''", (ErrorKind.INFRASTRUCTURE, "mpeg2enc wrote nothing")),
    ],
)
def test_encoder_writes_the_same_in_each_repetition(
    tmp_path: Path, sums: str, failure: tuple[ErrorKind, str] | None
) -> None:
    command = f'for text in {sums}; do printf %s "$text" >"$WORK/encoded"; (check_encoded) || break; done'
    found = call("cmwq-load", command, tmp_path)
    assert len(found.facts["encoded"]) == 16
    if failure is None:
        assert found.failure is None
    else:
        assert found.failure and found.failure.kind is failure[0] and found.failure.summary.startswith(failure[1])
