"""Parsers of plans cmwq-load and test-workqueue, with recorded output and that of broken kernels."""

from __future__ import annotations

import re

import pytest

from wqlab_worker.measure.collect import Measurement, collect

from .test_recorded import RECORDED, device, plan

TINY = device(2, 1)
LOAD = (RECORDED / "cmwq-2cpu.txt").read_text()
"""Workload 0 on an emulated device, Linux 6.12.117."""


def load(text: str) -> Measurement:
    return collect(text, "cmwq_load", plan("cmwq-load"), TINY, False)


def with_counts(**counts: int) -> str:
    """The recorded output with other counts of the module."""
    text = LOAD
    for name, value in counts.items():
        text, times = re.subn(rf"^{name} \d+$", f"{name} {value}", text, flags=re.MULTILINE)
        assert times == 1
    return text


def test_load_result_without_concurrency_deficit_is_read() -> None:
    found = load(LOAD)
    assert found.failure is None
    assert found.unsupported == []
    assert found.values == {
        "concurrency_deficit": 0,
        "works_lost": 0,
        "rule_violations": 0,
        "works_executed": 672,
        "peak_concurrency": 20,
        "workers": 26,
        "rescued_works": 4,
        "kworkers": 50,
        "start_delay_mean_us": 25058,
        "start_delay_max_us": 318962,
        "load_seconds": 0.575,
        "encode_seconds": 1.29,
        "cpu_utilisation": 53.2407,
        "context_switches": 1513,
    }
    assert found.command is not None
    assert "workload=0 burn=S duration_ms=400 cpu=1 seed=1" in found.command


@pytest.mark.parametrize(
    ("counts", "metric", "value"),
    [
        ({"met": 20}, "concurrency_deficit", 6),
        ({"met": 20, "starved": 3}, "concurrency_deficit", 9),
        ({"executed": 670}, "works_lost", 2),
        ({"refused": 1}, "works_lost", 1),
        ({"queue_peak": 3}, "rule_violations", 2),
        ({"reentered": 1, "misplaced": 4}, "rule_violations", 5),
    ],
)
def test_broken_workqueue_gives_nonzero_counts(counts: dict[str, int], metric: str, value: int) -> None:
    assert load(with_counts(**counts)).values[metric] == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LOAD.replace("starved 0\n", ""), "the module's result lacks 'starved'"),
        (LOAD.replace("met 26", "met -1"), "the module's result is unreadable"),
        (LOAD.replace("executed 672", "executed 900"), "executed 900 of 672 planned work items"),
        (LOAD.replace("end\tload", "end\tlaod"), "no complete `load`"),
    ],
)
def test_inconsistent_result_is_not_measured(text: str, reason: str) -> None:
    found = load(text)
    assert found.values == {}
    assert found.failure is not None
    assert reason in found.failure.summary


def test_kernel_without_the_module_is_unsupported_with_its_error() -> None:
    said = "module cmwq_load does not build against this kernel: run.c:9:1: error: no such thing"
    assert load(f"unsupported\t*\t{said}\n").unsupported == [(None, said)]


# --- test-workqueue ---------------------------------------------------------------------------------------------------

LINE = "test_workqueue:   {:<16} {} items/sec\tp50={}\tp90={}\tp95={} ns\n"
"""As lib/test_workqueue.c of Linux 7.1 prints it."""
SCOPES = ("cpu", "smt", "cache_shard", "cache", "numa", "system")


def benchmark(*lines: str) -> Measurement:
    text = "begin\tbenchmark\ntest_workqueue: running 2 threads, 200 items/thread\n" + "".join(lines)
    text += "end\tbenchmark\nvalue\tcpu_utilisation\t50\nvalue\tcontext_switches\t1000\n"
    return collect(text, "test_workqueue", plan("test-workqueue"), TINY, False)


def test_each_scope_has_its_values() -> None:
    found = benchmark(*(LINE.format(scope, 1000 + n, n, 2 * n, 3 * n) for n, scope in enumerate(SCOPES)))
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values["scopes_run"] == 6
    assert found.values["cache_shard_items_per_s"] == 1002
    assert [found.values[f"system_{p}_ns"] for p in ("p50", "p90", "p95")] == [5, 10, 15]


def test_a_scope_that_failed_is_unsupported_and_the_others_count() -> None:
    lines = [LINE.format(scope, 1000, 1, 2, 3) for scope in SCOPES if scope != "cache_shard"]
    found = benchmark("test_workqueue: write 'cache_shard' failed: -22\n", *lines)
    assert found.values["scopes_run"] == 5
    assert found.values["cache_items_per_s"] == 1000
    assert {metric for metric, _ in found.unsupported} == {
        "cache_shard_items_per_s", "cache_shard_p50_ns", "cache_shard_p90_ns", "cache_shard_p95_ns",
    }  # fmt: skip
    assert all("write 'cache_shard' failed: -22" in reason for _, reason in found.unsupported)


def test_scope_reported_twice_is_not_measured() -> None:
    assert benchmark(LINE.format("cpu", 1, 1, 1, 1), LINE.format("cpu", 2, 1, 1, 1)).failure is not None
