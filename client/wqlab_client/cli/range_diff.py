"""`wqlab range-diff`: print what changed between two versions of a series, and compare their figures."""

from __future__ import annotations

from typing import Annotated

import typer

from ..calls.comparisons import ComparisonCalls
from ..calls.submissions import SubmissionCalls
from ..errors import RequestRefused
from ..formatting import clean, one_line
from .session import JsonFlag, session_of
from .sides import print_figures


def register(app: typer.Typer) -> None:
    app.command("range-diff")(range_diff)


def range_diff(
    context: typer.Context,
    first: Annotated[int, typer.Argument(min=1, metavar="ID", help="The earlier version", show_default=False)],
    second: Annotated[int, typer.Argument(min=1, metavar="ID", help="The later version", show_default=False)],
    as_json: JsonFlag = False,
) -> None:
    """Show what changed between two versions of a series, and compare their figures.

    The series are those that the lab has applied: wqlab range-diff 12 17
    """
    from wqlab_report import range_diff as series

    session = session_of(context)
    calls = session.calls(SubmissionCalls)
    pairs = series.range_diff(*(series.patches_of(calls.series(number)) for number in (first, second)))
    try:
        compared = session.calls(ComparisonCalls).compare(str(first), str(second))
    except RequestRefused as refused:
        compared, why = None, refused.summary
    if as_json:
        figures = compared and compared.model_dump(mode="json")
        session.output.document({"patches": [vars(pair) for pair in pairs], "comparison": figures})
    else:
        session.output.lines([clean(line.expandtabs()) for line in series.text_of(pairs)])
        if compared is not None:
            session.output.lines([""])
            print_figures(session, compared)
    if compared is None:
        session.output.note(one_line(why))
