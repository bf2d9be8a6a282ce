"""`wqlab device check`: a new device from its power switch to its noise, with an answer and a fix at each step."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from wqlab_contracts.api.queue import DeviceCheck
from wqlab_contracts.enums import DeviceStep, ExitCode, Outcome, StepOutcome
from wqlab_contracts.messages import CheckStep, Failure

from ..wording import one_line
from .lab import DeviceName
from .session import DETACHED_EXIT, JsonFlag, Session, of

device_app = typer.Typer(name="device", help="One device: is it fit for work?", rich_markup_mode=None)

TITLES = {
    DeviceStep.POWER: "power",
    DeviceStep.CONSOLE: "console",
    DeviceStep.GOLDEN: "golden system",
    DeviceStep.KEXEC: "kexec",
    DeviceStep.TOPOLOGY: "topology",
    DeviceStep.DETECTORS: "detectors",
    DeviceStep.FITNESS: "fitness",
    DeviceStep.SCRATCH: "scratch disks",
    DeviceStep.NOISE: "noise",
}
_STYLES = {StepOutcome.OK: "green", StepOutcome.FAILED: "bold red", StepOutcome.SKIPPED: "dim"}


@device_app.callback()
def _group() -> None:
    """A group of commands, though it has one."""


@device_app.command("check")
def check(
    context: typer.Context,
    name: DeviceName,
    as_json: JsonFlag = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it has ended")] = True,
) -> None:
    """Walk through a device: power, console, golden system, kexec, topology, detectors, scratch disks, noise.

    For maintainers. Exit codes: 0 every step is ok or skipped with a reason, 4 one failed or the walk was cut short.
    """
    session = of(context)
    asked = session.client.check_device(name)
    if not wait:
        _ordered(session, asked, as_json)
        return
    try:
        ended = _followed(session, asked, quiet=as_json)
    except KeyboardInterrupt:
        session.output.note(f"detached; check {asked.id} of {name} goes on. See it with `wqlab device check {name}`.")
        raise typer.Exit(DETACHED_EXIT) from None
    if as_json:
        session.output.document(ended)
    else:
        session.output.line(_conclusion(ended))
    raise typer.Exit(ExitCode.DONE if ended.outcome is Outcome.PASSED else ExitCode.INFRASTRUCTURE)


def _ordered(session: Session, asked: DeviceCheck, as_json: bool) -> None:
    if as_json:
        session.output.document(asked)
    else:
        session.output.line(f"check {asked.id} of {asked.device} is ordered")


def _followed(session: Session, known: DeviceCheck, *, quiet: bool) -> DeviceCheck:
    """Prints each step as it ends, and again when it was tried again and ended otherwise."""
    told: dict[DeviceStep, CheckStep] = {}
    doing = ""
    while True:
        for step in known.steps:
            before = told.get(step.step)
            if quiet or (before and (before.outcome, before.text) == (step.outcome, step.text)):
                continue
            told[step.step] = step
            session.output.lines(described(step))
        if known.finished_at is not None:
            return known
        if known.doing != doing and not quiet:
            doing = known.doing
            session.output.note(Text(f"  {one_line(doing)}", style="dim"))
        known = session.client.await_device_check(known)


def described(step: CheckStep) -> list[Text]:
    """`ok      golden system  up 9.1 s after the power`; a failure with its kind and its fix."""
    line = Text.assemble(
        (f"{step.outcome.value:<8}", _STYLES[step.outcome]),
        (f"{TITLES[step.step]:<15}", "bold"),
        f"{step.failure.kind.value}: " if step.failure else "",
        one_line(step.text),
    )
    return [line, *_fix(step.failure)]


def _fix(failure: Failure | None) -> list[Text]:
    return [Text(f"{'':8}{'fix':<15}{one_line(failure.advice)}")] if failure and failure.advice else []


def _conclusion(check_: DeviceCheck) -> Text:
    name = check_.device
    if check_.outcome is Outcome.PASSED:
        return Text(f"{name} is fit for work", style="green")
    failed = next((step for step in check_.steps if step.outcome is StepOutcome.FAILED), None)
    if failed:
        return Text(f"{name} is not fit for work: {TITLES[failed.step]}", style="bold red")
    why = one_line(check_.failure.summary) if check_.failure else "no reason given"
    return Text(f"the check of {name} did not come to an answer: {why}", style="bold red")


def register(app: typer.Typer) -> None:
    app.add_typer(device_app)
