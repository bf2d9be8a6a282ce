"""Milestones and block strips."""

from __future__ import annotations

from itertools import count

from example_views import PANIC, SERIES_REQUEST, VIEWS, A, B, boot, run

from wqlab_client.progress import block_strip, boots_per_block, milestones
from wqlab_contracts.enums import (
    BootState,
    JobState,
    Outcome,
)

VIEWS[4] = VIEWS[4].model_copy(
    update={"runs": [VIEWS[4].runs[0].model_copy(update={"findings": VIEWS[3].runs[0].findings})]}
)


def test_milestone_keys_are_unique_and_stay() -> None:
    known: set[tuple[object, ...]] = set()
    for view in VIEWS:
        keys = [milestone.key for milestone in milestones(view)]
        assert len(set(keys)) == len(keys)
        gone = known - set(keys)
        assert all(key[0] in {"build", "run", "blocks"} for key in gone), "only milestones of finished stages disappear"
        known |= set(keys)


def test_times_of_a_boot_are_shown_only_if_it_has_these_steps() -> None:
    emulated, counted = boot(1, 0, 0, A), boot(2, 0, 1, B, golden_s=0.0, kexec_s=0.0, workload_s=0.02)
    view = VIEWS[2].model_copy(update={"runs": [run(JobState.RUNNING, [emulated, counted])]})
    lines = [milestone.text.plain for milestone in milestones(view) if milestone.key[0] == "boot"]
    assert lines == [
        "run 7, block 1/3: baseline passed, golden 20 s, kexec 8 s, workload 29 s",
        "run 7, block 1/3: candidate passed",
    ]


def test_settings_study_has_one_boot_per_block() -> None:
    study = VIEWS[0].model_copy(update={"request": SERIES_REQUEST.model_copy(update={"series": None})})
    assert boots_per_block(study) == 1
    assert block_strip(run(JobState.RUNNING, [boot(1, 0, 0, A)]), 1, 60).plain == "A  .  ."


def test_failed_boot_is_an_x_until_its_block_is_repeated() -> None:
    failed = boot(1, 0, 0, B, outcome=Outcome.FAILED, failure=PANIC, valid=False)
    assert block_strip(run(JobState.RUNNING, [failed]), 2, 60).plain == "x .  . .  . ."
    again = boot(2, 0, 0, B, BootState.BOOTING, attempt=1)
    assert block_strip(run(JobState.RUNNING, [failed, again]), 2, 60).plain == "b .  . .  . ."


def test_long_block_strip_shows_the_current_blocks() -> None:
    numbers = count(1)
    boots = [boot(next(numbers), n, p, (A, B)[p]) for n in range(40) for p in (0, 1)]
    strip = block_strip(run(JobState.RUNNING, boots, blocks_planned=100), 2, 40).plain
    assert strip == "..  A B  A B  A B  A B  A B  . .  .."
    for width in range(20, 200, 7):
        for done in (0, 1, 50, 99, 100):
            shown = block_strip(run(JobState.RUNNING, boots[: 2 * done], blocks_planned=100), 2, width).plain
            assert len(shown) <= width
