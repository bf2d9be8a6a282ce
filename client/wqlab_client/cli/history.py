"""`wqlab history`: metrics of watched trees over their heads, and the shifts of their levels."""

from __future__ import annotations

import csv
import sys
from typing import Annotated

import typer

from wqlab_contracts.api.history import HistoryLine, HistoryPoint, HistoryShift, ShiftChange
from wqlab_contracts.enums import Role, ShiftState

from ..calls.history import HistoryCalls
from ..errors import UsageError
from ..formatting import one_line
from .output import Output
from .session import Cursor, JsonFlag, Limit, session_of

history_app = typer.Typer(
    name="history", help="Follow metrics over the heads of watched trees.", rich_markup_mode=None, no_args_is_help=True
)
Tree = Annotated[str | None, typer.Option(metavar="NAME", help="Only this watched tree")]
Plan = Annotated[str | None, typer.Option(metavar="NAME", help="Only this plan")]
DeviceType = Annotated[str | None, typer.Option(metavar="NAME", help="Only this device type")]
ShiftId = Annotated[int, typer.Argument(metavar="SHIFT", help="Id of the shift", show_default=False)]


@history_app.command("lines")
def lines(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    tree: Tree = None,
    plan: Plan = None,
    device_type: DeviceType = None,
    metric: Annotated[str | None, typer.Option(metavar="NAME", help="Only this metric")] = None,
    role: Annotated[Role | None, typer.Option(help="Only metrics with this role")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """List the metrics that are followed, with the last value and level of each."""
    session = session_of(context)
    page = session.calls(HistoryCalls).history_lines(
        tree=tree, plan=plan, device_type=device_type, metric=metric, role=role, cursor=cursor, limit=limit
    )
    header = ("LINE", "TREE", "MEASURED", "SETTING", "METRIC", "LAST", "LEVEL", "POINTS", "SHIFTS")
    session.output.page(
        page,
        as_json=as_json,
        show=lambda found: session.output.table(header, [_line(each) for each in found]),
        none="no history; it begins when the second head of a watched tree is measured",
    )


def _line(line: HistoryLine) -> list[str]:
    return [
        str(line.id), f"{line.tree} {line.ref}", f"{line.plan}@{line.device_type}", _cell(line), line.metric,
        _value(line, line.last.value if line.last else None), _value(line, line.level.middle if line.level else None),
        str(line.points), str(line.open_shifts) if line.open_shifts else "",
    ]  # fmt: skip


@history_app.command("show")
def show(
    context: typer.Context,
    line_id: Annotated[int, typer.Argument(metavar="LINE", help="Id of the line", show_default=False)],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the points as CSV")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show a metric at each head, oldest first, with its shifts."""
    session = session_of(context)
    line = session.calls(HistoryCalls).history_line(line_id)
    if as_json:
        session.output.document(line)
        return
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(("head", "commit", "at", "value", "stddev", "boots", "effect", "verdict", "submission"))
        for point in line.series:
            writer.writerow(
                (
                    point.head.name, point.head.commit, point.at.isoformat(), point.value, point.stddev, point.n,
                    point.effect, point.verdict, point.submission_id,
                )
            )  # fmt: skip
        return
    output = session.output
    output.line(f"{line.tree} {line.ref}: {line.metric} of {line.plan}@{line.device_type} {_cell(line)}".rstrip())
    for point in line.series:
        if point.cut:
            output.line(f"    the environment changed: {one_line(point.cut)}")
        output.line(_point(line, point))
    for shift in line.shifts:
        _print_shift(output, shift)


@history_app.command("shifts")
def shifts(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    state: Annotated[ShiftState | None, typer.Option(help="Only shifts in this state")] = None,
    tree: Tree = None,
    plan: Plan = None,
    device_type: DeviceType = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """List changes of a metric's level, newest first, with what a second paired run of both sides said."""
    session = session_of(context)
    page = session.calls(HistoryCalls).history_shifts(
        state=state, tree=tree, plan=plan, device_type=device_type, cursor=cursor, limit=limit
    )

    def show_all(found: list[HistoryShift]) -> None:
        for shift in found:
            _print_shift(session.output, shift)

    session.output.page(page, as_json=as_json, show=show_all, none="no shifts")


@history_app.command("set")
def set_shift(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    shift_id: ShiftId,
    state: Annotated[
        ShiftState | None, typer.Option(help="explained, fixed, confirmed (again), or new: measure both sides again")
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Who looks after it")] = None,
    notes: Annotated[str | None, typer.Option(metavar="TEXT", help="Notes, which replace those before")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Change the state, owner or notes of a shift (maintainers). Its figures stay."""
    session = session_of(context)
    given = {"state": state, "owner": owner, "notes": notes}
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        raise UsageError("nothing to change", "state --state, --owner or --notes")
    if state is ShiftState.NOT_REPRODUCED:
        raise UsageError("only a paired run sets the state not_reproduced", "use --state explained with --notes")
    changed = session.calls(HistoryCalls).change_history_shift(shift_id, ShiftChange.model_validate(values))
    if as_json:
        session.output.document(changed)
    else:
        _print_shift(session.output, changed)


# --- output -----------------------------------------------------------------------------------------------------


def _cell(line: HistoryLine) -> str:
    return one_line(" ".join(part for part in (line.scenario, line.setting) if part))


def _value(line: HistoryLine, value: float | None) -> str:
    return "" if value is None else f"{value:.6g} {line.unit}".rstrip()


def _effect(line: HistoryLine, effect: float | None, ci95: tuple[float, float] | None) -> str:
    if effect is None:
        return "not measured"
    interval = f" [{ci95[0]:+.3g}, {ci95[1]:+.3g}]" if ci95 is not None else ""
    return f"{effect:+.3g} {line.effect_unit}{interval}"


def _point(line: HistoryLine, point: HistoryPoint) -> str:
    spread = f" ±{point.stddev:.3g}" if point.stddev else ""
    name = "" if point.head.name == line.ref else f" {one_line(point.head.name)}"
    text = (
        f"{point.at:%Y-%m-%d %H:%M} {point.head.commit[:12]}{name}: {point.value:.6g}{spread} {line.unit}, n={point.n}"
    )
    if point.n == 0:
        return f"{text}: byte-identical to the head before"
    if point.verdict is not None:
        text += f": {point.verdict.value.replace('_', ' ')} ({_effect(line, point.effect, point.ci95)})"
    return text


def _print_shift(output: Output, shift: HistoryShift) -> None:
    line = shift.line
    direction = {True: "worse", False: "better", None: "changed"}[shift.worse]
    output.line(
        f"shift {shift.id}: {shift.state.value.replace('_', ' ')}: {line.metric} {direction} on {line.device_type}, "
        f"{line.plan} {_cell(line)}".rstrip()
    )
    output.line(
        f"    {one_line(line.tree)} {shift.before.commit[:12]}..{shift.after.commit[:12]}: suspected "
        f"{_effect(line, shift.suspected_effect, None)} by {'a verdict' if shift.source == 'verdict' else 'the level'}"
    )
    if shift.effect is not None:
        where = f" in submission {shift.submission_id}" if shift.submission_id is not None else ""
        output.line(f"    measured again{where}: {_effect(line, shift.effect, shift.ci95)}")
    if (search := shift.bisection) is not None:
        found = f": {search.culprit[:12]} {one_line(search.subject)}" if search.culprit is not None else ""
        output.line(f"    bisection {search.id}: {search.state.value.replace('_', ' ')}{found}")
    for text in (shift.reason, f"owner {shift.owner}" if shift.owner else "", shift.notes):
        if text:
            output.line(f"    {one_line(text)}")


def register(app: typer.Typer) -> None:
    app.add_typer(history_app)
