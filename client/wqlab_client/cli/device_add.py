"""`wqlab device add`: ask about a new machine, try each step live, write its files, and check it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter
from rich.text import Text

from wqlab_contracts.enums import ExitCode, Outcome, StepOutcome
from wqlab_contracts.new_devices.description import NewDevice
from wqlab_contracts.new_devices.trial import TrialRequest, TrialResult, TrialStep, TrialStepResult
from wqlab_contracts.specs import Topology

from ..calls.lab import LabCalls
from ..errors import LabUnavailable, RequestRefused, UsageError
from ..formatting import one_line
from ..new_devices import files
from ..new_devices.questions import QUESTIONS, AnswerProblem, Question, is_asked, parse
from ..trial import LabFolders
from ..trial import run as run_trial
from .device_check import check, device_app
from .session import DETACHED_EXIT, Session, session_of

TITLES = {
    TrialStep.CONSOLE: "console",
    TrialStep.POWER_OFF: "power off",
    TrialStep.POWER_ON: "power on",
    TrialStep.GOLDEN: "golden system",
    TrialStep.ECHO: "console echo",
    TrialStep.SSH: "SSH",
    TrialStep.MACHINE: "CPUs and disks",
    TrialStep.KEXEC: "kexec",
    TrialStep.RESET: "reset",
}
_STYLES = {StepOutcome.OK: "green", StepOutcome.FAILED: "bold red", StepOutcome.SKIPPED: "dim"}
_CONSOLE_LINES = 8
_APPEARS_S = 180.0
"""Longest time until the server has read a new device type; a busy host starts it slowly."""
_ANSWERS = TypeAdapter(dict[str, str])


@device_app.command("add")
def add(  # noqa: PLR0917 - typer's options
    context: typer.Context,
    state: Annotated[
        Path, typer.Option(envvar="WQLAB_STATE", help="The lab's state folder, with labgrid/", show_default=False)
    ],
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Name of the machine", show_default=False)] = "",
    kernel: Annotated[
        Path | None, typer.Option(help="Kernel image to start by kexec, with the machine's drivers")
    ] = None,
    only_try: Annotated[bool, typer.Option("--only-try", help="Try the machine, and write nothing")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Write the files and apply them without asking")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what was written for a machine of this name")
    ] = False,
    rehearsal: Annotated[
        bool, typer.Option("--rehearsal", help="The machine emulates a real one: its figures are no evidence of speed")
    ] = False,
    data: Annotated[
        Path,
        typer.Option(envvar="WQLAB_DATA_DIR", help="The lab's data folder, with device-types/; default: this folder"),
    ] = Path(),
) -> None:
    """Add a machine: asks for power, console and boot, tries each step live, writes the files, and checks the device.

    Runs on the lab's host as the lab's user: that host reaches the BMC and the console. Exit codes: 0 added (or tried),
    4 a step failed.
    """
    session, folders = session_of(context), LabFolders(data.absolute(), state.absolute())
    folders.check()
    answers = _kept_answers(name, folders)
    while True:
        device = _ask(session, answers, name)
        _keep(answers, folders, device.name)
        if rehearsal:
            device = device.model_copy(update={"rehearsal": True})
        if not only_try:
            _check_before_trial(device, folders, replace=replace)
        result = _try(session, device, folders, kernel)
        if result.outcome is Outcome.PASSED:
            break
        session.output.line(_conclusion(device, result))
        if not (sys.stdin.isatty() and typer.confirm("Change the answers and try again?", default=True)):
            raise typer.Exit(ExitCode.INFRASTRUCTURE)
    session.output.line(Text(f"{device.name} passed every step", style="green"))
    _offer_disks(session, device, result)
    if only_try:
        return
    planned = _plan(device.model_copy(update={"topology": result.topology}), folders, replace=replace)
    changed = [each for each in planned if each.changed]
    for each in changed:
        session.output.line(f"{'new' if each.before is None else 'changed':<8}{each.path}")
    if changed and not yes and not typer.confirm("Write these files?", default=True):
        raise typer.Exit(ExitCode.DONE)
    _write(planned)
    folders.answers(device.name).unlink(missing_ok=True)
    _apply_and_check(context, device, folders, yes=yes)


def _check_before_trial(device: NewDevice, folders: LabFolders, *, replace: bool) -> None:
    """Raise UsageError if the machine cannot be added: a trial would be in vain. A new type's topology is assumed."""
    if not (folders.data / "device-types" / f"{device.device_type}.yaml").exists():
        assumed = Topology(sockets=1, l3_per_socket=1, cores_per_l3=1, threads_per_core=1)
        device = device.model_copy(update={"topology": assumed})
    _plan(device, folders, replace=replace)


def _plan(device: NewDevice, folders: LabFolders, *, replace: bool) -> list[files.PlannedFile]:
    """Return the files that the machine needs. Raises UsageError if they cannot be written."""
    try:
        return files.plan(device, files.Folders(folders.data, folders.exporters), replace=replace)
    except files.DeviceRefused as error:
        first, *others = error.reasons
        more = f" ({len(others)} more)" if others else ""
        raise UsageError(f"{device.name} cannot be added: {first}{more}") from None


def _write(planned: list[files.PlannedFile]) -> None:
    """Write the files. Raises UsageError if one cannot be written."""
    try:
        files.write(planned)
    except OSError as error:
        raise UsageError(
            f"cannot write {error.filename}: {error.strerror}", "run this as the user who owns the lab's folders"
        ) from None


# --- answers ------------------------------------------------------------------------------------------------------


def _kept_answers(name: str, folders: LabFolders) -> dict[str, str]:
    """Return the answers that an earlier call for this machine has kept. Raises UsageError if they cannot be read."""
    if not name:
        return {}
    file = folders.answers(name)
    if not file.exists():
        return {"name": name}
    try:
        return _ANSWERS.validate_json(file.read_bytes())
    except (OSError, ValueError):
        raise UsageError(f"{file} cannot be read", "remove it, and answer again") from None


def _ask(session: Session, answers: dict[str, str], name: str) -> NewDevice:
    """Ask each question, with earlier answers as defaults, until the answers describe a machine."""
    session.output.note("Answer with Enter to take the value in brackets; `-` leaves an answer out.")
    wanted = {question.name for question in QUESTIONS} - ({"name"} if name else set())
    while True:
        for question in QUESTIONS:
            if question.name in wanted and is_asked(question, answers):
                _ask_one(session, question, answers)
        found = parse(answers)
        if isinstance(found, NewDevice):
            return found
        _print_problems(session, found)
        wanted = {problem.question for problem in found}
        if "power" in wanted:
            wanted |= {question.name for question in QUESTIONS if question.power}


def _ask_one(session: Session, question: Question, answers: dict[str, str]) -> None:
    """Ask a question until its answer is valid by itself."""
    default = answers.get(question.name) or question.default
    while True:
        answer = typer.prompt(question.text, default=default or ("-" if question.optional else None), type=str)
        answers[question.name] = "" if answer.strip() == "-" else answer.strip()
        # Alone: what several answers say together is checked when all are given. Each needs a kind of power.
        alone = {"power": answers.get("power") or "ipmi", question.name: answers[question.name]}
        found = parse(alone)
        wrong = [] if isinstance(found, NewDevice) else [each for each in found if each.question == question.name]
        if not wrong:
            return
        _print_problems(session, wrong)


def _print_problems(session: Session, problems: Sequence[AnswerProblem]) -> None:
    for problem in problems:
        session.output.note(Text(f"{problem.question}: {problem.message}", style="bold red"))


def _keep(answers: dict[str, str], folders: LabFolders, name: str) -> None:
    """Keep the answers, so that the command continues with them. They have no password."""
    file = folders.answers(name)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_bytes(_ANSWERS.dump_json(answers, indent=2))


# --- trial --------------------------------------------------------------------------------------------------------


def _try(session: Session, device: NewDevice, folders: LabFolders, kernel: Path | None) -> TrialResult:
    """Run the trial and print each step as it ends."""
    if kernel is not None and not kernel.is_file():
        raise UsageError(f"{kernel} is no file", "give a kernel image with --kernel")
    request = TrialRequest(device=device, ssh_key=folders.ssh_key, kernel=kernel or folders.kernel(device.arch))
    messages = run_trial(request)
    result: TrialResult | None = None
    try:
        for message in messages:
            if message.type == "doing":
                session.output.note(Text(f"  {one_line(message.text)}", style="dim"))
            elif message.type == "step":
                session.output.lines(format_step(message.result))
            else:
                result = message.result
    except KeyboardInterrupt:
        session.output.note(f"stopping; {device.name} is switched off")
        messages.close()
        raise typer.Exit(DETACHED_EXIT) from None
    assert result is not None  # noqa: S101 - `run_trial` raises without one
    return result


def format_step(step: TrialStepResult) -> list[Text]:
    """Format a step as `ok      power on       first text ...`; a failure with its fix and the console's last lines."""
    lines = [
        Text.assemble(
            (f"{step.outcome.value:<8}", _STYLES[step.outcome]),
            (f"{TITLES[step.step]:<16}", "bold"),
            one_line(step.text),
        )
    ]
    if step.fix:
        lines.append(Text(f"{'':8}{'fix':<16}{one_line(step.fix)}"))
    tail = [one_line(line) for line in step.console.split("\n") if line.strip()][-_CONSOLE_LINES:]
    if tail:
        lines.append(Text(f"{'':8}{'console':<16}{tail[0]}", style="dim"))
        lines += [Text(f"{'':24}{line}", style="dim") for line in tail[1:]]
    return lines


def _conclusion(device: NewDevice, result: TrialResult) -> Text:
    failed = next((step for step in result.steps if step.outcome is StepOutcome.FAILED), None)
    where = TITLES[failed.step] if failed else "the trial was stopped"
    return Text(f"{device.name} was not added: {where}; nothing was written", style="bold red")


def _offer_disks(session: Session, device: NewDevice, result: TrialResult) -> None:
    if result.disks and not device.scratch:
        session.output.note(f"Disks of {device.name}, of which plans may overwrite none: {', '.join(result.disks)}")


# --- apply --------------------------------------------------------------------------------------------------------


def _apply_and_check(context: typer.Context, device: NewDevice, folders: LabFolders, *, yes: bool) -> None:
    """Start the lab's exporter with the new files, and check the device. Prints the commands if a person does this."""
    session = session_of(context)
    program = shutil.which("wqlab-lab", path=str(Path(sys.executable).parent))
    later = f"then `wqlab device check {device.name}`."
    if device.lab != "local" or program is None:
        session.output.note(f"Restart the exporter of lab {device.lab} with the new file, {later}")
        return
    question = "Apply them now? The exporter restarts, and running boots are interrupted"
    if not yes and not typer.confirm(question, default=False):
        session.output.note(f"`make up` applies them; {later}")
        return
    environment = {**os.environ, "WQLAB_DATA_DIR": str(folders.data), "WQLAB_STATE": str(folders.state)}
    if subprocess.run([program, "up"], check=False, env=environment).returncode:
        raise UsageError("the lab did not apply the files", f"see its message above; run `make up`, {later}")
    deadline = time.monotonic() + _APPEARS_S
    while True:
        try:
            session.calls(LabCalls).device(device.name)
            break
        except (RequestRefused, LabUnavailable) as error:
            unknown = isinstance(error, LabUnavailable) or error.status == 404  # the API may restart as well
            if not unknown or time.monotonic() > deadline:
                raise
            time.sleep(1)
    check(context, device.name)


def register(app: typer.Typer) -> None:
    app.add_typer(device_app)
