"""`wqlab range-diff`: print what changed between two versions of a series, and what changed in their figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..calls.submissions import SubmissionCalls
from ..formatting import clean, one_line
from .session import JsonFlag, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.steps import FigurePair


def register(app: typer.Typer) -> None:
    app.command("range-diff")(range_diff)


def range_diff(
    context: typer.Context,
    first: Annotated[int, typer.Argument(min=1, metavar="ID", help="The earlier version", show_default=False)],
    second: Annotated[int, typer.Argument(min=1, metavar="ID", help="The later version", show_default=False)],
    as_json: JsonFlag = False,
) -> None:
    """Show what changed between two versions of a series, and their figures side by side.

    The series are those that the lab has applied: wqlab range-diff 12 17
    """
    from wqlab_report import range_diff as series

    session = session_of(context)
    calls = session.calls(SubmissionCalls)
    pairs = series.range_diff(*(series.patches_of(calls.series(number)) for number in (first, second)))
    compared = calls.compare_submissions(first, second)
    if as_json:
        session.output.document(
            {"patches": [vars(pair) for pair in pairs], "comparison": compared.model_dump(mode="json")}
        )
        return
    session.output.lines([clean(line.expandtabs()) for line in series.text_of(pairs)])
    rows = [_row(figure) for figure in compared.figures if figure.first or figure.second]
    if rows:
        session.output.lines([""])
        session.output.table(("FIGURE", f"SUBMISSION {first}", f"SUBMISSION {second}"), rows)
    for note in compared.notes:
        session.output.note(one_line(note))


def _row(figure: FigurePair) -> tuple[str, str, str]:
    from wqlab_comparison.words import VERDICT, effect  # numpy and scipy take a second to import

    name = " ".join(filter(None, (figure.plan, figure.device_type, figure.scenario, figure.setting, figure.metric)))
    sides = [
        "" if each is None else ", ".join(filter(None, [effect(each), VERDICT[each.verdict] if each.verdict else ""]))
        for each in (figure.first, figure.second)
    ]
    return name, sides[0], sides[1]
