"""`wqlab inspect`: print which patches of an mbox a lab would apply. It needs no server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wqlab_contracts.enums import ExitCode
from wqlab_contracts.message_ids import find_message_id
from wqlab_contracts.offline_inspection import OfflineInspection, inspect_offline

from ..errors import UsageError
from ..formatting import one_line
from .session import JsonFlag, session_of


def register(app: typer.Typer) -> None:
    app.command("inspect")(inspect)


def inspect(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Mails as an mbox or one raw mail; - is standard input")],
    message_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Take FILE for a thread, and choose the series of this mail"),
    ] = None,
    revision: Annotated[int | None, typer.Option(metavar="N", help="With --message-id: the revision", min=1)] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show which patches of an mbox the lab would apply, in order, or why it would refuse them.

    It needs no lab. The command ends with code 3 if the lab would refuse the series: wqlab inspect series.mbox
    """
    found_id = find_message_id(message_id) if message_id is not None else None
    if message_id is not None and found_id is None:
        raise UsageError(
            f"--message-id: there is no Message-ID in {message_id[:80]!r}", "write what is between < and >"
        )
    if revision is not None and message_id is None:
        raise UsageError("--revision needs --message-id")
    found = inspect_offline(read_file(file), found_id, revision)
    output = session_of(context).output
    if as_json:
        output.document(found)
    else:
        output.lines(format_inspection(found))
    if found.refusal is not None and not (found.commands and not found.patches):
        raise typer.Exit(ExitCode.SERIES_FAILED)


def format_inspection(found: OfflineInspection) -> list[str]:
    """Format an inspection as lines: the series, its patches, and what speaks against it."""
    lines = []
    if found.patches:
        base = found.base or "the head of the tree"
        count = "1 patch" if len(found.patches) == 1 else f"{len(found.patches)} patches"
        lines.append(one_line(f"{found.subject}, v{found.version}, {count}, on {base}"))
    for number, patch in enumerate(found.patches, 1):
        lines.append(one_line(f"{number:4} {patch.title}  {patch.author}  {patch.message_id or 'no Message-ID'}"))
        lines += [one_line(f"     {change.path} +{change.insertions} -{change.deletions}") for change in patch.files]
    lines += [one_line(f"refused: {found.refusal}")] if found.refusal is not None else []
    lines += [one_line(f"note: {text}") for text in found.notes]
    lines += [one_line(f"warning: {each.detail}") for each in found.problems if each.severity == "warning"]
    lines += [one_line(f"command: {text}") for reply in found.commands for text in reply.commands]
    return lines


def read_file(name: str) -> bytes:
    """Return the content of a file, or of standard input for `-`. Raises UsageError if it cannot be read."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
