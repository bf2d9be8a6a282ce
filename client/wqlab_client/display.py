"""Showing a submission's progress: a live picture on a terminal, a line per milestone anywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from wqlab_contracts.api.submissions import RunView, SubmissionView
from wqlab_contracts.enums import JobState, Outcome, SubmissionState

from .progress import (
    LEGEND,
    apply_text,
    block_strip,
    boots_per_block,
    build_text,
    milestones,
    run_text,
    still_working,
)
from .wording import aligned, duration, ending, eta_line, how_it_stands, one_line

QUIET_S = 60.0
"""A log that has said nothing for this long says that the work goes on: CI systems end silent jobs."""


class Display(Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def show(self, view: SubmissionView) -> None:
        """The submission as it is now; called again and again."""

    def notice(self, text: str) -> None:
        """Trouble with the connection, from any thread."""


class LogDisplay:
    """Every milestone once, with the time since the submission was made."""

    def __init__(
        self, console: Console, now: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._now = now
        self._monotonic = monotonic
        self._told: set[tuple[object, ...]] = set()
        self._spoke_at = monotonic()
        self._created: datetime | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def show(self, view: SubmissionView) -> None:
        joined = self._created is None
        self._created = view.created_at
        for milestone in milestones(view):
            if milestone.key in self._told:
                continue
            self._told.add(milestone.key)
            # What was so before we looked for the first time happened at an unknown time.
            at = milestone.at or (None if joined else self._now())
            self._line(at, milestone.text)
        if view.state is not SubmissionState.FINISHED and self._monotonic() - self._spoke_at >= QUIET_S:
            self._line(self._now(), Text(still_working(view, self._now())))

    def notice(self, text: str) -> None:
        self._line(self._now() if self._created else None, Text(text))

    def _line(self, at: datetime | None, text: Text) -> None:
        stamp = duration((at - self._created).total_seconds()) if at and self._created else ""
        self._console.print(Text(f"[{stamp:>7}] ").append_text(text), soft_wrap=True)
        self._spoke_at = self._monotonic()


class LiveDisplay:
    """Redraws one compact picture in place; the last one stays."""

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
                self._notice = ""  # news: the connection is back
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
            yield from picture(view, self._now(), options.max_width, notice)


def picture(view: SubmissionView, now: datetime, width: int, notice: str = "") -> list[Text]:
    """The state of a submission in `width` columns: a line a step; a run also has its blocks and what it does now."""
    finished = view.state is SubmissionState.FINISHED
    until = view.finished_at if finished and view.finished_at else now
    clock = duration((until - view.created_at).total_seconds())
    head = Text(f"Submission {view.id}  {one_line(view.title)}", style="bold")
    head.truncate(width - len(clock) - 2, overflow="ellipsis", pad=True)
    lines = [head.append(f"  {clock}")]
    steps: list[list[Text | str]] = [
        [Text("  apply"), how_it_stands(view.apply.state, view.apply.outcome), apply_text(view.apply)]
    ]
    for build in view.builds:
        name = f"  build {build.id} {build.arm or ''}"
        steps.append([Text(name), how_it_stands(build.state, build.outcome), build_text(build)])
    lines += aligned(None, steps, width)
    for run in view.runs:
        lines += _run(run, boots_per_block(view), width)
    if finished:
        lines.append(Text("finished: ").append_text(ending(view)))
    else:
        lines += _left(view, now, width)
        if any(run.boots for run in view.runs):
            lines.append(Text(LEGEND, style="dim"))
        if notice:
            lines.append(Text(one_line(notice), style="yellow"))
    return lines


def _left(view: SubmissionView, now: datetime, width: int) -> list[Text]:
    # While it builds and runs, the lines above say what happens.
    shown_above = view.state in {SubmissionState.BUILDING, SubmissionState.RUNNING}
    doing = Text("" if shown_above else one_line(view.eta.what) or str(view.state))
    doing.truncate(width, overflow="ellipsis")
    left = Text(eta_line(view.eta, now))
    if view.eta.finish_at is not None:
        left.append(f" ({view.eta.finish_at.astimezone():%H:%M})")
    return [line for line in (doing, left) if line.plain]


def _run(run: RunView, per_block: int, width: int) -> list[Text]:
    head = Text(f"  run {run.id}  {run.plan} on {run.device_type}  ")
    head.append_text(how_it_stands(run.state, run.outcome))
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
        doing = Text(f"    {one_line(run.progress)}")
        doing.truncate(width, overflow="ellipsis")
        lines.append(doing)
    return lines


def utc_now() -> datetime:
    return datetime.now(UTC)
