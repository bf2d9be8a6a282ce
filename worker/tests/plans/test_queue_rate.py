"""Plan queue-rate: functions of its script, with files as the module and the kernel write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.enums import TraceMode
from wqlab_contracts.messages import MeasuredTopology
from wqlab_worker.measure.collect import Records, collect

from .scripts import AWKS, call, plan

NAME = "queue-rate"
PROFILE = {"INTERVALS": "8", "INTERVAL_US": "1000", "PRODUCERS": "all", "FIRST": "0"}
CELL = {"SCENARIO": "every-cpu", "SETTING_SCOPE": "cache"}
STAND_INS = "load_module() { :; }\nsettle() { :; }\ncpu_times() { echo 0 0 0; }\n"
"""Functions that need a device; /proc/stat of this machine is not that of the test."""


def lines(works: list[int], ns: int = 1_000_000) -> str:
    """Intervals of 1 ms, as the module prints them."""
    return "".join(f"{number} {ns} {done}\n" for number, done in enumerate(works))


def module(tmp_path: Path, works: list[int], scope: str = "cache", lost: int = 0) -> dict[str, str]:
    """Write the files of the module, its workqueue and 8 CPUs; a work takes 100 ns to queue and 1000 to start."""
    rate, workqueue = tmp_path / "rate", tmp_path / "workqueue"
    rate.mkdir()
    workqueue.mkdir()
    (rate / "start").write_text("")
    (rate / "result").write_text(f"producers 8\ncpus 0-7\nintervals {len(works)}\ninterval_us 1000\nlost {lost}\n")
    (rate / "intervals").write_text(lines(works))
    for name, ns in (("queue", 100), ("queue_to_start", 1000)):
        (rate / name).write_text("".join(f"{number} {ns} {done}\n" for number, done in enumerate(works) if done))
    (workqueue / "affinity_scope").write_text(f"{scope}\n")
    online = tmp_path / "sys/devices/system/cpu/online"
    online.parent.mkdir(parents=True)
    online.write_text("0-7\n")
    return {"RATE": str(rate), "WORKQUEUE": str(workqueue), "SYS": str(tmp_path / "sys"), **PROFILE, **CELL}


def measure(tmp_path: Path, works: list[int], **changes: str) -> Records:
    return call(NAME, f"{STAND_INS}measure", tmp_path, **(module(tmp_path, works) | changes))


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize(
    ("works", "dropped", "stable"),
    [
        ([100] * 8, 0, 1),
        ([86, 100, 100, 100, 100, 100, 100, 100], 0, 1),  # the first three are 95.3 % of the others
        ([84, 100, 100, 100, 100, 100, 100, 100], 1, 1),  # 94.7 %
        ([300, 300, 300, 100, 100, 100, 100, 100], 3, 1),
        ([10, 20, 30, 40, 100, 100, 100, 100], 4, 1),
        ([10, 20, 40, 80, 160, 320, 640, 1280], 4, 0),
        ([100, 100, 100, 100, 100, 100, 100, 150], 4, 0),  # the last one differs from all before it
        ([0, 0, 0, 0, 0, 0, 0, 0], 0, 1),
        ([70, 70, *[100] * 14], 2, 1),  # 80 %, then 90 %
        ([100, 50], 1, 0),  # too few to compare
    ],
)
def test_intervals_before_the_stable_rate_are_dropped(
    tmp_path: Path, awk: str, works: list[int], dropped: int, stable: int
) -> None:
    (tmp_path / "intervals").write_text(lines(works))
    found = call(NAME, f'AWK="{awk}"\nrecord fact found "$(steady_state <{tmp_path}/intervals)"', tmp_path)
    kept = works[dropped:]
    expected = (dropped, stable, sum(kept), len(kept) * 1_000_000, sum(works))
    assert found.facts["found"] == " ".join(map(str, expected))


@pytest.mark.parametrize("awk", AWKS)
def test_percentiles_are_of_the_kept_intervals(tmp_path: Path, awk: str) -> None:
    """Interval 0 is dropped. Of 100 works 50 took 100 ns, 40 took 200, 6 took 300 and 4 took 1000."""
    rate = tmp_path / "rate"
    rate.mkdir()
    (rate / "queue").write_text("0 9999 1000\n1 100 20\n1 200 40\n1 1000 1\n2 100 30\n2 300 6\n2 1000 3\n")
    found = call(NAME, f'AWK="{awk}"\npercentiles queue 1 100 50 90 95 99', tmp_path, RATE=str(rate))
    assert found.values == {"queue_p50_ns": 100, "queue_p90_ns": 200, "queue_p95_ns": 300, "queue_p99_ns": 1000}


def test_percentile_of_too_few_works_is_unsupported(tmp_path: Path) -> None:
    found = measure(tmp_path, [12] * 8)
    assert "queue_p95_ns" in found.values
    assert found.unsupported == [
        (f"{name}_p99_ns", "p99 needs 100 works, and there were 96") for name in ("queue", "queue_to_start")
    ]


def test_histogram_without_all_works_is_a_failure(tmp_path: Path) -> None:
    rate = tmp_path / "rate"
    rate.mkdir()
    (rate / "queue").write_text("0 100 5\n")
    found = call(NAME, "(percentiles queue 0 6 50) || :", tmp_path, RATE=str(rate))
    assert found.failure and found.failure.summary == "histogram queue has 5 works, and the intervals have 6"


def test_every_metric_of_the_plan_is_recorded(tmp_path: Path) -> None:
    text = f"{STAND_INS}cpu_records() {{ record value cpu_utilisation 50; }}\nmeasure"
    found = call(NAME, text, tmp_path, **module(tmp_path, [500, *[1000] * 7]))
    assert found.values == {
        **{"items_per_s": 1e6, "operations": 7500, "intervals_dropped": 1, "rate_unstable": 0, "works_lost": 0},
        **{"producers": 8, "cpu_utilisation": 50},
        **{f"queue_p{p}_ns": 100 for p in (50, 90, 95, 99)},
        **{f"queue_to_start_p{p}_ns": 1000 for p in (50, 95, 99)},
    }
    assert found.values.keys() - {"operations"} == {metric.name for metric in plan(NAME).metrics}
    assert {metric.taken_from for metric in plan(NAME).metrics} == {TraceMode.UNTRACED}
    assert found.settings == found.settings_after == {"scope": "cache"}
    assert found.facts["CPUs of every-cpu"] == "0-7"
    rates = " ".join(["500000", *["1000000"] * 7])
    assert found.facts["rate every-cpu scope=cache"] == f"stable after 1 of 8 intervals, works/s: {rates}"
    request = "producers=all first=0 intervals=8 interval_us=1000"
    assert (tmp_path / "rate/start").read_text() == f"{request}\n"
    assert found.command == f"echo '{request}' >{tmp_path}/rate/start"


def test_rate_that_does_not_become_stable_is_recorded(tmp_path: Path) -> None:
    found = measure(tmp_path, [100 * 2**number for number in range(8)])
    assert (found.values["rate_unstable"], found.values["intervals_dropped"]) == (1, 4)
    assert found.values["items_per_s"] == 1e9 * (1600 + 3200 + 6400 + 12800) / 4e6
    assert found.facts["rate every-cpu scope=cache"].startswith("not stable; figures of the last 4 of 8 intervals, ")


def test_lost_works_are_counted_when_none_is_executed(tmp_path: Path) -> None:
    files = module(tmp_path, [0] * 8, lost=8)
    found = call(NAME, f"{STAND_INS}measure", tmp_path, **files)
    assert (found.failure, found.values["works_lost"]) == (None, 8)
    assert "items_per_s" not in found.values


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"PRODUCERS": "9", "SCENARIO": "eight"}, "this device has 8 CPUs, and scenario eight has 9 producers"),
        ({"WORKQUEUE": "/nonexistent"}, "has no affinity scopes, which came with Linux 6.5"),
    ],
)
def test_cell_that_the_device_lacks_is_unsupported(tmp_path: Path, changes: dict[str, str], reason: str) -> None:
    found = measure(tmp_path, [100] * 8, **changes)
    assert [metric for metric, _ in found.unsupported] == ["*"]
    assert found.unsupported[0][1].endswith(reason)
    assert (found.failure, found.values) == (None, {})


def test_scope_that_the_kernel_refuses_is_unsupported(tmp_path: Path) -> None:
    """As cache_shard before Linux 7.1: the write fails and the scope stays."""
    refuse = 'read_knob() { echo "cache"; }\n'
    changes = module(tmp_path, [100] * 8) | {"SETTING_SCOPE": "cache_shard"}
    found = call(NAME, f"{STAND_INS}{refuse}measure", tmp_path, **changes)
    assert "affinity_scope cache" in dict(found.unsupported)["*"] and "cache_shard" in dict(found.unsupported)["*"]
    assert found.values == {}


def test_module_marks_the_window_of_an_instrumented_device(tmp_path: Path) -> None:
    """The workers are created before, and start and end of the threads are outside."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "wqmark").write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/marks\n')
    (programs / "wqmark").chmod(0o755)
    requests = f'send_request() {{ echo "$1" >>{tmp_path}/requests; }}\n'
    files = module(tmp_path, [100] * 8) | {"WINDOW": "1", "PATH": f"{programs}:/usr/bin:/bin"}
    found = call(NAME, f"{STAND_INS}{requests}measure", tmp_path, **files)
    assert found.values["operations"] == 800
    assert (tmp_path / "marks").read_text() == "track\n"
    where = "producers=all first=0"
    assert (tmp_path / "requests").read_text().splitlines() == [
        f"{where} intervals=1 interval_us=1000",
        f"{where} intervals=8 interval_us=1000 mark=1",
    ]


def test_output_gives_the_metrics_of_the_plan(tmp_path: Path) -> None:
    """Through the parser, as the worker reads it, with the setting read back."""
    text = f"{STAND_INS}cpu_records() {{ record value cpu_utilisation 50; }}\nmeasure"
    call(NAME, f"exec 3>{tmp_path}/output\n{text}", tmp_path, **module(tmp_path, [1000] * 8))
    topology = MeasuredTopology(cpus=8, core=list(range(8)), l3=[0] * 8, node=[0] * 8, package=[0] * 8)
    output = (tmp_path / "output").read_text()
    found = collect(output, plan(NAME).parser, plan(NAME), topology, False, setting="scope=cache")
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values["items_per_s"] == 1e6
