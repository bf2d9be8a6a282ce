"""Describe a submission's progress: block strips, milestones and the current activity. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING

from rich.text import Text

from wqlab_contracts.enums import BootState, JobState, Outcome, RunPurpose, SubmissionState
from wqlab_contracts.messages.looks import why_stopped

from .formatting import ARM_LETTER, duration, eta_line, failure_line, one_line, outcome_text, status_text

if TYPE_CHECKING:
    from wqlab_contracts.api.builds import BuildView
    from wqlab_contracts.api.runs import BootView, FindingView, RunView
    from wqlab_contracts.api.submissions import ApplyView, SubmissionView


def legend(view: SubmissionView) -> str:
    """Explain the letters of a run's boots."""
    between = "C and on: after patch 1 and on" if view.request.walk else ""
    arms = ", ".join(filter(None, ("A baseline", "B candidate", between)))
    return f"{arms}; lower case: now, x: failed, .: to do"


def boots_per_block(view: SubmissionView) -> int:
    """Return the number of boots of a block: 1 for a settings study, which has no candidate; 2 for a series, and more
    if it is walked patch by patch."""
    if view.request.series is None:
        return 1
    if not view.request.walk:
        return 2
    blocks = {run.id: run.blocks_planned for run in view.runs}
    return max((ceil(each.total_boots / (blocks.get(each.run_id) or 1)) for each in view.targets), default=2)


def block_strip(run: RunView, per_block: int, width: int) -> Text:
    """Format a run's boots as letters in boot order, `A B  B A  A .`, in at most `width` columns.

    Of a repeated block only the latest attempt is shown. If not all blocks fit, those around the current one are shown,
    with `..` for the ones left out.
    """
    blocks = [_block(run, block, per_block) for block in range(run.blocks_planned)]
    blocks_width = max((len(block) for block in blocks), default=0)
    count = max(1, (width + 2) // (blocks_width + 2))
    if len(blocks) <= count:
        return Text("  ").join(blocks)
    count = max(1, (width - 8 + 2) // (blocks_width + 2))
    current = next(
        (n for n, block in enumerate(blocks) if "." in block.plain or block.plain.islower()), len(blocks) - 1
    )
    first = min(max(0, current - count + 1), len(blocks) - count)
    shown = blocks[first : first + count]
    before, after = first > 0, first + count < len(blocks)
    return Text("  ").join([*([Text("..")] if before else []), *shown, *([Text("..")] if after else [])])


def _block(run: RunView, block: int, per_block: int) -> Text:
    boots = [boot for boot in run.boots if boot.block == block]
    latest = max((boot.attempt for boot in boots), default=0)
    by_position = {boot.position: boot for boot in boots if boot.attempt == latest}
    width = max([per_block, *(position + 1 for position in by_position)])
    return Text(" ").join(_letter(by_position.get(position)) for position in range(width))


def _letter(boot: BootView | None) -> Text:
    if boot is None:
        return Text(".", style="dim")
    letter = ARM_LETTER[boot.arm]
    if boot.state is not BootState.FINISHED:
        return Text(letter.lower(), style="bold cyan")
    return Text(letter) if boot.outcome is Outcome.PASSED else Text("x", style="bold red")


def apply_text(apply: ApplyView) -> str:
    """Describe the result of applying the series, without its state."""
    if apply.failure is not None:
        return failure_line(apply.failure)
    if apply.state is not JobState.FINISHED:
        return ""
    parts = []
    if apply.base_commit:
        release = f" ({one_line(apply.release)})" if apply.release else ""
        parts.append(f"base {apply.base_commit[:12]}{release}")
    if apply.patches:
        parts.append(f"{len(apply.patches)} patch{'es' if len(apply.patches) > 1 else ''}")
        parts.append(f"checkpatch: {checkpatch_counts(apply)}")
    return ", ".join(parts)


def checkpatch_counts(apply: ApplyView) -> str:
    """Format the number of findings by severity, or `clean`, or why patches were not checked."""
    counts = []
    for severity in ("error", "warning", "check"):
        found = sum(finding.severity == severity for finding in apply.checkpatch)
        if found:
            counts.append(f"{found} {severity}{'s' if found > 1 else ''}")
    text = ", ".join(counts)
    if not apply.checkpatch_skipped:
        return text or "clean"
    reason = one_line(apply.checkpatch_skipped)
    return f"{text}; incomplete, because {reason}" if text else f"not run, because {reason}"


def build_name(build: BuildView) -> str:
    arm = f"{build.arm} " if build.arm else ""
    return f"build {build.id} ({arm}{build.arch} {build.recipe})"


def build_text(build: BuildView) -> str:
    """Describe a build's activity or result, without its state."""
    if build.failure is not None:
        return failure_line(build.failure)
    if build.state is not JobState.FINISHED:
        return one_line(build.progress)
    took = f"in {duration(build.duration_s)}" if build.duration_s is not None else ""
    warnings = f"{len(build.new_warnings)} new warnings" if build.new_warnings else ""
    return ", ".join(part for part in ("reused" if build.reused else took, warnings) if part)


def run_name(run: RunView) -> str:
    what = "traced boots: " if run.purpose is RunPurpose.TRACE else ""
    return f"run {run.id} ({what}{run.plan} on {run.device_type})"


def all_runs(view: SubmissionView) -> list[tuple[RunView, int]]:
    """Return the runs, those of traced boots last, each with the boots of its blocks."""
    per_block = boots_per_block(view)
    return [
        *((run, per_block) for run in view.runs),
        *((run, min(per_block, 2)) for run in view.traced_runs),  # of a walk the two outer kernels are traced
    ]


def run_text(run: RunView) -> str:
    """Describe a run's activity or result, without its state."""
    if run.failure is not None:
        return failure_line(run.failure)
    if run.state is JobState.WAITING:
        return "waiting for its kernels"
    if run.state is JobState.QUEUED:
        place = f", {run.queue_position} ahead in the queue" if run.queue_position else ""
        return f"waiting for a device{place}"
    if run.state is JobState.RUNNING:
        attempt = run.attempt - len(run.looked)  # a look ends an attempt too
        again = f" (attempt {attempt})" if attempt > 1 else ""
        return f"on {run.device or 'a device'}{again}" + (f": {one_line(run.progress)}" if run.progress else "")
    stopped = why_stopped(run.looked, run.blocks_planned)
    return stopped or f"{run.blocks_completed}/{run.blocks_planned} blocks"


# --- milestones -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Milestone:
    """Step of a submission that was reached; `key` identifies it."""

    key: tuple[object, ...]
    at: datetime | None
    """None if the server records no time for it."""
    text: Text


def milestones(view: SubmissionView) -> list[Milestone]:
    """Return the milestones reached so far, in pipeline order; a later view has these and more."""
    return list(_milestones(view))


def _milestones(view: SubmissionView) -> Iterator[Milestone]:
    targets = ", ".join(f"{target.plan} on {target.device_type}" for target in view.request.targets)
    yield Milestone(
        ("submitted",),
        view.created_at,
        Text(f"submission {view.id}: {one_line(view.title)}; tree {view.tree}; {targets}"),
    )
    yield from _job(("apply",), "apply", view.apply.state, view.apply.outcome, apply_text(view.apply))
    for build in view.builds:
        running = build.state is not JobState.FINISHED
        text = "" if running else build_text(build)
        yield from _job(("build", build.id), build_name(build), build.state, build.outcome, text)
    for run, per_block in all_runs(view):
        yield from _run(run, per_block)
    if view.state is SubmissionState.FINISHED:
        yield Milestone(("finished",), view.finished_at, Text("finished: ").append_text(outcome_text(view)))


def _job(
    key: tuple[object, ...], name: str, state: JobState, outcome: Outcome | None, text: str
) -> Iterator[Milestone]:
    if state in {JobState.RUNNING, JobState.FINISHED}:
        line = Text(f"{name}: ").append_text(status_text(state, outcome))
        yield Milestone((*key, state), None, line.append(f", {text}" if text else ""))


def _run(run: RunView, per_block: int) -> Iterator[Milestone]:
    name = run_name(run)
    if run.state is JobState.QUEUED:
        yield Milestone(("run", run.id, "queued", run.attempt), None, Text(f"{name}: {run_text(run)}"))
    if run.device is not None and run.attempt:
        again = f", attempt {run.attempt}" if run.attempt > 1 else ""
        at = run.started_at if run.attempt == 1 else None
        yield Milestone(("run", run.id, "device", run.attempt), at, Text(f"{name}: got device {run.device}{again}"))
    for boot in sorted(run.boots, key=lambda b: b.id):
        if boot.state is BootState.FINISHED:
            yield _boot(run, boot)
        for finding in run.findings:
            if (finding.block, finding.attempt, finding.arm) == (boot.block, boot.attempt, boot.arm):
                yield _finding(run, finding, boot.finished_at)
    if run.blocks_completed:
        strip = block_strip(run, per_block, 60)
        at = max((b.finished_at for b in run.boots if b.valid and b.finished_at), default=None)
        line = Text(f"run {run.id}: {run.blocks_completed}/{run.blocks_planned} blocks  ").append_text(strip)
        yield Milestone(("blocks", run.id, run.blocks_completed), at, line)
    if run.state is JobState.FINISHED:
        line = Text(f"{name}: ").append_text(status_text(run.state, run.outcome)).append(f", {run_text(run)}")
        yield Milestone(("run", run.id, "finished"), run.finished_at, line)


def _boot(run: RunView, boot: BootView) -> Milestone:
    again = f", attempt {boot.attempt + 1}" if boot.attempt else ""
    line = Text(f"run {run.id}, block {boot.block + 1}/{run.blocks_planned}{again}: {boot.arm} ")
    line.append_text(status_text(boot.state, boot.outcome))
    if boot.failure is not None:
        line.append(f", {failure_line(boot.failure)}")
    # An instrumented device has neither golden system nor kexec, and its emulator ran before the boot was recorded.
    elif boot.golden_s and boot.kexec_s and boot.workload_s is not None:
        line.append(f", golden {boot.golden_s:.0f} s, kexec {boot.kexec_s:.0f} s, workload {boot.workload_s:.0f} s")
    return Milestone(("boot", boot.id), boot.finished_at, line)


def _finding(run: RunView, finding: FindingView, at: datetime | None) -> Milestone:
    effect = "stopped the boot" if finding.fatal else "the boot continued"
    return Milestone(
        ("finding", run.id, finding.block, finding.attempt, finding.arm, finding.kind, finding.console_offset),
        at,
        Text(
            f"run {run.id}, block {finding.block + 1}, {finding.arm}: {finding.kind.replace('_', ' ')} on the console: "
            f"{one_line(finding.title)} ({effect})"
        ),
    )


def activity_line(view: SubmissionView, now: datetime) -> str:
    """Describe the current activity and the remaining time in one line."""
    activities = [f"{build_name(b)}: {build_text(b)}" for b in view.builds if b.state is JobState.RUNNING]
    activities += [f"{run_name(r)}: {run_text(r)}" for r, _ in all_runs(view) if r.state is JobState.RUNNING]
    text = "; ".join(part.rstrip(": ") for part in activities) or one_line(view.eta.what) or str(view.state)
    remaining = eta_line(view.eta, now)
    return f"{text} [{remaining}]" if remaining else text
