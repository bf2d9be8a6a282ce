"""What a waiting person reads, as whole texts."""

from __future__ import annotations

import io
from datetime import datetime
from itertools import count

import pytest
from fakelab import APPLIED, SERIES_REQUEST, at, boot, build, run, submission
from rich.console import Console

from wqlab_client.display import QUIET_S, LogDisplay, picture
from wqlab_client.progress import block_strip, boots_per_block, milestones
from wqlab_client.wording import clean, duration, rough
from wqlab_contracts.api.submissions import ApplyView, Eta, FindingView, SubmissionView
from wqlab_contracts.enums import (
    Arm,
    BootState,
    ErrorKind,
    FindingKind,
    JobState,
    Outcome,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import Failure

A, B = Arm.BASELINE, Arm.CANDIDATE
PANIC = Failure(kind=ErrorKind.KERNEL, summary="panic: workqueue: pool lock held")
STORY = [
    submission(SubmissionState.APPLYING),
    submission(SubmissionState.BUILDING, builds=[build(3, A, reused=True), build(4, B, JobState.RUNNING)]),
    submission(
        SubmissionState.RUNNING,
        builds=[build(3, A, reused=True), build(4, B)],
        runs=[run(JobState.QUEUED, queue_position=2)],
    ),
    submission(
        SubmissionState.RUNNING,
        builds=[build(3, A, reused=True), build(4, B)],
        runs=[
            run(
                JobState.RUNNING,
                [
                    boot(1, 0, 0, A),
                    boot(2, 0, 1, B),
                    boot(3, 1, 0, B, outcome=Outcome.FAILED, failure=PANIC, valid=False),
                    boot(4, 1, 0, B, attempt=1, started_at=at(260), finished_at=at(318)),
                    boot(5, 1, 1, A, BootState.MEASURING, attempt=1),
                ],
                blocks_completed=1,
                progress="block 2 of 3, attempt 2: measuring\x1b[2J repetition 2 of 3",
                findings=[
                    FindingView(
                        kind=FindingKind.PANIC,
                        arm=B,
                        block=1,
                        attempt=0,
                        title="Kernel panic - not syncing: pool lock held",
                        excerpt="[   12.3] Kernel panic",
                        console_offset=4000,
                        fatal=True,
                    )
                ],
            )
        ],
        eta=Eta(finish_at=at(700), what="measuring", done_boots=4, total_boots=6),
    ),
    submission(
        SubmissionState.FINISHED,
        builds=[build(3, A, reused=True), build(4, B)],
        runs=[
            run(
                JobState.FINISHED,
                [
                    boot(1, 0, 0, A),
                    boot(2, 0, 1, B),
                    boot(3, 1, 0, B, outcome=Outcome.FAILED, failure=PANIC, valid=False),
                    boot(4, 1, 0, B, attempt=1, started_at=at(260), finished_at=at(318)),
                    boot(5, 1, 1, A, attempt=1, started_at=at(320), finished_at=at(378)),
                    boot(6, 2, 0, A, started_at=at(380), finished_at=at(428)),
                    boot(7, 2, 1, B, started_at=at(430), finished_at=at(478)),
                ],
                blocks_completed=3,
            )
        ],
        verdicts={Verdict.IMPROVEMENT: 1, Verdict.EQUIVALENT: 2},
    ),
]
STORY[4] = STORY[4].model_copy(
    update={"runs": [STORY[4].runs[0].model_copy(update={"findings": STORY[3].runs[0].findings})]}
)


def log_of(*looks: tuple[SubmissionView, float]) -> str:
    """What a log shows of views, each with the second at which it was seen."""
    now: list[float] = [0]
    text = io.StringIO()
    display = LogDisplay(Console(file=text, width=80), lambda: at(now[0]), lambda: now[0])
    for view, second in looks:
        now[0] = second
        display.show(view)
    return text.getvalue()


def test_a_log_tells_every_milestone_once_with_its_time() -> None:
    assert log_of(*zip(STORY, (0, 30, 100, 330, 490), strict=True)) == (
        "[   0:00] submission 12: workqueue: Take each pool lock once per flush; tree linux-6.12;"
        " xfs-fsync on xeon-2s\n"
        "[   0:30] apply: passed, base 0123456789ab (6.12.48), 1 patch, checkpatch: 1 warning\n"
        "[   0:30] build 3 (baseline x86_64 measure): passed, reused\n"
        "[   0:30] build 4 (candidate x86_64 measure): running\n"
        "[   1:40] build 4 (candidate x86_64 measure): passed, in 1:35\n"
        "[   1:40] run 7 (xfs-fsync on xeon-2s): waits for a device, 2 in front\n"
        "[   1:58] run 7 (xfs-fsync on xeon-2s): got device xeon-2s-1\n"
        "[   2:58] run 7, block 1/3: baseline passed, golden 20 s, kexec 8 s, workload 29 s\n"
        "[   3:58] run 7, block 1/3: candidate passed, golden 20 s, kexec 8 s, workload 29 s\n"
        "[   4:58] run 7, block 2/3: candidate failed, the kernel under test: panic: workqueue: pool lock held\n"
        "[   4:58] run 7, block 2, candidate: panic on the console: Kernel panic - not syncing: pool lock held"
        " (stopped the boot)\n"
        "[   5:18] run 7, block 2/3, attempt 2: candidate passed, golden 20 s, kexec 8 s, workload 29 s\n"
        "[   5:18] run 7: 1/3 blocks  A B  B a  . .\n"
        "[   6:18] run 7, block 2/3, attempt 2: baseline passed, golden 20 s, kexec 8 s, workload 29 s\n"
        "[   7:08] run 7, block 3/3: baseline passed, golden 20 s, kexec 8 s, workload 29 s\n"
        "[   7:58] run 7, block 3/3: candidate passed, golden 20 s, kexec 8 s, workload 29 s\n"
        "[   7:58] run 7: 3/3 blocks  A B  B A  A B\n"
        "[   8:00] run 7 (xfs-fsync on xeon-2s): passed, 3/3 blocks\n"
        "[   8:05] finished: passed; primary comparisons: improvement 1, equivalent 2\n"
    )


def test_who_joins_late_reads_what_was_before() -> None:
    late = log_of((STORY[3], 330)).splitlines()
    assert late[1] == "[       ] apply: passed, base 0123456789ab (6.12.48), 1 patch, checkpatch: 1 warning"
    assert late[-1] == "[   5:18] run 7: 1/3 blocks  A B  B a  . ."


def test_a_quiet_log_says_that_the_work_goes_on() -> None:
    later = 330 + QUIET_S
    text = log_of((STORY[3], 330), (STORY[3], later - 1), (STORY[3], later), (STORY[3], later + 1)).splitlines()
    assert text[-1] == (
        "[   6:30] run 7 (xfs-fsync on xeon-2s): on xeon-2s-1: block 2 of 3, attempt 2: measuring^[[2J"
        " repetition 2 of 3 [4/6 boots, about 5 min left]"
    )
    assert sum("still" in line or "[4/6 boots" in line for line in text) == 1


def test_milestones_have_keys_of_their_own_and_never_go_away() -> None:
    known: set[tuple[object, ...]] = set()
    for view in STORY:
        keys = [milestone.key for milestone in milestones(view)]
        assert len(set(keys)) == len(keys)
        gone = known - set(keys)
        assert all(key[0] in {"build", "run", "blocks"} for key in gone), (
            "only what was passed through is not told again"
        )
        known |= set(keys)


PICTURE_80 = """\
Submission 12  workqueue: Take each pool lock once per flush                5:30
  apply              passed  base 0123456789ab (6.12.48), 1 patch, checkpatch: …
  build 3 baseline   passed  reused
  build 4 candidate  passed  in 1:35
  run 7  xfs-fsync on xeon-2s  running  on xeon-2s-1
    1/3 blocks  A B  B a  . .
    block 2 of 3, attempt 2: measuring^[[2J repetition 2 of 3
4/6 boots, about 6 min left (10:11)
A baseline, B candidate; lower case: now, x: failed, .: to do
connection lost; next try in 2.0 s
"""


def drawn(view: SubmissionView, now: datetime, width: int, notice: str = "") -> str:
    text = io.StringIO()
    console = Console(file=text, width=width)
    for line in picture(view, now, width, notice):
        console.print(line)
    return text.getvalue()


def test_the_live_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert drawn(STORY[3], at(330), 80, "connection lost; next try in 2.0 s") == PICTURE_80
    assert "checkpatch: 1 warning\n" in drawn(STORY[3], at(330), 120)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("step", range(len(STORY)))
def test_the_live_picture_fits(width: int, step: int) -> None:
    lines = drawn(STORY[step], at(9999), width).splitlines()
    assert all(len(line) <= width for line in lines)
    assert len(lines) <= 14


def test_a_settings_study_has_one_boot_a_block() -> None:
    study = STORY[0].model_copy(update={"request": SERIES_REQUEST.model_copy(update={"series": None})})
    assert boots_per_block(study) == 1
    assert block_strip(run(JobState.RUNNING, [boot(1, 0, 0, A)]), 1, 60).plain == "A  .  ."


def test_a_failed_boot_is_an_x_until_its_block_is_run_again() -> None:
    failed = boot(1, 0, 0, B, outcome=Outcome.FAILED, failure=PANIC, valid=False)
    assert block_strip(run(JobState.RUNNING, [failed]), 2, 60).plain == "x .  . .  . ."
    again = boot(2, 0, 0, B, BootState.BOOTING, attempt=1)
    assert block_strip(run(JobState.RUNNING, [failed, again]), 2, 60).plain == "b .  . .  . ."


def test_many_blocks_show_where_the_run_is() -> None:
    numbers = count(1)
    boots = [boot(next(numbers), n, p, (A, B)[p]) for n in range(40) for p in (0, 1)]
    strip = block_strip(run(JobState.RUNNING, boots, blocks_planned=100), 2, 40).plain
    assert strip == "..  A B  A B  A B  A B  A B  . .  .."
    for width in range(20, 200, 7):
        for done in (0, 1, 50, 99, 100):
            shown = block_strip(run(JobState.RUNNING, boots[: 2 * done], blocks_planned=100), 2, width).plain
            assert len(shown) <= width


def test_what_submitted_code_says_cannot_steer_the_terminal() -> None:
    evil = "ok\x1b[2J\x1b]0;x\x07\x9b31m\u202edcba\r\n\tend"
    assert clean(evil) == "ok^[[2J^[]0;x^G<009b>31m<202e>dcba\n\tend"
    view = STORY[0].model_copy(update={"title": evil})
    assert "\x1b" not in drawn(view, at(1), 120)
    assert "\x1b" not in log_of((view, 0))


def test_failures_name_whose_they_are() -> None:
    failure = Failure(kind=ErrorKind.USER, summary="patch 2/3 does not apply to kernel/workqueue.c, hunk 4")
    broken = submission(
        SubmissionState.FINISHED,
        outcome=Outcome.FAILED,
        failure=failure,
        apply=ApplyView(state=JobState.FINISHED, outcome=Outcome.FAILED, failure=failure),
        exit_code=3,
    )
    last = log_of((broken, 1)).splitlines()[-1]
    assert last == (
        "[   8:05] finished: failed (the series or request: patch 2/3 does not apply to kernel/workqueue.c, hunk 4)"
    )
    assert APPLIED.failure is None


@pytest.mark.parametrize(
    ("seconds", "exact", "about"),
    [
        (0, "0:00", "0 s"),
        (59.6, "1:00", "60 s"),
        (600, "10:00", "10 min"),
        (7322, "2:02:02", "2 h"),
        (-5, "0:00", "0 s"),
    ],
)
def test_times(seconds: float, exact: str, about: str) -> None:
    assert duration(seconds) == exact
    assert rough(seconds) == about
