"""Sentences that explain a modelled difference by lock waiting, idle CPUs and functions."""

from __future__ import annotations

import json
from typing import Any

import instrument_examples as examples
import pytest

from wqlab_contracts import instrument
from wqlab_contracts.api.instrument import InstrumentCell
from wqlab_contracts.enums import PAIR, Arm
from wqlab_report.parts.instrument_cells import ProfileFile, instrument_cells
from wqlab_report.parts.time_sentences import MAX_SENTENCES, time_sentences

OPERATIONS = examples.OPERATIONS
BUSY = 20_000
"""Virtual nanoseconds of all CPUs per operation."""
LOCK = {"lock": "pool->lock of pool 3", "site": "__queue_work"}


def lock(wait_share: float, held: int, **names: str) -> dict[str, Any]:
    """Return two acquisitions per operation, which wait for this share of the busy time and hold so many ns each."""
    times = {"wait_ns": round(wait_share * BUSY * OPERATIONS), "held_ns": 2 * held * OPERATIONS}
    return {**LOCK, **names, "acquisitions": 2 * OPERATIONS, **times}


def file(arm: Arm, seed: int, time: dict[str, Any] | None, functions: dict[str, int]) -> ProfileFile:
    """Return the example profile with virtual time; `functions`: name -> virtual ns per operation."""
    document = json.loads(instrument.write(examples.profile(arm, seed)))
    (window,) = document["windows"]
    if time is not None:
        busy = {"busy_ns": BUSY * OPERATIONS, "idle_ns": 9000 * OPERATIONS}
        window["time"] = busy | time
    for each in window["functions"]:
        each["virtual_ns"] = functions.get(each["name"], 0) * OPERATIONS
    return ProfileFile(arm, seed, lambda: json.dumps(document).encode())


def cell(times: dict[Arm, dict[str, Any] | None], functions: dict[Arm, dict[str, int]] | None = None) -> InstrumentCell:
    named = functions or {}
    files = [file(arm, seed, time, named.get(arm, {})) for seed in range(6) for arm, time in times.items()]
    (found,) = instrument_cells(examples.PLAN, [""], files)
    return found


def of_kernels(before: dict[str, Any], after: dict[str, Any]) -> dict[Arm, dict[str, Any] | None]:
    return dict(zip(PAIR, (before, after), strict=True))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            {"locks": [lock(0.41, 610, site_line="kernel/workqueue.c:2310")]},
            {"locks": [lock(0.29, 380, site_line="kernel/workqueue.c:2316")]},
            [
                "pool->lock of pool 3, taken by __queue_work (kernel/workqueue.c:2316): waited 41.0 -> 29.0 % of the "
                "CPUs' busy time; held 610 -> 380 ns each time, under 6 of 6 seeds"
            ],
            id="a lock that is held for a shorter time",
        ),
        pytest.param({"locks": [lock(0.41, 610)]}, {"locks": [lock(0.405, 610)]}, [], id="a change below a percent"),
        pytest.param(
            {"locks": [lock(0.2, 610)]},
            {"locks": []},
            [
                "pool->lock of pool 3, taken by __queue_work: waited 20.0 -> 0 % of the CPUs' busy time; held "
                "610 -> none ns each time, under 6 of 6 seeds"
            ],
            id="a lock that is not taken any more",
        ),
        pytest.param(
            {"idle_while_work_waits_ns": 4000 * OPERATIONS},
            {"idle_while_work_waits_ns": 1000 * OPERATIONS},
            ["CPUs idled for 4000 -> 1000 ns per fsync while work waited, of 9000 -> 9000 ns that they idled"],
            id="idle while work waits",
        ),
        pytest.param({}, {}, [], id="a model that observed neither locks nor what waits"),
    ],
)
def test_what_changed_is_told(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    assert time_sentences(cell(of_kernels(before, after))) == expected


def test_functions_are_told_by_virtual_time() -> None:
    functions = dict(zip(PAIR, ({"flush_workqueue_prep_pwqs": 1900}, {"flush_workqueue_prep_pwqs": 1200}), strict=True))
    found = cell(of_kernels({}, {}), functions)
    name = "flush_workqueue_prep_pwqs (kernel/workqueue.c, changed by the series)"
    assert time_sentences(found) == [f"{name}: 1900 -> 1200 ns per fsync"]
    assert found.sentences[0].startswith(name), "before the counts"


def test_there_are_at_most_six_sentences() -> None:
    locks = [{"locks": [lock(share, 100, lock=f"lock {number}") for number in range(9)]} for share in (0.1, 0.05)]
    named = [each.name for each in examples.FUNCTIONS if not each.name.startswith("(")]
    functions = {arm: dict.fromkeys(named, 2000 if arm is Arm.BASELINE else 1000) for arm in PAIR}
    found = time_sentences(cell(of_kernels(locks[0], locks[1]), functions))
    assert len(found) == MAX_SENTENCES
    assert sum(each.startswith("lock ") for each in found) == 3


def test_one_kernel_states_where_its_time_goes() -> None:
    found = time_sentences(cell({Arm.BASELINE: {"locks": [lock(0.41, 610)]}}))
    place = "pool->lock of pool 3, taken by __queue_work"
    assert found == [f"{place}: waited 41.0 % of the CPUs' busy time; held 610 ns each time"]


def test_counts_without_a_model_say_nothing_of_time() -> None:
    without = cell(dict.fromkeys(PAIR))
    assert time_sentences(without) == []
    assert without.locks == [] and without.idle == {}
