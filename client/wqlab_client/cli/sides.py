"""`wqlab compare LEFT RIGHT`: compare any two sides that the lab has measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from ..calls.comparisons import ComparisonCalls
from ..calls.submissions import SubmissionCalls
from ..errors import UsageError
from ..formatting import one_line
from .session import Session

if TYPE_CHECKING:
    from wqlab_contracts.api.any_comparison import AnyComparison, ComparedFigure, ComparedSide

_SIDE = re.compile(r"([1-9][0-9]*(:(baseline|candidate))?|[A-Za-z0-9][A-Za-z0-9_.-]*@[0-9a-f]{7,64})(;.*)?")


def are_sides(arguments: Sequence[str]) -> bool:
    """Return True if the arguments of `wqlab compare` are two sides; files of these names take precedence."""
    return len(arguments) == 2 and all(_SIDE.fullmatch(each) and not Path(each).exists() for each in arguments)


def print_comparison(session: Session, left: str, right: str, *, submit: bool, as_json: bool) -> None:
    """Print the comparison of two sides; with `submit`, submit the run that measures both in pairs.

    Raises UsageError if no run can measure both.
    """
    found = session.calls(ComparisonCalls).compare(left, right)
    offer = found.paired_run
    if submit and (offer is None or offer.request is None):
        why = offer.why if offer is not None else "they are measured in pairs already"
        raise UsageError(f"there is no run of {left} and {right} to submit: {why}")
    if as_json:
        session.output.document(found)
    else:
        print_figures(session, found)
    if offer is None:
        return
    if not submit or offer.request is None:
        how = f"; submit it with `wqlab compare '{left}' '{right}' --submit`" if offer.request is not None else ""
        session.output.note(f"paired run: {one_line(offer.why)}{how}")
        return
    view = session.calls(SubmissionCalls).submit(offer.request)
    session.output.note(f"submission {view.id} {one_line(offer.why)}; watch it with `wqlab watch {view.id}`")


def print_figures(session: Session, found: AnyComparison) -> None:
    """Print both sides with their verdicts, and the figures that both have."""
    session.output.lines(_lines(found))
    session.output.table(("FIGURE", "LEFT", "RIGHT", "CHANGE"), [_row(figure) for figure in found.figures])


def _lines(found: AnyComparison) -> list[Text | str]:
    lines: list[Text | str] = []
    for name, side in (("left ", found.left), ("right", found.right)):
        lines.append(f"{name}  {_side(side)}")
        lines += [
            f"       {one_line(f'{target.plan} on {target.device_type}: {target.verdict.value}; {target.headline}')}"
            for target in side.targets
            if target.verdict is not None
        ]
    lines.append("")
    lines += [Text.assemble((f"{found.pairing.value}: ", "bold"), one_line(found.says))]
    lines += [
        f"  differs: {one_line(each.name)}: {one_line(each.baseline)} | {one_line(each.candidate)}"
        for each in found.differences
    ]
    return [*lines, ""]


def _side(side: ComparedSide) -> str:
    commit = f", {side.commit[:12]}" if side.commit else ""
    devices = ", ".join(side.devices) or "no device"
    return one_line(f"{side.selector}: {side.title} ({side.arm}, {side.tree}{commit}; {devices})")


def _row(figure: ComparedFigure) -> tuple[str, str, str, str]:
    from wqlab_comparison.words import number, places  # numpy and scipy take a second to import

    settings = " | ".join(dict.fromkeys(each for each in figure.settings if each))
    types = " | ".join(dict.fromkeys(figure.device_types))
    name = " ".join(part for part in (figure.plan, types, figure.scenario, settings, figure.metric) if part)
    decimals = places([figure.left.mean, figure.right.mean])
    left, right = (f"{number(arm.mean, decimals)} (n={arm.n})" for arm in (figure.left, figure.right))
    return f"{name} ({figure.unit})", left, right, figure.text
