"""`wqlab device import`: add the machines of an inventory (CSV) to a lab's files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import ExitCode
from wqlab_contracts.new_devices import files, inventory

from ..errors import UsageError
from ..trial import LabFolders, check_data
from .output import Output
from .session import session_of

Data = Annotated[
    Path, typer.Option(envvar="WQLAB_DATA_DIR", help="The lab's data folder, with device-types/; default: this folder")
]
State = Annotated[
    Path, typer.Option(envvar="WQLAB_STATE", help="The lab's state folder, with labgrid/", show_default=False)
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace what was written for machines of these names")]
PROBLEMS_SHOWN = 100


def import_inventory(  # noqa: PLR0917 - typer's options
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV file with one machine a row", show_default=False)],
    state: State,
    data: Data = Path(),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be written, and write nothing")] = False,
    replace: Replace = False,
) -> None:
    """Add the machines of a CSV file: device types, exporter files, addresses. Nothing is written if a row is wrong.

    Runs on the lab's host and needs no server. The same file again changes nothing.
    """
    output = session_of(context).output
    data = data.absolute()
    check_data(data)
    rows = _rows(file, output)
    folders = files.Folders(data, LabFolders(data, state).exporters)
    planned = _plan(rows, folders, file, output, replace=replace)
    changed = [each for each in planned if each.changed]
    for each in changed:
        output.line(Text.assemble((f"{'new' if each.before is None else 'changed':<9}", "green"), str(each.path)))
        if dry_run:
            output.lines(f"    {line}" for line in each.added.rstrip("\n").split("\n"))
    machines = f"{len(rows)} machine{'s' * (len(rows) != 1)}"
    if not changed:
        output.line(f"{machines}: every file is up to date")
    elif dry_run:
        output.line(f"{machines}: {len(changed)} files would be written")
    else:
        write_files(planned)
        output.line(f"{machines}: {len(changed)} files written")
        output.note("`make up` applies them (running boots are interrupted); then `wqlab device check NAME`.")


def write_files(planned: list[files.PlannedFile]) -> None:
    """Write the files. Raises UsageError if one cannot be written."""
    try:
        files.write(planned)
    except OSError as error:
        raise UsageError(
            f"cannot write {error.filename}: {error.strerror}", "run this as the user who owns the lab's folders"
        ) from None


def _rows(file: Path, output: Output) -> list[inventory.Row]:
    try:
        return inventory.read(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", "give a CSV file") from None
    except inventory.InventoryError as error:
        raise _refused(file, error.problems, output) from None


def _plan(
    rows: list[inventory.Row], folders: files.Folders, file: Path, output: Output, *, replace: bool
) -> list[files.PlannedFile]:
    try:
        return files.plan([row.device for row in rows], folders, replace=replace)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}", "give the folders of a lab") from None
    except files.DevicesRefused as error:
        by_name = {row.device.name: row for row in rows}
        problems = []
        for each in error.refusals:
            row = by_name.get(each.device)
            column = inventory.column_of(each.field, row.device.power.kind) if row and each.field else ""
            problems.append(inventory.RowProblem(row.line if row else 0, column, each.message))
        raise _refused(file, sorted(set(problems)), output) from None


def _refused(file: Path, problems: list[inventory.RowProblem], output: Output) -> typer.Exit:
    """Print the mistakes, each with its place, and return the exit of the command."""
    for each in problems[:PROBLEMS_SHOWN]:
        output.note(each.text(str(file)))
    if len(problems) > PROBLEMS_SHOWN:
        output.note(f"... and {len(problems) - PROBLEMS_SHOWN} more")
    output.note(Text(f"{len(problems)} mistake{'s' * (len(problems) != 1)}; nothing was written", style="bold red"))
    return typer.Exit(ExitCode.USAGE)
