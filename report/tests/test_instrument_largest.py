"""Subsystems and functions that a report shows, and the sums of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import instrument_examples as examples
import pytest

from wqlab_contracts import instrument
from wqlab_contracts.api.instrument import FunctionChange, InstrumentCell, PerOperation, SubsystemChange
from wqlab_contracts.enums import PAIR, Arm
from wqlab_contracts.instrument import OTHER, USER_SPACE, FunctionCounts, LevelCounts, SubsystemCounts, Window
from wqlab_report.parts import instrument_largest, instrument_sums
from wqlab_report.parts.instrument_cells import ProfileFile, instrument_cells

FIELDS = list(PerOperation.model_fields)


def cell(change: Callable[[Arm, int, Window], Window] = lambda _arm, _seed, window: window) -> InstrumentCell:
    """Return the cell of the example profiles, in which `change` replaces each window."""
    files = []
    for seed in range(examples.SEEDS):
        for arm in PAIR:
            profile = examples.profile(arm, seed)
            windows = [change(arm, seed, window) for window in profile.windows]
            data = instrument.write(profile.model_copy(update={"windows": windows}))
            files.append(ProfileFile(arm, seed, lambda data=data: data))
    (found,) = instrument_cells(examples.PLAN, [""], files)
    return found


def assert_sum(parts: Iterable[FunctionChange | SubsystemChange], totals: dict[Arm, PerOperation]) -> None:
    """Check that the entries add up to the totals, except for rounding to five digits."""
    entries = list(parts)
    for arm, total in totals.items():
        for name in FIELDS:
            found = sum(getattr(each.per_op[arm], name) for each in entries)
            assert found == pytest.approx(getattr(total, name), rel=1e-3), (arm, name)


def test_subsystems_are_the_totals_and_the_kernel_is_what_is_not_user_space() -> None:
    found = cell()
    assert_sum(found.subsystems, found.totals)
    assert found.kernel is not None
    assert_sum([found.kernel, *(each for each in found.subsystems if each.name == USER_SPACE)], found.totals)
    by_name = {each.name: each for each in found.subsystems}
    assert by_name.keys() >= {"kernel/workqueue.c", "fs/xfs", USER_SPACE, "", OTHER}
    assert found.subsystems[-1].name == OTHER
    workqueue = by_name["kernel/workqueue.c"]
    assert (workqueue.transfer_seeds, workqueue.instruction_seeds) == (6, 6)
    assert workqueue.per_op[Arm.CANDIDATE].transfers < workqueue.per_op[Arm.BASELINE].transfers / 2


def test_subsystems_that_changed_most_and_user_space_are_shown_however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrument_largest, "MAX_SUBSYSTEMS", 4)
    monkeypatch.setattr(instrument_largest, "MAX_CHANGED", 2)

    def without_programs(_arm: Arm, _seed: int, window: Window) -> Window:
        few = [
            each.model_copy(update={"instructions": 5, "transfers": LevelCounts(), "locked": 0})
            if each.name == USER_SPACE
            else each
            for each in window.subsystems
        ]
        return window.model_copy(update={"subsystems": few})

    found = cell(without_programs)
    names = [each.name for each in found.subsystems]
    # Locks have 0.5 % of the instructions and lose half of them; the file system has 20 % and loses none.
    assert names[:2] == ["kernel/workqueue.c", "kernel/locking"], "the largest change first"
    assert set(names) == {"kernel/workqueue.c", "kernel/locking", USER_SPACE, "kernel/sched", OTHER}


def test_profile_without_subsystems_has_those_of_its_functions() -> None:
    found = cell(lambda _arm, _seed, window: window.model_copy(update={"subsystems": []}))
    assert_sum(found.subsystems, found.totals)
    assert {"kernel/workqueue.c", USER_SPACE, "", OTHER} <= {each.name for each in found.subsystems}


def test_profile_without_functions_has_no_subsystems() -> None:
    found = cell(lambda _arm, _seed, window: window.model_copy(update={"subsystems": [], "functions": []}))
    assert (found.kernel, found.subsystems, found.functions) == (None, [], [])


def test_sums_of_functions_keep_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cell()
    assert_sum(found.functions, found.totals)
    rest = {(each.subsystem, each.file): each for each in found.functions if each.name == OTHER}
    assert len(rest) == sum(each.name == OTHER for each in found.functions) == 6
    log = rest["fs/xfs", "fs/xfs/xfs_log.c"]
    assert log.per_op[Arm.BASELINE].instructions == pytest.approx(21000, rel=0.01)
    workqueue = rest["kernel/workqueue.c", "kernel/workqueue.c"]
    assert workqueue.instruction_seeds == 6, "a sum of functions is compared seed by seed too"
    monkeypatch.setattr(instrument_largest, "MAX_FUNCTIONS", 0)
    found = cell()
    assert {each.name for each in found.functions} == {OTHER}
    assert_sum(found.functions, found.totals)
    fair = next(each for each in found.functions if each.file == "kernel/sched/fair.c")
    assert fair.per_op[Arm.BASELINE].instructions == pytest.approx(14000 + 9400, rel=0.01), "both are in one sum"


def test_files_without_a_sum_are_summed_by_subsystem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrument_largest, "MAX_FUNCTIONS", 0)
    monkeypatch.setattr(instrument_largest, "MAX_FILES", 1)
    found = cell()
    assert_sum(found.functions, found.totals)
    places = [(each.subsystem, each.file) for each in found.functions]
    assert places[0] == ("kernel/workqueue.c", "kernel/workqueue.c")
    assert ("fs/xfs", "") in places, "it has four files"
    assert ("fs/iomap", "fs/iomap/buffered-io.c") in places, "the sum of one file keeps it"
    assert places[-1] == ("", "")
    monkeypatch.setattr(instrument_largest, "MAX_REST_SUBSYSTEMS", 2)
    found = cell()
    assert len(found.functions) == 1 + 2 + 1
    assert_sum(found.functions, found.totals)


def without(name: str) -> Callable[[Arm, int, Window], Window]:
    """Return a change of the candidate's windows: a function's counts are in the sum of its file."""

    def change(arm: Arm, _seed: int, window: Window) -> Window:
        if arm is Arm.BASELINE:
            return window
        hidden = [
            each.model_copy(update={"name": OTHER, "touched": False}) if each.name == name else each
            for each in window.functions
        ]
        return window.model_copy(update={"functions": hidden})

    return change


@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("xfs_file_fsync", False),  # twice as large as the smallest function that is listed
        ("memcpy_orig", True),  # fifty times as large
        ("flush_workqueue_prep_pwqs", True),  # small, but changed by the series, so that every boot lists it
    ],
)
def test_function_that_some_boots_do_not_list_has_no_change_of_its_own(name: str, compared: bool) -> None:
    found = cell(without(name))
    shown = {each.name: each for each in found.functions}
    assert (name in shown) is (name in {each.name for each in found.changed}) is compared
    assert_sum(found.functions, found.totals)
    if compared:
        assert shown[name].per_op[Arm.CANDIDATE].instructions == 0
    else:
        file = next(each for each in found.functions if each.name == OTHER and each.file == "fs/xfs/xfs_file.c")
        assert file.per_op[Arm.BASELINE].instructions == pytest.approx(2600, rel=0.01)
        assert file.per_op[Arm.CANDIDATE].instructions == pytest.approx(2600, rel=0.01)


def test_function_that_is_new_is_compared_if_boots_list_all_functions() -> None:
    def complete(arm: Arm, _seed: int, window: Window) -> Window:
        listed = [
            each
            for each in window.functions
            if each.name != OTHER and (each.name != "xfs_file_fsync" or arm is Arm.CANDIDATE)
        ]
        return window.model_copy(update={"functions": listed})

    found = cell(complete)
    assert found.changed[0].name == "flush_workqueue_prep_pwqs"
    new = next(each for each in found.changed if each.name == "xfs_file_fsync")
    assert (new.per_op[Arm.BASELINE].instructions, new.instruction_seeds) == (0, 6)
    assert all("some boots do not list" not in note for note in found.notes)


def hostile(arm: Arm, seed: int, window: Window) -> Window:
    """Return a window with as many entries as a profile may have, and the longest names, different in each boot."""

    def name(number: int, length: int) -> str:
        return f"{arm}-{seed}-{number}-".ljust(length, "\U0001f427")

    counts = {"instructions": 1000, "transfers": LevelCounts(node=10), "locked": 1}
    functions = [
        FunctionCounts(name=name(number, 160), subsystem=name(number, 160), file=name(number, 240), **counts)
        for number in range(instrument.FUNCTION_LIMIT)
    ]
    rest = [
        FunctionCounts(name=OTHER, subsystem=name(number, 160), file=name(number, 240), **counts)
        for number in range(instrument.FILE_LIMIT)
    ]
    subsystems = [
        SubsystemCounts(name=name(number, 160), instructions=5000, transfers=LevelCounts(node=50), locked=5)
        for number in range(instrument.SUBSYSTEM_LIMIT)
    ]
    sums = {"instructions": 500_000, "transfers": LevelCounts(node=5000), "locked": 500}
    return window.model_copy(update={"functions": [*functions, *rest], "subsystems": subsystems, **sums})


@pytest.mark.parametrize("names", [100, instrument_sums.MAX_NAMES])
def test_bounds_hold_whatever_a_lab_sends(monkeypatch: pytest.MonkeyPatch, names: int) -> None:
    monkeypatch.setattr(instrument_sums, "MAX_NAMES", names)
    found = cell(hostile)
    assert len(found.subsystems) <= instrument_largest.MAX_SUBSYSTEMS + 1
    assert len(found.functions) <= 80 + 60 + 40 + 1
    assert len(found.model_dump_json()) < 1 << 20
    assert_sum(found.functions, found.totals)
    assert_sum(found.subsystems, found.totals)
    assert any("different subsystems, functions or lines" in note for note in found.notes)
