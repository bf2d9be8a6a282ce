"""`wqlab touches`: the targets that the lab proposes for a series, by what it changes."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.api.quotes import QuoteBasis
from wqlab_contracts.messages import Series, Target

from ..calls.touches import TouchesCalls
from ..errors import UsageError
from ..formatting import align_columns, one_line, rough_duration
from .series_options import SeriesOptions, parse_series
from .session import JsonFlag, Session, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.touches import TargetProposal, TouchedFile, Touches

_SYMBOLS_SHOWN = 3
_FILES_SHOWN = 2
_UNCOVERED_SHOWN = 5


def touches(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="The series as an mbox; - is standard input", show_default=False),
    ] = None,
    message_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Instead of FILE: Message-ID of any mail of the series, or its URL"),
    ] = None,
    git: Annotated[str | None, typer.Option(metavar="URL", help="Instead of FILE: repository of the series")] = None,
    ref: Annotated[str | None, typer.Option(metavar="BRANCH", help="With --git: branch or tag of the series")] = None,
    base: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="With --git: base commit; by default the merge base")
    ] = None,
    tree: Annotated[str | None, typer.Option(metavar="NAME", help="Kernel tree (`wqlab trees`)")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Propose targets for a series, by the files and functions that it changes.

    Each proposal says what the plan could find, what led to it, and the device time that it takes. `wqlab submit
    --what-it-touches` submits them. A branch is read by a worker of the lab first: wqlab touches --git URL --ref BRANCH
    """
    session = session_of(context)
    if len([each for each in (file, message_id, git) if each is not None]) != 1:
        raise UsageError("pass one of FILE, --message-id and --git", "FILE is an mbox; - is standard input")
    series = parse_series(SeriesOptions(git, ref, base, file, message_id))
    configured = session.config.tree.value if session.config.tree else None
    found = session.calls(TouchesCalls).touches(series or Series(), tree or configured, _noting(session))
    if as_json:
        session.output.document(found)
        return
    session.output.lines(format_touches(found, session.output.width))
    if found.proposals:
        named = {"--git": git, "--ref": ref, "--base": base, "--mbox": file, "--message-id": message_id, "--tree": tree}
        given = " ".join(f"{name} {shlex.quote(value)}" for name, value in named.items() if value is not None)
        session.output.note(f"submit them with `wqlab submit {given} --what-it-touches`")


def add_proposals(session: Session, series: Series | None, tree: str, own: Sequence[Target]) -> list[Target]:
    """Show what the lab proposes for a series on stderr, and return the targets: one's own, then the proposed ones.

    Raises UsageError for a settings study, and if there is no target at all.
    """
    if series is None:
        raise UsageError("--what-it-touches needs a series", "pass --git and --ref, --mbox or --message-id")
    found = session.calls(TouchesCalls).touches(series, tree, _noting(session))
    for line in format_touches(found, session.output.width):
        session.output.note(line)
    taken = {(target.plan, target.device_type) for target in own}
    proposed = [each.target for each in found.proposals]
    targets = [*own, *(each for each in proposed if (each.plan, each.device_type) not in taken)]
    if not targets:
        raise UsageError("the lab proposes nothing for this series", "name a plan and a device type with --target")
    return targets


def _noting(session: Session) -> Callable[[str], None]:
    """Return a function that shows on stderr what the lab does."""
    return lambda text: session.output.note(one_line(text))


def format_touches(found: Touches, width: int) -> list[Text | str]:
    """Format proposals as lines: a row each with what it could find below, then the sum and what is left out."""
    lines: list[Text | str] = []
    if found.proposals:
        header, *rows = align_columns(
            ("TARGET", "DEVICE TIME", "BECAUSE OF"), [_row(each) for each in found.proposals], width
        )
        lines += header
        for row, proposal in zip(rows, found.proposals, strict=True):
            lines += row
            for sentence in proposal.asks:
                lines += _indented(sentence, width)
            if proposal.target.settings:
                lines += _indented(f"settings: {'; '.join(proposal.target.settings)}", width)
        lines.append(_sum(found))
    else:
        lines.append("the lab proposes no target for what this series changes")
    for left in found.left_out:
        lines.append(f"not proposed: {one_line(left.plan)}: {one_line(left.why)}")
    if found.uncovered:
        shown = ", ".join(one_line(path) for path in found.uncovered[:_UNCOVERED_SHOWN])
        more = len(found.uncovered) - _UNCOVERED_SHOWN
        lines.append(f"no plan for:  {shown}{f' and {more} more' if more > 0 else ''}")
    if found.looked_at < found.files:
        lines.append(f"only the first {found.looked_at} of {found.files} changed files were looked at")
    return lines


def _indented(text: str, width: int) -> list[str]:
    return textwrap.wrap(one_line(text), max(width, 40), initial_indent="    ", subsequent_indent="    ")


def _row(proposal: TargetProposal) -> tuple[str, str, str]:
    target = proposal.target
    quote = proposal.quote
    time = "unknown"
    if quote is not None and quote.device_s is not None:
        guess = "about " if _is_guess(proposal) else ""
        time = f"{guess}{rough_duration(quote.device_s)}"
    return f"{target.plan}@{target.device_type}", time, _because(proposal.because)


def _is_guess(proposal: TargetProposal) -> bool:
    return proposal.quote is not None and proposal.quote.basis is QuoteBasis.PLANNED


def _because(files: Sequence[TouchedFile]) -> str:
    shown = "; ".join(_file(file) for file in files[:_FILES_SHOWN])
    more = len(files) - _FILES_SHOWN
    return f"{shown} and {more} more file{'' if more == 1 else 's'}" if more > 0 else shown


def _file(file: TouchedFile) -> str:
    if not file.symbols:
        return one_line(file.path)
    names = ", ".join(one_line(symbol) for symbol in file.symbols[:_SYMBOLS_SHOWN])
    more = len(file.symbols) - _SYMBOLS_SHOWN
    return f"{names}{f' and {more} more' if more > 0 else ''} in {one_line(file.path)}"


def _sum(found: Touches) -> str:
    guess = "about " if any(_is_guess(each) for each in found.proposals) else ""
    devices = "device time unknown"
    if found.device_s is not None:
        devices = f"{guess}{rough_duration(found.device_s)} of device time"
    if found.build_s is None:
        return f"all of them:  {devices}; the time of their kernel builds is unknown"
    return f"all of them:  {devices}, {rough_duration(found.build_s)} of kernel builds"


def register(app: typer.Typer) -> None:
    app.command("touches")(touches)
