"""Plan hotplug: the CPUs that it switches, refusals of the kernel, and the reduction on the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind

from .scripts import AWKS, call, trace

NAME = "hotplug"


def cpus(folder: Path, states: dict[int, str | None]) -> dict[str, str]:
    """Return the environment of a script on a device whose CPUs have this in `online`; None: the file is absent."""
    for cpu, state in states.items():
        path = folder / f"sys/devices/system/cpu/cpu{cpu}"
        path.mkdir(parents=True)
        if state is not None:
            (path / "online").write_text(f"{state}\n")
    (folder / "work").mkdir()
    return {"SYS": str(folder / "sys")}


def test_only_cpus_that_are_on_and_can_be_switched_take_part(tmp_path: Path) -> None:
    environment = cpus(tmp_path, {0: None, 1: "1", 2: "0", 10: "1", 3: "1"})
    found = call(NAME, 'record fact cpus "$(hotpluggable | tr "\\n" " ")"', tmp_path, **environment)
    assert found.facts["cpus"] == "1 3 10"


def test_device_with_one_cpu_is_unsupported(tmp_path: Path) -> None:
    found = call(NAME, "(setup) || true", tmp_path, **cpus(tmp_path, {0: None}))
    assert dict(found.unsupported)["*"].startswith("this device has no CPU that can be switched off")


def test_cycles_switch_each_cpu_off_and_on_in_turn(tmp_path: Path) -> None:
    environment = cpus(tmp_path, {0: None, 1: "1", 2: "1"})
    command = (
        'hotpluggable >"$WORK/cpus"\nswitch() { echo "$1=$2" >>"$WORK/switched"; }\ncycle\n'
        'record fact switched "$(tr "\\n" " " <"$WORK/switched")"\nrecord value cycles "$(cat "$WORK/done")"'
    )
    found = call(NAME, command, tmp_path, CYCLES="3", DWELL_S="0", **environment)
    assert found.facts["switched"] == "1=0 1=1 2=0 2=1 1=0 1=1"
    assert found.values["cycles"] == 3


def test_cycles_end_when_a_load_has_lost_works(tmp_path: Path) -> None:
    environment = cpus(tmp_path, {0: None, 1: "1"})
    command = (
        'hotpluggable >"$WORK/cpus"\nswitch() { [ "$2" = 0 ] || : >"$ENOUGH"; }\ncycle\n'
        'record value cycles "$(cat "$WORK/done")"'
    )
    assert call(NAME, command, tmp_path, CYCLES="9", DWELL_S="0", **environment).values["cycles"] == 1


def test_cpu_that_stays_off_is_a_failure_of_the_kernel(tmp_path: Path) -> None:
    environment = cpus(tmp_path, {0: None, 1: "0"})
    command = (
        'echo 1 >"$WORK/cpus"\nswitch() { echo "write error: Device or resource busy" >>"$WORK/refusals"; return 1; }\n'
    )
    found = call(NAME, f"{command}(back_online) || true", tmp_path, **environment)
    assert found.failure and found.failure.kind is ErrorKind.KERNEL
    assert found.failure.summary == "CPU 1 does not come back online: write error: Device or resource busy"


def test_state_of_workqueues_is_found_by_name(tmp_path: Path) -> None:
    environment = cpus(tmp_path, {0: None})
    path = tmp_path / "sys/devices/system/cpu/hotplug/states"
    path.parent.mkdir()
    path.write_text("  0: offline\n178: perf:online\n184: workqueue:online\n185: random:online\n")
    assert call(NAME, 'record fact state "$(workqueue_state)"', tmp_path, **environment).facts["state"] == "184"


def hotplug(second: float, event: str) -> str:
    return f"   cpuhp/1-20      [001] ..... {second:.6f}: {event}\n"


TRACE = (
    hotplug(5.0, "cpuhp_enter: cpu: 0001 target: 140 step: 184 (workqueue_offline_cpu)")
    + hotplug(5.002, "cpuhp_exit:  cpu: 0001  state: 183 step: 184 ret: 0")
    + hotplug(6.0, "cpuhp_enter: cpu: 0001 target: 238 step: 184 (workqueue_online_cpu)")
    + hotplug(6.0005, "cpuhp_exit:  cpu: 0001  state: 184 step: 184 ret: 0")
)


def queued(work: str, cpu: int) -> str:
    return (
        f"  <idle>-0      [000] d.s3. 5.500000: workqueue_queue_work: work struct=00000000{work} function=load_work_fn "
        f"workqueue=cmwq_load-03 req_cpu={cpu} cpu={cpu}\n"
    )


def started(work: str) -> str:
    return (
        f"  kworker/0:1-9  [000] ..... 5.600000: workqueue_execute_start: work struct 00000000{work}: "
        "function load_work_fn\n"
    )


@pytest.mark.parametrize("awk", AWKS)
def test_times_of_the_trace_are_reduced(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, TRACE + queued("aaaa01", 1) + started("aaaa01"))
    found = call(NAME, f'AWK="{awk}"\nreduce_trace >$WORK/binds\nframe binds <$WORK/binds', tmp_path)
    assert found.frame("binds") == ["unbind 1 2000", "rebind 1 500"]


@pytest.mark.parametrize("awk", AWKS)
def test_works_that_never_started_are_named(tmp_path: Path, awk: str) -> None:
    works = "".join(queued(f"aaaa{n:02}", n % 3) for n in range(6)) + started("aaaa00") + started("aaaa03")
    trace(tmp_path, TRACE + works)
    command = (
        f'AWK="{awk}"\nreduce_trace | sed -n "s/^unstarted //p" >$WORK/unstarted\nrecord fact lost "$(lost_names)"'
    )
    assert call(NAME, command, tmp_path).facts["lost"] == "load_work_fn queued on CPU 1,2 and never started"


def test_reports_of_the_kernel_are_counted(tmp_path: Path) -> None:
    log = (
        "[ 1.0] smpboot: CPU 1 is now offline\n[ 2.0] WARNING: CPU: 1 PID: 9 at kernel/workqueue.c:6600 x+0x1/0x2\n"
        "[ 3.0] INFO: task kworker/1:1:30 blocked for more than 120 seconds.\n[ 4.0] x86/mce: INFO is fine\n"
        "[ 5.0] WARNING: possible circular locking dependency detected\n"
    )
    (tmp_path / "work").mkdir()
    (tmp_path / "work/log").write_text(log)
    assert call(NAME, 'record value warnings "$(warnings)"', tmp_path).values["warnings"] == 3
