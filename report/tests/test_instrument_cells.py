"""Cells of a report from instrument profiles."""

from __future__ import annotations

import json
from typing import Any

import instrument_examples as examples
import pytest

from wqlab_contracts import instrument
from wqlab_contracts.api.instrument import InstrumentCell
from wqlab_contracts.enums import PAIR, Arm
from wqlab_report.parts import instrument_cells as module
from wqlab_report.parts.instrument_cells import ProfileFile, instrument_cells
from wqlab_report.parts.instrument_sentences import sentences


def cell(files: list[ProfileFile]) -> InstrumentCell:
    (found,) = instrument_cells(examples.PLAN, [""], files)
    return found


def changed(arm: Arm, block: int, **changes: Any) -> ProfileFile:
    """Return a file of the example profile in which `changes` replace fields of the profile."""
    document = json.loads(instrument.write(examples.profile(arm, block))) | changes
    return ProfileFile(arm, block, lambda: json.dumps(document).encode())


def test_totals_are_means_of_counts_per_operation_over_the_seeds() -> None:
    found = cell(examples.files())
    assert found.seeds == list(range(6))
    for arm in PAIR:
        expected = sum(examples.values("instructions_per_op", arm)) / 6
        assert found.totals[arm].instructions == pytest.approx(expected, rel=1e-4)
    assert (found.operation, found.emulator) == ("fsync", "QEMU 7.2.22")


def test_function_that_changed_most_is_first_and_every_seed_agrees() -> None:
    first = cell(examples.files()).changed[0]
    assert (first.name, first.touched) == ("flush_workqueue_prep_pwqs", True)
    assert (first.transfer_seeds, first.instruction_seeds) == (6, 6)
    assert first.per_op[Arm.CANDIDATE].transfers < first.per_op[Arm.BASELINE].transfers / 2


def test_line_is_the_same_in_both_kernels_although_its_number_differs() -> None:
    lock = cell(examples.files()).pairs[0]
    assert lock.taker_line == "kernel/workqueue.c:3991"
    assert lock.taker_source == "raw_spin_lock_irq(&pool->lock);"
    assert lock.per_op[Arm.BASELINE].transfers > 0 < lock.per_op[Arm.CANDIDATE].transfers
    assert lock.seeds == 6


def test_identical_kernels_change_nothing() -> None:
    found = cell(examples.files(control=True))
    assert (found.changed, found.pairs, found.lines) == ([], [], [])
    assert found.sentences[-1] == "no function and no cache line differs between the kernels under 6 seeds"
    assert found.totals[Arm.BASELINE] == found.totals[Arm.CANDIDATE]


def test_only_seeds_of_both_arms_are_used() -> None:
    files = examples.files()
    assert cell(files[1:]).seeds == [1, 2, 3, 4, 5]
    assert cell(examples.files([Arm.BASELINE])).totals.keys() == {Arm.BASELINE}


@pytest.mark.parametrize(
    ("bad", "note"),
    [
        (ProfileFile(Arm.CANDIDATE, 5, lambda: b"{}"), "was not read: not an instrument profile"),
        (ProfileFile(Arm.CANDIDATE, 5, lambda: None), "is not in the store"),
        (changed(Arm.CANDIDATE, 5, seed=4), "was not read: it is of seed 4"),
    ],
)
def test_profile_that_cannot_be_read_is_noted(bad: ProfileFile, note: str) -> None:
    found = cell([*examples.files()[:-1], bad])
    assert found.seeds == [0, 1, 2, 3, 4]
    assert note in found.notes[0]


def test_windows_of_other_scenarios_and_topologies_are_left_out() -> None:
    windows = json.loads(instrument.write(examples.profile(Arm.CANDIDATE, 5)))["windows"]
    other = changed(Arm.CANDIDATE, 5, windows=[windows[0] | {"scenario": "other"}])
    assert cell([*examples.files()[:-1], other]).seeds == [0, 1, 2, 3, 4]
    small = changed(Arm.CANDIDATE, 5, topology=[{"core": 0, "l3": 0, "node": 0}], windows=[windows[0] | {"cpus": []}])
    assert cell([*examples.files()[:-1], small]).seeds == [0, 1, 2, 3, 4]
    assert instrument_cells(examples.PLAN, ["a=b"], examples.files()) == []


def test_seeds_and_changes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SEEDS", 2)
    found = cell(examples.files())
    assert len(found.changed) == 10 and found.seeds == [0, 1]


def test_line_of_data_says_how_many_cache_lines_have_its_name() -> None:
    found = {line.symbol: line for line in cell(examples.files()).lines}
    assert {symbol: line.addresses for symbol, line in found.items()} == {
        "unbound worker_pool + 0x40": 1,
        "pool_workqueue cache + 0x80": 4,
        "runqueues (per-CPU) + 0x940": 16,
    }
    moved = [
        line.transfers.total / examples.OPERATIONS
        for seed in range(examples.SEEDS)
        for line in examples.profile(Arm.BASELINE, seed).windows[0].lines
        if line.symbol == "pool_workqueue cache + 0x80"
    ]
    per_fsync = found["pool_workqueue cache + 0x80"].per_op[Arm.BASELINE].transfers
    assert per_fsync == pytest.approx(sum(moved) / examples.SEEDS, rel=1e-3)


def test_sentences_name_function_line_and_writer() -> None:
    first, second, *_ = cell(examples.files()).sentences
    assert first.endswith("instructions") and "cache lines move per fsync" in first
    assert second.startswith("flush_workqueue_prep_pwqs (kernel/workqueue.c, changed by the series): ")
    assert "cache lines per fsync, under 6 of 6 seeds" in second
    assert "at kernel/workqueue.c:3991 raw_spin_lock_irq(&pool->lock), written last by try_to_wake_up" in second


def test_sentence_about_data_names_the_number_of_lines() -> None:
    found = cell(examples.files())
    assert any(each.startswith("the line of data unbound worker_pool + 0x40: ") for each in found.sentences)
    several = found.model_copy(update={"lines": [each for each in found.lines if each.addresses == 4]})
    assert any(
        each.startswith("up to 4 lines of data named pool_workqueue cache + 0x80: ") for each in sentences(several)
    )


def test_small_change_of_a_touched_function_has_a_sentence_if_every_seed_agrees() -> None:
    found = cell(examples.files())
    totals = {arm: each.model_copy(update={"transfers": 100 * each.transfers}) for arm, each in found.totals.items()}
    function = next(each for each in found.functions if each.touched and each.transfer_seeds == len(found.seeds))
    text = f"{function.name} ({function.file}, changed by the series): "
    small = found.model_copy(update={"totals": totals})
    assert any(each.startswith(text) for each in sentences(small))
    unsure = [each.model_copy(update={"transfer_seeds": len(found.seeds) - 1}) for each in found.functions]
    moved = sentences(small.model_copy(update={"functions": unsure}))
    assert not any(each.startswith(text) and "cache lines per" in each for each in moved)
