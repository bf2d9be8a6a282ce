"""Plan netperf-stream: its metrics and counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scripts import AWKS, call, plan, trace


def test_netperf_has_the_published_sizes_on_both_networks() -> None:
    chosen = plan("netperf-stream")
    sizes = (64, 128, 256, 1024, 2048, 3312, 4096, 8192, 16384)
    names = [f"{kind}-{network}-{size}" for kind in ("udp", "tcp") for network in ("lo", "netns") for size in sizes]
    assert [scenario.name for scenario in chosen.measured(None, emulated=False).scenarios] == names
    for scenario in chosen.scenarios:
        test, network, size = scenario.parameters["test"], scenario.parameters["network"], scenario.parameters["size"]
        assert scenario.name == f"{str(test)[:3].lower()}-{network}-{size}"
    emulated = [scenario.name for scenario in chosen.measured(None, emulated=True).scenarios]
    assert {name.rsplit("-", 1)[0] for name in emulated} == {name.rsplit("-", 1)[0] for name in names}
    assert len(emulated) <= 6


def test_netperf_has_the_published_table() -> None:
    found = {(r.scenario, r.metric, r.kernel): (r.mean, r.stddev) for r in plan("netperf-stream").references}
    vanilla, patched = "5.7.0-rc5 vanilla", "5.7.0-rc5 wakelist-v1r1"
    assert found["udp-lo-64", "send", vanilla] == (211.25, None)
    assert found["udp-lo-16384", "recv", patched] == (32296.08, None)
    assert found["tcp-lo-8192", "recv", vanilla] == (34014.83, 783.59)
    assert found["tcp-lo-64", "recv", patched] == (779.96, 0.17)
    assert len(found) == 2 * (9 + 9 + 9)


INTERRUPTS = {
    "x86_64": """\
           CPU0       CPU1
 24:          0          7  PCI-MSIX-0000:00:02.0   0-edge      virtio1-config
LOC:       4491       4680   Local timer interrupts
RES:        170        205   Rescheduling interrupts
CAL:        932        709   Function call interrupts
TLB:          3          9   TLB shootdowns
ERR:          0
""",
    "arm64": """\
           CPU0       CPU1
 11:       1245       1310     GICv3  27 Level     arch_timer
IPI0:       170        205       Rescheduling interrupts
IPI1:       932        709       Function call interrupts
IPI2:         0          0       CPU stop interrupts
Err:          0
""",
}


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("arch", INTERRUPTS)
def test_interrupts_are_found_by_what_they_are_called(tmp_path: Path, awk: str, arch: str) -> None:
    file = tmp_path / "interrupts"
    file.write_text(INTERRUPTS[arch])
    command = f"AWK='{awk}'\nrecord fact counts \"$(interrupts)\"\ninterrupt_records '1600 370' \"$(interrupts)\""
    records = call("netperf-stream", command, tmp_path, INTERRUPTS=str(file))
    assert records.facts == {"counts": "1641 375"}
    assert records.values == {"call_function_interrupts": 41, "reschedule_interrupts": 5}


def test_interrupts_that_a_kernel_does_not_list_are_unsupported(tmp_path: Path) -> None:
    file = tmp_path / "interrupts"
    file.write_text(INTERRUPTS["arm64"].replace("Rescheduling", "Scheduler"))
    command = 'interrupt_records "$(interrupts)" "$(interrupts)"'
    records = call("netperf-stream", command, tmp_path, INTERRUPTS=str(file))
    assert records.values == {"call_function_interrupts": 0}
    assert [name for name, _ in records.unsupported] == ["reschedule_interrupts"]


SCHEDSTAT = """\
version 16
timestamp 4294953709
cpu0 0 0 429 132 223 159 155600670825 110839956412 3904
domain0 3 163 158 3 2489 2 0 0 158 100 89 5 11 6 0 0 89 30 21 6 9 3 0 0 21 0 0 0 0 0 0 0 0 0 64 3 0
cpu1 0 0 409 128 215 141 181407125249 42805181681 3796
domain0 3 160 153 4 2612 3 0 0 153 102 92 8 2304 3 0 0 92 18 15 1 3 2 0 0 15 1 0 1 0 0 0 0 0 0 74 3 0
"""


@pytest.mark.parametrize("awk", AWKS)
def test_wakeups_on_the_wakers_cpu_are_not_counted(tmp_path: Path, awk: str) -> None:
    file = tmp_path / "schedstat"
    file.write_text(SCHEDSTAT)
    command = f"AWK='{awk}'\nwakeup_records '400 280' \"$(wakeups)\""
    records = call("netperf-stream", command, tmp_path, SCHEDSTAT=str(file))
    assert records.values == {"wakeups": 38, "remote_wakeups": 18}


QUEUED = """\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
         netperf-197     [001] d.s..   247.376070: csd_queue_cpu: cpu=0 callsite=ttwu_queue_wakelist+0xee/0x100 func=sched_ttwu_pending csd=000000001559feeb
         netperf-197     [001] d.H..   247.417729: csd_queue_cpu: cpu=0 callsite=generic_exec_single+0x38/0x100 func=nohz_csd_func csd=00000000f759ab3c
         netperf-197     [001] dNs..   248.048327: csd_queue_cpu: cpu=0 callsite=ttwu_queue_wakelist+0xee/0x100 func=sched_ttwu_pending csd=000000001559feeb
"""  # noqa: E501 - as the kernel prints them


@pytest.mark.parametrize("awk", AWKS)
def test_only_wakeups_among_queued_calls_are_counted(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, QUEUED)
    assert call("netperf-stream", f"AWK='{awk}'\nreduce_trace", tmp_path).values == {"queued_wakeups": 2}


def test_zero_queued_calls_is_a_count_if_calls_have_names(tmp_path: Path) -> None:
    trace(tmp_path, "# tracer: nop\n")
    assert call("netperf-stream", "reduce_trace", tmp_path).values == {"queued_wakeups": 0}
    (tmp_path / "tracing" / "trace").write_text(QUEUED.replace("sched_ttwu_pending", "0xffffffff81000000"))
    found = call("netperf-stream", "reduce_trace", tmp_path)
    assert found.values == {}
    assert [name for name, _ in found.unsupported] == ["queued_wakeups"]


def test_missing_trace_event_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tracing" / "events").mkdir(parents=True)
    (tmp_path / "tracing" / "tracing_on").touch()
    records = call("netperf-stream", "trace_start || true", tmp_path, TRACE_KIB="64")
    assert records.unsupported == [("queued_wakeups", "this kernel has no event csd_queue_cpu")]
