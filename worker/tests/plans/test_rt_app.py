"""Plans rt-app and rt-app-scopes: what rt-app is told to do, its logs, fio beside it, and histograms of works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wqlab_worker.measure.parsers.histogram import read_histogram

from .scripts import AWKS, call, plan

NAME = "rt-app"
SIZES = {
    "THREADS_PER_CPU": "1/1",
    "RUN_US": "100",
    "PERIOD_US": "10000",
    "REQUESTS": "4",
    "NS_PER_LOOP": "30",
    "TIMER_SLACK_NS": "1",
}
LOG = """\
# Policy : SCHED_OTHER priority : 0
#idx     perf      run   period       start         end      rel_st      slack c_duration   c_period     wu_lat
   1     3333      119    10004   84892463311 84892474422       10438       9881        100      10000          4
   1     3333      122    10001   84892474430 84892484041       21557       9875        100      10000       1234
   1     3333    12345    12345   84892484043 84892496064       31171      -2469        100      10000          0
"""


def test_requests_of_the_threads_are_spread_over_the_period(tmp_path: Path) -> None:
    """Three CPUs; the first request of a thread is a period after the start, and its log fits into its buffer."""
    command = "nproc() { echo 3; }\ndescribe_requests | frame request"
    text = "\n".join(call(NAME, command, tmp_path, **{**SIZES, "REQUESTS": "30000"}).frame("request"))
    described = json.loads(text)
    tasks = described["tasks"]
    assert [(name, task["delay"]) for name, task in tasks.items()] == [
        ("request0", 10000),
        ("request1", 13333),
        ("request2", 16666),
    ]
    assert {task["loop"] for task in tasks.values()} == {1}
    assert tasks["request1"]["phases"] == {
        "request": {"loop": 30000, "run": 100, "timer": {"ref": "unique", "period": 10000, "mode": "absolute"}}
    }
    assert described["global"]["calibration"] == 30
    assert described["global"]["log_size"] << 20 >= 30000 * 88


def test_fewer_threads_than_cpus_are_at_least_one(tmp_path: Path) -> None:
    command = 'record fact threads "$(nproc() { echo 8; }; threads) $(nproc() { echo 1; }; threads)"'
    assert call(NAME, command, tmp_path, **{**SIZES, "THREADS_PER_CPU": "1/2"}).facts == {"threads": "4 1"}


@pytest.mark.parametrize("awk", AWKS)
def test_logs_are_reduced_to_requests_and_times(tmp_path: Path, awk: str) -> None:
    """The third request ended late, and the one after it started without sleep: two wakeups of three requests."""
    logs = tmp_path / "work/requests"
    logs.mkdir(parents=True)
    (logs / "log-request1-1.log").write_text(LOG)
    (logs / "log-request0-0.log").write_text(LOG.replace("\n   1 ", "\n   0 ").replace("     10000  ", "     20000  "))
    found = call(NAME, f"AWK='{awk}'\nreduce_requests", tmp_path, **SIZES)
    assert found.frame("requests") == ["1 3 1"], "requests of another period do not count"
    assert read_histogram(found, "wakeup_latency_us") == {4: 1, 1230: 1}
    assert read_histogram(found, "run_us") == {119: 1, 122: 1, 12300: 1}


STAND_INS = """\
nproc() { echo 2; }
run_requests() { echo "$run"; return ${status_of_requests:-0}; }
dmsetup() { echo 252:3; }
"""


def test_requests_that_fail_are_named(tmp_path: Path) -> None:
    command = f'{STAND_INS}run="Cannot open logfile" status_of_requests=1\n(workload) || :'
    found = call(NAME, command, tmp_path, **SIZES, BESIDE="nothing")
    assert found.failure and found.failure.summary == "rt-app ended with exit status 1: Cannot open logfile"
    assert found.command == "rt-app requests.json"


def test_timer_slack_that_the_kernel_does_not_take_is_named(tmp_path: Path) -> None:
    """The kernel refuses a slack that is larger than any number that it reads."""
    slack = "9" * 30
    found = call(NAME, "nproc() { echo 2; }\n(workload) || :", tmp_path, **{**SIZES, "TIMER_SLACK_NS": slack})
    assert found.failure and found.failure.summary.endswith(f"the kernel does not accept a timer slack of {slack} ns")


FIO = """\
fio() { echo "$*" >"$WORK/arguments"; echo "1 0 0 0 1 0" >"$STAT"; trap 'echo "{}" >"$WORK/fio.json"; exit 128' TERM
while :; do sleep 0.01; done; }
"""


def test_ios_are_counted_while_requests_are_executed(tmp_path: Path) -> None:
    """fio completes two I/Os before the requests start, five while they run, and then runs until it is stopped."""
    stat = tmp_path / "sys/dev/block/252:3/stat"
    stat.parent.mkdir(parents=True)
    stat.write_text("0 0 0 0 0 0\n")
    executes = 'run_requests() { echo "3 0 0 0 4 0" >"$STAT"; }'
    command = f"{STAND_INS}{FIO}{executes}\njobs=1 region_k=1024\nworkload\nresult"
    (tmp_path / "work/requests").mkdir(parents=True)
    load = {"BESIDE": "dm-crypt", "IODEPTH": "1", "BLOCK_KIB": "4", "RATE_IOPS": "20"}
    found = call("rt-app-scopes", command, tmp_path, **SIZES, **load, STAT=str(stat), SYS=str(tmp_path / "sys"))
    assert found.failure is None
    assert found.values["load_ios"] == 5
    assert found.frame("fio") == ["{}"]
    assert "--numjobs=1 --size=1024k" in found.facts["load beside"]


def test_fio_that_ends_before_the_requests_is_a_failure(tmp_path: Path) -> None:
    command = '(io=$(sh -c "echo \\$\\$"); end_io) || :'
    found = call("rt-app-scopes", command, tmp_path, BESIDE="dm-crypt")
    assert found.failure and found.failure.summary == "fio ended before the requests did"


WORKS = """\
# trigger info: hist:keys=work:vals=hitcount:crypt_at=common_timestamp.usecs:size=65536 [active]

{ work: 18446612682193100800 } hitcount:          3
    Dropped: {dropped}
"""
PLACES = """\
# trigger info: hist:keys=from,to:vals=hitcount:sort=hitcount:size=2048 [active]

{ from:          0, to:          1 } hitcount:          3
{ from:          1, to:          1 } hitcount:         40

Totals:
    Hits: 43
    Dropped: 0
"""


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("dropped", [0, 7])
def test_places_of_works_are_read(tmp_path: Path, awk: str, dropped: int) -> None:
    events = tmp_path / "tracing/instances/wqlab-wakeups/events"
    for event, text in {
        "workqueue/workqueue_queue_work": WORKS.replace("{dropped}", str(dropped)),
        "workqueue/workqueue_execute_start": WORKS.replace("{dropped}", "0"),
        "synthetic/wqlab_crypt": PLACES,
    }.items():
        (events / event).mkdir(parents=True)
        (events / event / "hist").write_text(text)
    command = f"AWK='{awk}'\nPLACES=p ON_START=s ON_QUEUE=q\nuntrace_works"
    found = call("rt-app-scopes", command, tmp_path)
    assert sorted(found.frame("pairs")) == ["0 1 3", "1 1 40"]
    assert found.overrun == dropped


def test_kernel_without_histograms_is_unsupported(tmp_path: Path) -> None:
    (tmp_path / "tracing/instances").mkdir(parents=True)
    (tmp_path / "tracing/tracing_on").touch()
    found = call(NAME, "measure_traced", tmp_path, **SIZES)
    assert [name for name, _ in found.unsupported] == ["traced"]
    assert "CONFIG_HIST_TRIGGERS" in found.unsupported[0][1]
    assert found.failure is None


def test_scopes_are_those_of_dm_crypt_affinity() -> None:
    axes = {axis.name: axis.values for axis in plan("rt-app-scopes").axes}
    crypt = {axis.name: axis.values for axis in plan("dm-crypt-affinity").axes}
    assert axes == {name: values for name, values in crypt.items() if name != "local"}
    assert plan("rt-app-scopes").reference_setting == plan("dm-crypt-affinity").reference_setting
