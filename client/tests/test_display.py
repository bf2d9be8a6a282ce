"""Progress output of `wqlab watch`, compared as whole texts."""

from __future__ import annotations

import io
from datetime import datetime

import pytest
from example_views import APPLIED, VIEWS, at, submission
from rich.console import Console

from wqlab_client.display import IDLE_NOTICE_S, LogDisplay, render_progress
from wqlab_client.formatting import clean
from wqlab_contracts.api.submissions import ApplyView, SubmissionView
from wqlab_contracts.enums import (
    ErrorKind,
    JobState,
    Outcome,
    SubmissionState,
)
from wqlab_contracts.messages import Failure


def test_late_log_prints_earlier_milestones_without_time() -> None:
    late = log_of((VIEWS[3], 330)).splitlines()
    assert late[1] == "[       ] apply: passed, base 0123456789ab (6.12.48), 1 patch, checkpatch: 1 warning"
    assert late[-1] == "[   5:18] run 7: 1/3 blocks  A B  B a  . ."


def test_idle_log_prints_the_current_activity() -> None:
    later = 330 + IDLE_NOTICE_S
    text = log_of((VIEWS[3], 330), (VIEWS[3], later - 1), (VIEWS[3], later), (VIEWS[3], later + 1)).splitlines()
    assert text[-1] == (
        "[   6:30] run 7 (xfs-fsync on xeon-2s): on xeon-2s-1: block 2 of 3, attempt 2: measuring^[[2J"
        " repetition 2 of 3 [4/6 boots, about 5 min left]"
    )
    assert sum("still" in line or "[4/6 boots" in line for line in text) == 1


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
    for line in render_progress(view, now, width, notice):
        console.print(line)
    return text.getvalue()


def test_progress_is_rendered_in_80_and_120_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert drawn(VIEWS[3], at(330), 80, "connection lost; next try in 2.0 s") == PICTURE_80
    assert "checkpatch: 1 warning\n" in drawn(VIEWS[3], at(330), 120)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("step", range(len(VIEWS)))
def test_rendered_progress_fits_the_width(width: int, step: int) -> None:
    lines = drawn(VIEWS[step], at(9999), width).splitlines()
    assert all(len(line) <= width for line in lines)
    assert len(lines) <= 14


def test_control_characters_are_escaped() -> None:
    evil = "ok\x1b[2J\x1b]0;x\x07\x9b31m\u202edcba\r\n\tend"
    assert clean(evil) == "ok^[[2J^[]0;x^G<009b>31m<202e>dcba\n\tend"
    view = VIEWS[0].model_copy(update={"title": evil})
    assert "\x1b" not in drawn(view, at(1), 120)
    assert "\x1b" not in log_of((view, 0))


def test_failures_name_their_source() -> None:
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


def log_of(*looks: tuple[SubmissionView, float]) -> str:
    """Return the log of a sequence of views, each with the second at which it was shown."""
    now: list[float] = [0]
    text = io.StringIO()
    display = LogDisplay(Console(file=text, width=80), lambda: at(now[0]), lambda: now[0])
    for view, second in looks:
        now[0] = second
        display.show(view)
    return text.getvalue()


def test_log_prints_each_milestone_once_with_its_time() -> None:
    assert log_of(*zip(VIEWS, (0, 30, 100, 330, 490), strict=True)) == (
        "[   0:00] submission 12: workqueue: Take each pool lock once per flush; tree linux-6.12;"
        " xfs-fsync on xeon-2s\n"
        "[   0:30] apply: passed, base 0123456789ab (6.12.48), 1 patch, checkpatch: 1 warning\n"
        "[   0:30] build 3 (baseline x86_64 measure): passed, reused\n"
        "[   0:30] build 4 (candidate x86_64 measure): running\n"
        "[   1:40] build 4 (candidate x86_64 measure): passed, in 1:35\n"
        "[   1:40] run 7 (xfs-fsync on xeon-2s): waiting for a device, 2 ahead in the queue\n"
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
