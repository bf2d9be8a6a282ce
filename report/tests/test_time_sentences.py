"""Sentences that explain a modelled difference by the virtual time of functions."""

from __future__ import annotations

import json
from typing import Any

import instrument_examples as examples

from wqlab_contracts import instrument
from wqlab_contracts.api.instrument import InstrumentCell
from wqlab_contracts.enums import PAIR, Arm
from wqlab_report.parts.instrument_cells import ProfileFile, instrument_cells
from wqlab_report.parts.time_sentences import MAX_SENTENCES, time_sentences

OPERATIONS = examples.OPERATIONS
BUSY = 20_000
"""Virtual nanoseconds of all CPUs per operation."""


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


def test_functions_are_told_by_virtual_time() -> None:
    functions = dict(zip(PAIR, ({"flush_workqueue_prep_pwqs": 1900}, {"flush_workqueue_prep_pwqs": 1200}), strict=True))
    found = cell(of_kernels({}, {}), functions)
    name = "flush_workqueue_prep_pwqs (kernel/workqueue.c, changed by the series)"
    assert time_sentences(found) == [f"{name}: 1900 -> 1200 ns per fsync"]
    assert found.sentences[0].startswith(name), "before the counts"


def test_there_are_at_most_six_sentences() -> None:
    named = [each.name for each in examples.FUNCTIONS if not each.name.startswith("(")]
    assert len(named) > MAX_SENTENCES
    functions = {arm: dict.fromkeys(named, 2000 if arm is Arm.BASELINE else 1000) for arm in PAIR}
    assert len(time_sentences(cell(of_kernels({}, {}), functions))) == MAX_SENTENCES


def test_change_below_a_percent_is_not_told() -> None:
    functions = dict(zip(PAIR, ({"flush_workqueue_prep_pwqs": 1900}, {"flush_workqueue_prep_pwqs": 1750}), strict=True))
    assert time_sentences(cell(of_kernels({}, {}), functions)) == []


def test_one_kernel_states_where_its_time_goes() -> None:
    (found,) = time_sentences(cell({Arm.BASELINE: {}}, {Arm.BASELINE: {"flush_workqueue_prep_pwqs": 1900}}))
    assert found.endswith(": 1900 ns per fsync")


def test_counts_without_a_model_say_nothing_of_time() -> None:
    assert time_sentences(cell(dict.fromkeys(PAIR))) == []
