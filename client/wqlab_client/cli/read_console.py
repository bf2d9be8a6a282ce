"""`wqlab read-console`: print what a lab would read in a console log. It needs no server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wqlab_contracts.enums import ExitCode

from ..formatting import one_line
from .inspect_mails import read_file
from .session import JsonFlag, session_of

if TYPE_CHECKING:
    from wqlab_contracts.consoles.console_reading import ReadConsole, ReadReport


def register(app: typer.Typer) -> None:
    app.command("read-console")(read_console)


def read_console(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Console log or dmesg of one boot; - is standard input")],
    as_json: JsonFlag = False,
) -> None:
    """Show the kernel reports in a console log, their defects, and what counts against the kernel.

    It needs no lab. The command ends with code 1 if something counts against the kernel: dmesg | wqlab read-console -
    """
    # Every start of `wqlab` would wait for RE2 and its patterns.
    from wqlab_contracts.consoles import console_reading

    found = console_reading.read_console(read_file(file))
    output = session_of(context).output
    if as_json:
        output.document(found)
    else:
        output.lines(format_console(found))
    if any(report.charged for report in found.reports):
        raise typer.Exit(ExitCode.REGRESSION)


def format_console(found: ReadConsole) -> list[str]:
    """Format what was read as lines: two for each report, and one about hardware errors."""
    lines = [line for report in found.reports for line in _format_report(report)] or ["no kernel report"]
    if found.hardware_errors:
        count = len(found.hardware_errors)
        noun = "line" if count == 1 else "lines"
        lines.append(f"hardware errors: {count} {noun}, the first: {one_line(found.hardware_errors[0])}")
    return lines


def _format_report(report: ReadReport) -> tuple[str, str]:
    reason = "counts against the kernel"
    if report.of_hardware:
        reason = "the hardware's"
    elif report.caused_by is not None:
        reason = f"caused by report {report.caused_by}"
    fatal = " (fatal)" if report.fatal else ""
    return (
        f"lines {report.first_line}-{report.last_line}: {report.kind.value}{fatal}: {one_line(report.title)}",
        f"  {reason}; defect: {one_line(report.defect)}",
    )
