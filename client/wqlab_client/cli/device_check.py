"""`wqlab device check`: check a device step by step, with a fix for each failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import DeviceStep, ExitCode, Outcome, StepOutcome

from ..calls.lab import LabCalls
from ..formatting import one_line
from .devices import DeviceName
from .session import DETACHED_EXIT, JsonFlag, Session, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.queue import DeviceCheck
    from wqlab_contracts.messages import CheckStep, Failure

device_app = typer.Typer(name="device", help="Add a device, or check one.", rich_markup_mode=None)

TITLES = {
    DeviceStep.POWER: "power",
    DeviceStep.CONSOLE: "console",
    DeviceStep.GOLDEN: "golden system",
    DeviceStep.KEXEC: "kexec",
    DeviceStep.TOPOLOGY: "topology",
    DeviceStep.DETECTORS: "detectors",
    DeviceStep.FITNESS: "fitness",
    DeviceStep.SCRATCH: "scratch disks",
}
_STYLES = {StepOutcome.OK: "green", StepOutcome.FAILED: "bold red", StepOutcome.SKIPPED: "dim"}


@device_app.command("check")
def check(
    context: typer.Context,
    name: DeviceName,
    as_json: JsonFlag = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the check has ended")] = True,
) -> None:
    """Check a device: power, console, golden system, kexec, topology, detectors, fitness, scratch disks.

    For maintainers. Exit codes: 0 every step is ok or skipped with a reason, 4 a step failed or the check was
    interrupted.
    """
    session = session_of(context)
    started = session.calls(LabCalls).check_device(name)
    if not wait:
        _print_started(session, started, as_json)
        return
    try:
        ended = _print_steps(session, started, quiet=as_json)
    except KeyboardInterrupt:
        session.output.note(
            f"detached; check {started.id} of {name} continues. Show it with `wqlab device check {name}`."
        )
        raise typer.Exit(DETACHED_EXIT) from None
    if as_json:
        session.output.document(ended)
    else:
        session.output.line(_conclusion(ended))
    raise typer.Exit(ExitCode.DONE if ended.outcome is Outcome.PASSED else ExitCode.INFRASTRUCTURE)


def _print_started(session: Session, started: DeviceCheck, as_json: bool) -> None:
    if as_json:
        session.output.document(started)
    else:
        session.output.line(f"check {started.id} of {started.device} is queued")


def _print_steps(session: Session, known: DeviceCheck, *, quiet: bool) -> DeviceCheck:
    """Print each step as it ends, and again if a repetition of it ended differently; return the finished check."""
    printed: dict[DeviceStep, CheckStep] = {}
    activity = ""
    while True:
        for step in known.steps:
            before = printed.get(step.step)
            if quiet or (before and (before.outcome, before.text) == (step.outcome, step.text)):
                continue
            printed[step.step] = step
            session.output.lines(format_step(step))
        if known.finished_at is not None:
            return known
        if known.doing != activity and not quiet:
            activity = known.doing
            session.output.note(Text(f"  {one_line(activity)}", style="dim"))
        known = session.calls(LabCalls).await_device_check(known)


def format_step(step: CheckStep) -> list[Text]:
    """Format a step as `ok      golden system  up 9.1 s after the power`; a failure with its kind and its fix."""
    line = Text.assemble(
        (f"{step.outcome.value:<8}", _STYLES[step.outcome]),
        (f"{TITLES[step.step]:<15}", "bold"),
        f"{step.failure.kind.value}: " if step.failure else "",
        one_line(step.text),
    )
    return [line, *_fix_lines(step.failure)]


def _fix_lines(failure: Failure | None) -> list[Text]:
    return [Text(f"{'':8}{'fix':<15}{one_line(failure.advice)}")] if failure and failure.advice else []


def _conclusion(check_: DeviceCheck) -> Text:
    name = check_.device
    if check_.outcome is Outcome.PASSED:
        return Text(f"{name} passed the check", style="green")
    failed = next((step for step in check_.steps if step.outcome is StepOutcome.FAILED), None)
    if failed:
        return Text(f"{name} failed the check: {TITLES[failed.step]}", style="bold red")
    reason = one_line(check_.failure.summary) if check_.failure else "no reason given"
    return Text(f"the check of {name} ended without a result: {reason}", style="bold red")
