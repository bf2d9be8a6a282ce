"""Show a submission's progress: redrawn in place on a terminal, a line for each milestone anywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from rich.live import Live
from rich.text import Text

from wqlab_contracts.enums import JobState, Outcome, SubmissionState

from .formatting import align_columns, duration, eta_line, one_line, outcome_text, status_text
from .progress import (
    activity_line,
    all_runs,
    apply_text,
    block_strip,
    build_text,
    legend,
    milestones,
    run_text,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from wqlab_contracts.api.runs import RunView
    from wqlab_contracts.api.submissions import SubmissionView

IDLE_NOTICE_S = 60.0
"""A log without output for this long gets a line on the current activity: CI systems end silent jobs."""


class Display(Protocol):
    """Progress display of `wqlab watch`."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def show(self, view: SubmissionView) -> None:
        """Show the submission's current state; called repeatedly."""

    def notice(self, text: str) -> None:
        """Show a connection problem; called from any thread."""


class LogDisplay:
    """Print each milestone once, with the time since the submission was created."""

    def __init__(
        self, console: Console, now: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._now = now
        self._monotonic = monotonic
        self._printed_keys: set[tuple[object, ...]] = set()
        self._printed_at = monotonic()
        self._created: datetime | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def show(self, view: SubmissionView) -> None:
        first_view = self._created is None
        self._created = view.created_at
        for milestone in milestones(view):
            if milestone.key in self._printed_keys:
                continue
            self._printed_keys.add(milestone.key)
            # Milestones in the first view were reached at an unknown time.
            at = milestone.at or (None if first_view else self._now())
            self._line(at, milestone.text)
        if view.state is not SubmissionState.FINISHED and self._monotonic() - self._printed_at >= IDLE_NOTICE_S:
            self._line(self._now(), Text(activity_line(view, self._now())))

    def notice(self, text: str) -> None:
        self._line(self._now() if self._created else None, Text(text))

    def _line(self, at: datetime | None, text: Text) -> None:
        stamp = duration((at - self._created).total_seconds()) if at and self._created else ""
        self._console.print(Text(f"[{stamp:>7}] ").append_text(text), soft_wrap=True)
        self._printed_at = self._monotonic()


class LiveDisplay:
    """Redraw a compact progress display in place; its last state remains on the terminal."""

    def __init__(self, console: Console, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._view: SubmissionView | None = None
        self._notice = ""
        self._live = Live(self, console=console, refresh_per_second=2, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, view: SubmissionView) -> None:
        with self._lock:
            if view is not self._view:
                self._notice = ""  # a new view: the connection works again
            self._view = view
        self._live.refresh()

    def notice(self, text: str) -> None:
        with self._lock:
            self._notice = text
        self._live.refresh()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            view, notice = self._view, self._notice
        if view is not None:
            yield from render_progress(view, self._now(), options.max_width, notice)


def render_progress(view: SubmissionView, now: datetime, width: int, notice: str = "") -> list[Text]:
    """Format a submission's state in `width` columns: a line for each step; a run also has its blocks and activity."""
    finished = view.state is SubmissionState.FINISHED
    until = view.finished_at if finished and view.finished_at else now
    clock = duration((until - view.created_at).total_seconds())
    head = Text(f"Submission {view.id}  {one_line(view.title)}", style="bold")
    head.truncate(width - len(clock) - 2, overflow="ellipsis", pad=True)
    lines = [head.append(f"  {clock}")]
    steps: list[list[Text | str]] = [
        [Text("  apply"), status_text(view.apply.state, view.apply.outcome), apply_text(view.apply)]
    ]
    for build in view.builds:
        name = f"  build {build.id} {build.arm or ''}"
        steps.append([Text(name), status_text(build.state, build.outcome), build_text(build)])
    for (line,) in align_columns(None, steps, None):
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    for run, per_block in all_runs(view):
        lines += _run_lines(run, per_block, width)
    if finished:
        lines.append(Text("finished: ").append_text(outcome_text(view)))
    else:
        lines += _remaining_lines(view, now, width)
        if any(run.boots for run in view.runs):
            lines.append(Text(legend(view), style="dim"))
        if notice:
            lines.append(Text(one_line(notice), style="yellow"))
    return lines


def _remaining_lines(view: SubmissionView, now: datetime, width: int) -> list[Text]:
    # In these states the lines of builds and runs already show the activity.
    shown_above = view.state in {SubmissionState.BUILDING, SubmissionState.RUNNING}
    activity = Text("" if shown_above else one_line(view.eta.what) or str(view.state))
    activity.truncate(width, overflow="ellipsis")
    remaining = Text(eta_line(view.eta, now))
    if view.eta.finish_at is not None:
        remaining.append(f" ({view.eta.finish_at.astimezone():%H:%M})")
    return [line for line in (activity, remaining) if line.plain]


def _run_lines(run: RunView, per_block: int, width: int) -> list[Text]:
    head = Text(f"  run {run.id}  {run.plan} on {run.device_type}  ")
    head.append_text(status_text(run.state, run.outcome))
    running = run.state is JobState.RUNNING
    if running or run.outcome is Outcome.PASSED:
        head.append(f"  on {run.device}" if run.device else "")
    else:
        head.append(f"  {run_text(run)}")
    head.truncate(width, overflow="ellipsis")
    lines = [head]
    if run.boots:
        done = f"    {run.blocks_completed}/{run.blocks_planned} blocks  "
        lines.append(Text(done).append_text(block_strip(run, per_block, width - len(done))))
    if running and run.progress:
        activity = Text(f"    {one_line(run.progress)}")
        activity.truncate(width, overflow="ellipsis")
        lines.append(activity)
    return lines


def utc_now() -> datetime:
    return datetime.now(UTC)
