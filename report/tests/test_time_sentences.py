"""Sentences that explain a modelled difference by waits for spinlocks and the virtual time of functions."""

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


def spin(wait_share: float, wait_ns: int, **names: str) -> dict[str, Any]:
    """Return waits for this share of the busy time, of so many nanoseconds each."""
    whole = round(wait_share * BUSY * OPERATIONS)
    names = {"lock": "unbound worker_pool", "site": "__queue_work", **names}
    return {**names, "count": whole // wait_ns, "wait_ns": whole}


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
            [spin(0.4, 800, site_line="kernel/workqueue.c:2310")],
            [spin(0.3, 400, site_line="kernel/workqueue.c:2316")],
            [
                "lock in unbound worker_pool, taken by __queue_work (kernel/workqueue.c:2316): CPUs waited "
                "40.0 -> 30.0 % of their busy time; a wait took 800 ns -> 400 ns, under 6 of 6 seeds"
            ],
            id="shorter waits",
        ),
        pytest.param([spin(0.4, 800)], [spin(0.395, 800)], [], id="a change below a percent"),
        pytest.param(
            [spin(0.2, 800, lock="")],
            [],
            [
                "lock, taken by __queue_work: CPUs waited 20.0 -> 0 % of their busy time; a wait took 800 ns -> 0 ns, "
                "under 6 of 6 seeds"
            ],
            id="a lock without a name that nobody waits for any more",
        ),
        pytest.param([], [], [], id="no waits"),
    ],
)
def test_waits_for_spinlocks_have_sentences(
    before: list[dict[str, Any]], after: list[dict[str, Any]], expected: list[str]
) -> None:
    assert time_sentences(cell(of_kernels({"spins": before}, {"spins": after}))) == expected


def test_functions_are_told_by_virtual_time() -> None:
    functions = dict(zip(PAIR, ({"flush_workqueue_prep_pwqs": 1900}, {"flush_workqueue_prep_pwqs": 1200}), strict=True))
    found = cell(of_kernels({}, {}), functions)
    name = "flush_workqueue_prep_pwqs (kernel/workqueue.c, changed by the series)"
    assert time_sentences(found) == [f"{name}: 1.9 us -> 1.2 us per fsync"]
    assert found.sentences[0].startswith(name), "before the counts"


def test_there_are_at_most_six_sentences() -> None:
    named = [each.name for each in examples.FUNCTIONS if not each.name.startswith("(")]
    assert len(named) > MAX_SENTENCES
    functions = {arm: dict.fromkeys(named, 2000 if arm is Arm.BASELINE else 1000) for arm in PAIR}
    locks = [{"spins": [spin(share, 100, site=f"site{number}") for number in range(9)]} for share in (0.1, 0.05)]
    found = time_sentences(cell(of_kernels(*locks), functions))
    assert len(found) == MAX_SENTENCES
    assert sum(each.startswith("lock in ") for each in found) == 3, "functions have room too"


def test_change_below_a_percent_is_not_told() -> None:
    functions = dict(zip(PAIR, ({"flush_workqueue_prep_pwqs": 1900}, {"flush_workqueue_prep_pwqs": 1750}), strict=True))
    assert time_sentences(cell(of_kernels({}, {}), functions)) == []


def test_one_kernel_states_where_its_time_goes() -> None:
    lock, function = time_sentences(
        cell({Arm.BASELINE: {"spins": [spin(0.4, 800)]}}, {Arm.BASELINE: {"flush_workqueue_prep_pwqs": 1900}})
    )
    assert lock.endswith("CPUs waited 40.0 % of their busy time; a wait took 800 ns")
    assert function.endswith(": 1.9 us per fsync")


def test_counts_without_a_model_say_nothing_of_time() -> None:
    assert time_sentences(cell(dict.fromkeys(PAIR))) == []
