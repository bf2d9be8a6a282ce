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
from rich.text import Text

from wqlab_contracts.enums import ExitCode, Outcome, StepOutcome
from wqlab_contracts.messages.device_trials import TrialRequest, TrialResult, TrialStep, TrialStepResult
from wqlab_contracts.new_devices import files, inventory
from wqlab_contracts.new_devices.description import NewDevice
from wqlab_contracts.new_devices.questions import QUESTIONS, Question, applying, asked

from ..errors import LabUnavailable, RequestRefused, UsageError
from ..formatting import one_line
from ..trial import LabFolders
from ..trial import run as run_trial
from .device_check import check, device_app
from .device_import import Data, Replace, State, import_inventory, write_files
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


def add(  # noqa: PLR0917 - typer's options
    context: typer.Context,
    state: State,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Name of the machine", show_default=False)] = "",
    answers: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Take the answers from this inventory (CSV)")
    ] = None,
    kernel: Annotated[
        Path | None, typer.Option(help="Kernel image to start by kexec, with the machine's drivers")
    ] = None,
    only_try: Annotated[bool, typer.Option("--only-try", help="Try the machine, and write nothing")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Write the files and apply them without asking")] = False,
    replace: Replace = False,
    data: Data = Path(),
) -> None:
    """Add a machine: asks for power, console and boot, tries each step live, writes the files, and checks the device.

    Runs on the lab's host as the lab's user: that host reaches the BMC and the console. Exit codes: 0 added (or tried),
    4 a step failed.
    """
    session, folders = session_of(context), LabFolders(data.absolute(), state.absolute())
    folders.check()
    interactive = answers is None
    cells = _known_cells(name, answers, folders)
    while True:
        device = _ask(session, cells, name) if interactive else _described(cells, answers)
        if interactive:
            _keep(cells, folders, device.name)
        if not only_try:
            planned_without_trial(device, folders, replace=replace)
        result = _try(session, device, folders, kernel)
        if result.outcome is Outcome.PASSED:
            break
        session.output.line(_conclusion(device, result))
        if not (
            interactive and sys.stdin.isatty() and typer.confirm("Change the answers and try again?", default=True)
        ):
            raise typer.Exit(ExitCode.INFRASTRUCTURE)
    session.output.line(Text(f"{device.name} passed every step", style="green"))
    _offer_disks(session, device, result)
    if only_try:
        return
    if device.topology is None:
        device = device.model_copy(update={"topology": result.topology})
    planned = planned_without_trial(device, folders, replace=replace)
    changed = [each for each in planned if each.changed]
    for each in changed:
        session.output.line(f"{'new' if each.before is None else 'changed':<8}{each.path}")
    if changed and not yes and not typer.confirm("Write these files?", default=True):
        raise typer.Exit(ExitCode.DONE)
    write_files(planned)
    (folders.answers / f"{device.name}.csv").unlink(missing_ok=True)
    _apply_and_check(context, device, folders, yes=yes)


def planned_without_trial(device: NewDevice, folders: LabFolders, *, replace: bool) -> list[files.PlannedFile]:
    """Return the files that the machine needs. A topology that is not measured yet is assumed.

    Raises UsageError if they cannot be written; then a trial would be in vain.
    """
    if device.topology is None and not (folders.data / "device-types" / f"{device.device_type}.yaml").exists():
        assumed = {"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 1, "threads_per_core": 1}
        device = NewDevice.model_validate({**device.model_dump(exclude_unset=True), "topology": assumed})
    try:
        return files.plan([device], files.Folders(folders.data, folders.exporters), replace=replace)
    except files.DevicesRefused as error:
        first, *others = error.refusals
        more = f" ({len(others)} more)" if others else ""
        raise UsageError(f"{device.name} cannot be added: {first.message}{more}") from None


# --- answers ------------------------------------------------------------------------------------------------------


def _known_cells(name: str, answers: Path | None, folders: LabFolders) -> dict[str, str]:
    """Return the cells of the inventory's row, or of an interrupted wizard for this machine."""
    kept = folders.answers / f"{name}.csv"
    file = answers or (kept if name and kept.exists() else None)
    if file is None:
        return {"name": name} if name else {}
    try:
        rows = inventory.read_cells(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", "give a CSV file") from None
    except inventory.InventoryError as error:
        first = error.problems[0]
        raise UsageError(first.text(str(file)), "see `wqlab device import`") from None
    found = [cells for cells in rows if not name or cells.get("name") == name]
    if len(found) != 1:
        names = ", ".join(cells.get("name", "") for cells in rows[:10])
        raise UsageError(f"{file} has {len(found)} machines for this command", f"name one of: {names}")
    return found[0]


def _described(cells: dict[str, str], answers: Path | None) -> NewDevice:
    found = inventory.parse(cells)
    if isinstance(found, NewDevice):
        return found
    raise UsageError("; ".join(each.text(str(answers)) for each in found), "correct the inventory")


def _ask(session: Session, cells: dict[str, str], name: str) -> NewDevice:
    """Ask each question, with earlier answers as defaults, until the answers describe a machine."""
    session.output.note("Answer with Enter to take the value in brackets; `-` leaves an answer out.")
    wanted = {question.column for question in QUESTIONS} - ({"name"} if name else set())
    while True:
        for question in QUESTIONS:
            if question.column in wanted and asked(question, cells):
                _ask_one(session, question, cells)
        found = inventory.parse(applying(cells))
        if isinstance(found, NewDevice):
            return found
        _print_problems(session, found)
        wanted = {problem.column for problem in found} or {question.column for question in QUESTIONS}
        if "power" in wanted:
            wanted |= {question.column for question in QUESTIONS if question.power}


def _ask_one(session: Session, question: Question, cells: dict[str, str]) -> None:
    """Ask a question until its answer is valid by itself."""
    default = cells.get(question.column) or question.default
    while True:
        answer = typer.prompt(question.text, default=default or ("-" if question.optional else None), type=str)
        cells[question.column] = "" if answer.strip() == "-" else answer.strip()
        # Alone: what several answers say together is checked when all are given. Each needs a kind of power.
        alone = {"power": cells.get("power") or "ipmi", question.column: cells[question.column]}
        found = inventory.parse(alone)
        wrong = [] if isinstance(found, NewDevice) else [each for each in found if each.column == question.column]
        if not wrong:
            return
        _print_problems(session, wrong)


def _print_problems(session: Session, problems: Sequence[inventory.RowProblem]) -> None:
    for problem in problems:
        session.output.note(Text(f"{problem.column}: {problem.message}", style="bold red"))


def _keep(cells: dict[str, str], folders: LabFolders, name: str) -> None:
    """Keep the answers, so that the command continues with them. They have no password."""
    folders.answers.mkdir(mode=0o700, exist_ok=True)
    (folders.answers / f"{name}.csv").write_text(inventory.cells_of(cells))


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
            session.client.device(device.name)
            break
        except (RequestRefused, LabUnavailable) as error:
            unknown = isinstance(error, LabUnavailable) or error.status == 404  # the API may restart as well
            if not unknown or time.monotonic() > deadline:
                raise
            time.sleep(1)
    check(context, device.name)


def register(_: typer.Typer) -> None:
    device_app.command("add")(add)
    device_app.command("import")(import_inventory)
