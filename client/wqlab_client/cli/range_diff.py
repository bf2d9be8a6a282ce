"""`wqlab range-diff`: print what changed between the patches of two versions of a series."""

from __future__ import annotations

from typing import Annotated

import typer

from ..calls.submissions import SubmissionCalls
from ..formatting import clean
from .session import JsonFlag, session_of


def register(app: typer.Typer) -> None:
    app.command("range-diff")(range_diff)


def range_diff(
    context: typer.Context,
    first: Annotated[int, typer.Argument(min=1, metavar="ID", help="The earlier version", show_default=False)],
    second: Annotated[int, typer.Argument(min=1, metavar="ID", help="The later version", show_default=False)],
    as_json: JsonFlag = False,
) -> None:
    """Show what changed between two versions of a series, patch by patch.

    The series are those that the lab has applied: wqlab range-diff 12 17. `wqlab compare 12 17` compares their figures.
    """
    from wqlab_report import range_diff as series

    session = session_of(context)
    calls = session.calls(SubmissionCalls)
    pairs = series.range_diff(*(series.patches_of(calls.series(number)) for number in (first, second)))
    if as_json:
        session.output.document({"patches": [vars(pair) for pair in pairs]})
        return
    session.output.lines([clean(line.expandtabs()) for line in series.text_of(pairs)])
