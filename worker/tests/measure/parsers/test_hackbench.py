"""Parser hackbench: each value is correct or not measured.

Files in `recorded` are from emulated devices with Linux 6.12.117 on a busy host. The rest is written by hand, as the
script prints it.
"""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.enums import ErrorKind, NotMeasuredCause
from wqlab_worker.measure.collect import Measurement, collect

from .test_recorded import RECORDED, device, plan

LOADED = """\
workload 0
burn S
duration_ms 500
seed 1
queues 26
planned 400
executed {executed}
refused 0
reentered 0
misplaced 0
starved 0
met 26
workers 9
rescued 0
cpu_peak 8
queue_peak 1
wait_mean_us 300
wait_max_us 9000
elapsed_ms 640
"""
RESULT = """\
begin	hackbench
Running in process mode with 1 groups using 8 file descriptors each (== 8 tasks)
Each sender will pass 20 messages of 100 bytes
Time: 0.731
end	hackbench
"""
LOADS = f"begin\tloads\n{LOADED.format(executed=400)}{LOADED.format(executed=400)}end\tloads\n"
COMMAND = "command\thackbench -g 1 -f 4 -l 20 -s 100 --pipe\n"
UNTRACED = f"""\
{COMMAND}value	cpu_busy_seconds	1.40
value	context_switches	960
value	cpu_utilisation	95.5
{LOADS}{RESULT}"""
TRACED = f"""\
{COMMAND}begin	histogram wakeup_us
10 500
200 495
40000 5
end	histogram wakeup_us
value	migrations	16
{LOADS}{RESULT}"""


def measured(text: str, traced: bool) -> Measurement:
    return collect(text, "hackbench", plan("hackbench"), device(2, 1), traced)


def not_measured(found: Measurement, reason: str) -> None:
    assert found.values == {}
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert re.search(reason, found.failure.summary), found.failure.summary


def test_counts_are_per_message() -> None:
    """Each of 4 senders sends 20 messages to each of 4 receivers: 320."""
    found = measured(UNTRACED, False)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "context_switches_per_1000_messages": 3000,
        "time_s": 0.731,
        "works_lost": 0,
        "cpu_utilisation": 95.5,
    }
    found = measured(TRACED, True)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "wakeups_per_1000_messages": 3125,
        "migrations_per_1000_messages": 50,
        "wakeup_p50_us": 10,
        "wakeup_p99_us": 200,
        "wakeup_p999_us": 40000,
    }


def test_recorded_output_is_read() -> None:
    """320 messages with 541 switches of the whole device, in 34.74 s."""
    found = measured((RECORDED / "hackbench-2cpu-untraced.txt").read_text(), False)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "context_switches_per_1000_messages": 541 / 0.32,
        "time_s": 34.74,
        "works_lost": 0,
        "cpu_utilisation": 0.619,
    }


@pytest.mark.parametrize(
    ("file", "wakeups", "median"),
    [("hackbench-1cpu-pipes.txt", 11, 718000), ("hackbench-1cpu-sockets-loaded.txt", 17, 16800)],
)
def test_recorded_wakeups_are_read(file: str, wakeups: int, median: int) -> None:
    """A device with one CPU, so without migrations; the second beside a load of 180 works."""
    text = (RECORDED / file).read_text()
    found = collect(text, "hackbench", plan("hackbench"), device(1, 1), True)
    assert found.failure is None
    assert found.values == {
        "wakeups_per_1000_messages": wakeups / 0.32,
        "migrations_per_1000_messages": 0,
        "wakeup_p50_us": median,
    }
    assert found.unsupported == [
        ("wakeup_p99_us", f"p99 needs 100 wakeups, and there were {wakeups}"),
        ("wakeup_p999_us", f"p999 needs 1000 wakeups, and there were {wakeups}"),
    ]
    assert {reason.cause for _, reason in found.unsupported} == {NotMeasuredCause.LACKING}


@pytest.mark.parametrize(
    ("wakeups", "lacking"), [(1000, []), (999, ["p999"]), (100, ["p999"]), (99, ["p99", "p999"]), (1, ["p99", "p999"])]
)
def test_percentile_needs_a_wakeup_above_it(wakeups: int, lacking: list[str]) -> None:
    text = TRACED.replace("10 500\n200 495\n40000 5\n", f"10 {wakeups}\n")
    found = measured(text, True)
    assert (found.failure, found.values["wakeup_p50_us"]) == (None, 10)
    assert [metric for metric, _ in found.unsupported] == [f"wakeup_{name}_us" for name in lacking]


def test_works_lost_beside_the_messages_are_a_value() -> None:
    text = UNTRACED.replace("executed 400", "executed 398", 1)
    assert measured(text, False).values["works_lost"] == 2


def test_without_a_load_no_work_is_lost() -> None:
    assert measured(UNTRACED.replace(LOADS, ""), False).values == measured(UNTRACED, False).values


@pytest.mark.parametrize(
    ("text", "instead", "reason"),
    [
        ("Time: 0.731\n", "", "printed 0 times, so not all messages were received"),
        ("Time: 0.731", "Time: soon", "hackbench's time"),
        ("pass 20 messages", "pass 19 messages", r"\(1, 8, 8, 19, 100\), and \(1, 8, 8, 20, 100\) were requested"),
        ("with 1 groups", "with 2 groups", r"\(2, 8, 8, 20, 100\)"),
        ("Each sender will pass 20 messages of 100 bytes\n", "", "does not say how many"),
        ("-g 1 ", "", "does not say how many"),
        ("executed 400", "executed 0", "executed no work"),
        ("executed 400", "executed 401", "executed 401 of 400 planned"),
    ],
)
@pytest.mark.parametrize("traced", [True, False])
def test_work_that_was_not_done_is_not_measured(text: str, instead: str, reason: str, traced: bool) -> None:
    not_measured(measured((TRACED if traced else UNTRACED).replace(text, instead), traced), reason)


def test_full_histogram_gives_no_values() -> None:
    assert measured(f"{TRACED}overrun\t9\n", True).values == {}


def test_kernel_without_the_module_is_unsupported() -> None:
    found = measured("unsupported\t*\tthis kernel has no module cmwq_load\n", False)
    assert found.unsupported == [(None, "this kernel has no module cmwq_load")]


@pytest.mark.parametrize("traced", [True, False])
def test_output_cut_off_anywhere_never_gives_another_figure(traced: bool) -> None:
    text = TRACED if traced else UNTRACED
    good = measured(text, traced).values
    for end in range(len(text)):
        assert measured(text[:end], traced).values in ({}, good), text[:end]
