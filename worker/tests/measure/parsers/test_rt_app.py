"""Parsers rt_app and rt_app_scopes: output that is incomplete or contradicts itself gives no figures.

Files in `recorded` are from an emulated device with Linux 6.12.117 on a busy host. The rest is written by hand, as the
script prints it.
"""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Measurement, collect

from .test_recorded import RECORDED, device, plan

REQUEST = """\
begin	request
{"global": {"duration": -1, "calibration": 30}, "tasks": {
"request0": {"delay": 100, "loop": 1, "phases": {"request": {"loop": 500, "run": 10}}},
"request1": {"delay": 150, "loop": 1, "phases": {"request": {"loop": 500, "run": 10}}}}}
end	request
"""
REQUESTS = f"""\
begin	histogram wakeup_latency_us
4 980
60 8
200 1
5000 1
end	histogram wakeup_latency_us
begin	histogram run_us
11 990
1200 10
end	histogram run_us
begin	requests
0 500 10
1 500 0
end	requests
{REQUEST}"""
LOADS = """\
begin	loads
workload 0
burn S
duration_ms 500
seed 1
queues 26
planned 400
executed 400
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
end	loads
"""
HEAD = "command\trt-app requests.json\n"
COUNTS = "value\tcpu_busy_seconds\t1.40\nvalue\tcontext_switches\t2300\nvalue\tcpu_utilisation\t12.5\n"
TRACED = "begin\thistogram wakeup_us\n3 990\n90 14\nend\thistogram wakeup_us\nvalue\tmigrations\t7\n"
FIO = """\
begin	fio
{"fio version": "fio-3.33", "jobs": [{"error": 0, "job options": {"numjobs": "2"},
"read": {"total_ios": 60, "io_bytes": 245760, "runtime": 1000},
"write": {"total_ios": 40, "io_bytes": 163840, "runtime": 1000}, "sync": {"total_ios": 0}}]}
end	fio
"""
IOS = "value\tload_ios\t90\nvalue\tseconds\t2.5\n"
PAIRS = "begin\tpairs\n0 0 60\n0 1 20\n1 1 20\nend\tpairs\n"
QUIET = {
    "wakeup_p50_us": 4,
    "wakeup_p99_us": 60,
    "wakeup_max_us": 5000,
    "late_share": 1,
    "run_p50_us": 11,
    "run_p99_us": 11,
    "context_switches_per_1000_requests": 2300,
    "cpu_utilisation": 12.5,
}
SCHEDULING = {
    "migrations_per_1000_requests": 7,
    "wakeups_per_request": 1.004,
    "scheduling_p50_us": 3,
    "scheduling_p99_us": 90,
}
TEXTS = {
    ("rt-app", False): f"{HEAD}{COUNTS}{LOADS}{REQUESTS}",
    ("rt-app", True): f"{HEAD}{TRACED}{LOADS}{REQUESTS}",
    ("rt-app-scopes", False): f"{HEAD}{IOS}{COUNTS}{FIO}{REQUESTS}",
    ("rt-app-scopes", True): f"{HEAD}{IOS}{TRACED}{PAIRS}{FIO}{REQUESTS}",
}
EXPECTED = {
    ("rt-app", False): {**QUIET, "works_lost": 0},
    ("rt-app", True): SCHEDULING,
    ("rt-app-scopes", False): {**QUIET, "load_iops": 36},
    ("rt-app-scopes", True): {**SCHEDULING, "local_cpu_share": 80, "local_l3_share": 100, "local_l3_by_chance": 100},
}
EACH = pytest.mark.parametrize(("name", "traced"), TEXTS)


def too_few(**counted: int) -> list[tuple[str, str]]:
    """Return the metrics that need more wakeups than there were, with the reason: `wakeup_p99_us=89`."""
    needed = {"p99": "p99 needs 100", "p999": "p999 needs 1000"}
    return [
        (metric, f"{needed[metric.split('_')[1]]} wakeups, and there were {wakeups}")
        for metric, wakeups in counted.items()
    ]


def measured(text: str, name: str, traced: bool) -> Measurement:
    return collect(text, name.replace("-", "_"), plan(name), device(2, 1), traced)


@EACH
def test_each_value_is_computed(name: str, traced: bool) -> None:
    """Of 1000 requests ten end late, so that 990 start after a sleep."""
    found = measured(TEXTS[name, traced], name, traced)
    assert (found.failure, found.unsupported) == (None, [] if traced else too_few(wakeup_p999_us=990))
    assert found.values == EXPECTED[name, traced]


@pytest.mark.parametrize("name", ["rt-app", "rt-app-scopes"])
def test_a_thousand_wakeups_have_their_p999(name: str) -> None:
    text = TEXTS[name, False].replace("4 980", "4 990").replace("11 990", "11 1000")
    one = '"delay": 150, "loop": 1, "phases": {"request": {"loop": '
    text = text.replace("1 500 0", "1 510 0").replace(f"{one}500", f"{one}510")
    found = measured(text, name, False)
    assert (found.failure, found.unsupported) == (None, [])
    assert (found.values["wakeup_p999_us"], found.values["wakeup_max_us"]) == (200, 5000)


def test_recorded_output_is_read() -> None:
    """100 requests beside a load, eleven of them late, and 12109 switches of the whole device."""
    found = measured((RECORDED / "rt-app-2cpu-untraced.txt").read_text(), "rt-app", False)
    assert (found.failure, found.unsupported) == (None, too_few(wakeup_p99_us=89, wakeup_p999_us=89))
    assert found.values == {
        "wakeup_p50_us": 906,
        "wakeup_max_us": 124000,
        "late_share": 11,
        "run_p50_us": 42400,
        "run_p99_us": 120000,
        "context_switches_per_1000_requests": 121090,
        "cpu_utilisation": 62.302,
        "works_lost": 0,
    }


def test_recorded_wakeups_are_read() -> None:
    """Most requests ended late on this busy host, so the two threads were woken 15 times, and one was moved once."""
    found = measured((RECORDED / "rt-app-2cpu-traced.txt").read_text(), "rt-app", True)
    assert (found.failure, found.unsupported) == (None, too_few(scheduling_p99_us=15))
    assert found.values == {
        "migrations_per_1000_requests": 10,
        "wakeups_per_request": 0.15,
        "scheduling_p50_us": 341,
    }


def test_recorded_places_of_works_are_read() -> None:
    """432 of 510 works of kcryptd started on the CPU that queued them, while 17 of 40 requests ended late."""
    text = (RECORDED / "rt-app-scopes-2cpu-traced.txt").read_text()
    setting = "scope=system,strict=0"
    found = collect(text, "rt_app_scopes", plan("rt-app-scopes"), device(2, 1), True, setting=setting)
    assert (found.failure, found.unsupported) == (None, too_few(scheduling_p99_us=27))
    assert found.values == {
        "migrations_per_1000_requests": 275,
        "wakeups_per_request": 27 / 40,
        "scheduling_p50_us": 454,
        "local_cpu_share": 100 * 432 / 510,
        "local_l3_share": 100,
        "local_l3_by_chance": 100,
    }


@EACH
@pytest.mark.parametrize(
    ("text", "instead", "reason"),
    [
        ("0 500 10\n", "0 499 10\n", "thread 0 completed 499 of 500 requests"),
        ("0 500 10\n", "", "thread 0 completed 0 of 500 requests"),
        ("0 500 10\n", "0 500 10\n2 500 0\n", "log of thread 2, which was not requested"),
        ("0 500 10\n", "0 500 501\n", "thread 0 ended 501 of 500 requests late"),
        ("0 500 10\n", "0 500\n", "requests: unreadable line"),
        ('"loop": 500', '"loop": "x"', "description of the threads is not readable"),
        ('"phases"', '"phase"', "description of the threads is not readable"),
        ('"loop": 500', '"loop": 0', "no request was requested|completed 500 of 0 requests"),
    ],
)
def test_requests_that_were_not_executed_are_not_measured(
    name: str, traced: bool, text: str, instead: str, reason: str
) -> None:
    found = measured(TEXTS[name, traced].replace(text, instead), name, traced)
    assert found.values == {}
    assert found.failure is not None and found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert re.search(reason, found.failure.summary), found.failure.summary


@pytest.mark.parametrize("name", ["rt-app", "rt-app-scopes"])
@pytest.mark.parametrize(("text", "instead"), [("11 990", "11 989"), ("4 980", "4 981")])
def test_histograms_have_the_requests_of_the_logs(name: str, text: str, instead: str) -> None:
    found = measured(TEXTS[name, False].replace(text, instead), name, False)
    assert found.values == {}
    assert found.failure is not None and "wakeups of 1000 requests, 10 of them late" in found.failure.summary


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize(
    ("name", "text", "instead", "reason"),
    [
        ("rt-app", "executed 400", "executed 0", "the load beside the workload executed no work"),
        ("rt-app", "executed 400", "executed 401", "executed 401 of 400 planned"),
        ("rt-app-scopes", "load_ios\t90", "load_ios\t0", "no I/O while requests were executed"),
        ("rt-app-scopes", '"error": 0', '"error": 5', "fio failed with error 5"),
        ("rt-app-scopes", '"total_ios": 60', '"total_ios": -1', "fio's result is not readable"),
    ],
)
def test_load_that_did_nothing_is_not_measured(name: str, traced: bool, text: str, instead: str, reason: str) -> None:
    found = measured(TEXTS[name, traced].replace(text, instead), name, traced)
    assert found.values == {}
    assert found.failure is not None and found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert reason in found.failure.summary


def test_works_lost_beside_the_requests_are_a_value() -> None:
    found = measured(TEXTS["rt-app", False].replace("executed 400", "executed 398"), "rt-app", False)
    assert found.values["works_lost"] == 2


def test_requests_that_all_end_late_have_no_wakeup() -> None:
    """An emulator may be that slow: no figure of wakeups, and no failure."""
    text = re.sub(r"(begin\thistogram wakeup_latency_us\n).*?(end)", r"\1\2", TEXTS["rt-app", False], flags=re.DOTALL)
    found = measured(text.replace("0 500 10", "0 500 500").replace("1 500 0", "1 500 500"), "rt-app", False)
    assert found.failure is None
    reason = "no request waited for its timer: 1000 of 1000 ended after their period"
    assert dict(found.unsupported) == {f"wakeup_{name}_us": reason for name in ("p50", "p99", "p999", "max")}
    assert found.values["late_share"] == 100


def test_kernel_that_does_not_name_works_has_the_other_counts() -> None:
    lacking = "".join(
        f"unsupported\t{metric}\tthis kernel refuses the histogram\n"
        for metric in ("local_cpu_share", "local_l3_share", "local_l3_by_chance")
    )
    text = TEXTS["rt-app-scopes", True].replace(PAIRS, lacking)
    found = measured(text, "rt-app-scopes", True)
    assert found.values == SCHEDULING
    assert len(found.unsupported) == 3


@EACH
def test_output_cut_off_anywhere_never_gives_another_figure(name: str, traced: bool) -> None:
    text = TEXTS[name, traced]
    for end in range(len(text)):
        found = measured(text[:end], name, traced).values
        assert found == {} or found == EXPECTED[name, traced], text[:end]
