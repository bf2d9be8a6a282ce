"""Parser of plan max-active, with recorded output and that of broken kernels.

The records are of an emulated device with two CPUs, Linux 6.12.117 and a busy host. `...-exceeds` and `...-loses` are
of that kernel with its code changed: a comparison that allows one work more than max_active, and a work whose end lets
no waiting work start.
"""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_worker.measure.collect import Measurement, collect, read_records
from wqlab_worker.measure.parsers.max_active import operations

from .test_recorded import RECORDED, device, plan

TINY = device(2, 1)
RULES = ("rule_violations", "limit_violations", "concurrency_deficit", "deadlocks", "works_lost")


def recorded(name: str) -> str:
    return (RECORDED / f"max-active-2cpu-{name}.txt").read_text()


FAN = recorded("fan-percpu-4")
FAIR = recorded("fair-percpu-4")


def measure(text: str, setting: str = "max_active=4") -> Measurement:
    return collect(text, "max_active", plan("max-active"), TINY, False, setting=setting)


def rules(found: Measurement) -> list[float | None]:
    """The values of RULES; None for what the scenario does not count."""
    return [found.values.get(name) for name in RULES]


def with_counts(text: str, **counts: int) -> str:
    """The recorded output with other counts of the module."""
    for name, value in counts.items():
        text, times = re.subn(rf"^{name} \d+$", f"{name} {value}", text, count=1, flags=re.MULTILINE)
        assert times == 1
    return text


def test_fan_of_a_good_kernel_reaches_the_limit_on_both_cpus() -> None:
    found = measure(FAN)
    assert found.failure is None
    assert rules(found) == [0, 0, 0, None, 0]
    assert (found.values["concurrency"], found.values["works_executed"]) == (2 * 4, 2 * 301)
    assert found.facts["max_active of percpu workqueues"] == "applies to each CPU"
    assert {str(name): str(reason) for name, reason in found.unsupported} == {
        "deadlocks": "counted in scenarios nested-* and crossed-* only",
        **dict.fromkeys(("overtaken_max", "overtaken_mean", "least_served_share"), "counted in scenarios fair-* only"),
    }
    assert {reason.cause for _, reason in found.unsupported} == {NotMeasuredCause.LACKING}


def test_times_of_a_fan_are_read() -> None:
    text = with_counts(FAN, delays=32, delays_ns=320_000, delay_max_ns=36_289, waiting_us=4000, full_us=3000)
    found = measure(text).values
    assert (found["start_delay_mean_us"], found["start_delay_max_us"], found["at_limit_share"]) == (10, 36.289, 75)


def test_default_limit_is_256_in_the_system() -> None:
    found = measure(recorded("fan-unbound-default"), setting="")
    assert rules(found) == [0, 0, 0, None, 0]
    assert found.values["concurrency"] == 256
    assert found.facts["max_active by default"] == "256"


def test_chains_of_a_good_kernel_end() -> None:
    found = measure(recorded("nested-unbound-4"))
    assert rules(found) == [0, 0, None, 0, 0]
    assert (found.values["concurrency"], found.values["works_executed"]) == (4, 10 * 4 * 4)


def test_works_are_overtaken_by_as_many_as_the_limit_allows() -> None:
    """With the default, all 200 works of the greedy workqueue start before the first of each other one."""
    limited, unlimited = measure(FAIR).values, measure(recorded("fair-percpu-default"), setting="").values
    assert (limited["overtaken_max"], unlimited["overtaken_max"]) == (4, 200)
    assert unlimited["overtaken_mean"] == 600 / 3 and limited["overtaken_mean"] <= 4
    assert limited["least_served_share"] > 80 and unlimited["least_served_share"] == 0
    assert limited["works_executed"] == 261 + 257, "of both requests"


def test_fairness_is_that_of_the_counts() -> None:
    text = with_counts(FAIR, polite=60, overtaken=150, overtaken_max=4)
    before, after = text.split("begin\tshares\n")
    found = measure(before + "begin\tshares\n" + with_counts(after, least_served=48)).values
    assert (found["overtaken_mean"], found["least_served_share"]) == (2.5, 75)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fan-percpu-4-exceeds", [2, 2, 0, None, 0]),
        ("nested-unbound-4-exceeds", [1, 1, None, 0, 0]),
        ("nested-percpu-4-loses", [4, 0, None, 4, 0]),
    ],
)
def test_planted_faults_are_counted(name: str, expected: list[float | None]) -> None:
    assert rules(measure(recorded(name))) == expected


def test_places_that_no_work_takes_are_counted_with_the_works_that_are_lost() -> None:
    found = measure(recorded("fan-percpu-4-loses"))
    total, exceeded, deficit, deadlocks, lost = rules(found)
    assert (exceeded, deadlocks) == (0, None)
    assert deficit and lost and total == deficit + lost
    assert found.values["works_executed"] + lost == 2 * 65


def test_works_of_both_requests_are_lost() -> None:
    found = measure(recorded("fair-percpu-4-loses"))
    assert found.values["works_lost"] == found.values["rule_violations"] > 241
    assert {reason for name, reason in found.unsupported if name == "overtaken_mean"} == {"not all works were executed"}


def test_works_that_nothing_could_overtake_are_no_measure_of_fairness() -> None:
    """A large pool may start all greedy works before another work is queued. The shares can still be measured."""
    found = measure(with_counts(FAIR, polite=0, overtaken=0, overtaken_max=0))
    reasons = {str(name): str(reason) for name, reason in found.unsupported}
    why = "all 200 works of the greedy workqueue had started before another one was queued"
    assert {reasons[name] for name in ("overtaken_max", "overtaken_mean")} == {why}
    assert found.values["least_served_share"] > 80


def test_limit_that_is_not_reached_gives_no_delay() -> None:
    """As with 300 works and the default of 1024 of newer kernels."""
    counts = {"wanted": 600, "peak": 600, "slots": 0, "delays": 0, "delays_ns": 0, "waiting_us": 0, "full_us": 0}
    found = measure(with_counts(FAN, **counts))
    assert found.failure is None and found.values["rule_violations"] == 0
    reasons = {str(name): str(reason) for name, reason in found.unsupported}
    why = "no work had to wait: 602 works were queued and the limits allow 600 at once"
    assert {reasons[name] for name in ("start_delay_mean_us", "start_delay_max_us", "at_limit_share")} == {why}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (FAN.replace("deadlocks 0\n", ""), "the module's result lacks 'deadlocks'"),
        (FAN.replace("lost 0\n", "lost -1\n"), "the module's result is unreadable"),
        (with_counts(FAN, queued=603), "602 executed and 0 lost works are not the 603 queued ones"),
        (with_counts(FAN, excess=1), "0 works beyond the limit and 602 executed ones in the module's groups"),
        (FAN.replace("0 0 4 4 301\n", "0 0 4 301\n"), "the module's groups are unreadable"),
        (with_counts(FAN, max_active=16), "the module's result is for max_active 16, and 4 was requested"),
        (
            FAN.replace("kind percpu", "kind unbound"),
            "the module's result is for kind unbound, and percpu was requested",
        ),
        (FAN.replace("echo 'shape", "echo 'form"), "the command has no request to the module"),
        (re.sub("; echo .*", "", FAIR), "the command has no request of shape shares"),
        (FAN.replace("end\tfan", "end\tfam"), "no complete `fan`"),
        (with_counts(FAN, waiting_us=1), "us of the waits at the limit: 228843 of 1"),
        (FAIR.replace("works 64\n", "works 56\n"), "works of the least served workqueue: 57 of 56"),
        (FAIR.replace("works 64\n", "works 0\n"), "works of the least served workqueue: 57 of 0"),
    ],
)
def test_inconsistent_result_is_not_measured(text: str, reason: str) -> None:
    found = measure(text)
    assert found.values == {}
    assert found.failure is not None
    assert reason in found.failure.summary


def test_limit_that_the_kernel_does_not_use_is_unsupported() -> None:
    text = re.sub(r"^(setting(_after)?\tmax_active\t)4$", r"\g<1>8", FAN, flags=re.MULTILINE)
    [(metric, reason)] = measure(text).unsupported
    assert (metric, reason.cause) == (None, NotMeasuredCause.SETTING_NOT_USED)


def test_works_of_all_requests_are_the_operations_of_instrumented_devices() -> None:
    [(name, made)] = operations(read_records(FAIR)).items()
    assert (name, made.number, made.unit) == ("works_executed", 261 + 257, "work item")
