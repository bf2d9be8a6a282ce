"""Who may get which results by mail. Pure.

A list gets decided results that were measured on hardware, and failures of a kernel. Counts and modelled figures go to
the author of the series alone. The owner of a submission gets everything.
"""

from __future__ import annotations

from enum import StrEnum

from wqlab_contracts.api.report import Comparison, Report, TargetReport
from wqlab_contracts.enums import ErrorKind, Verdict

from ..content import failures
from ..content.cells import DECIDED


class Audience(StrEnum):
    """Who gets a letter."""

    NOBODY = "nobody"
    """Nothing is decided."""
    AUTHOR = "author"
    EVERYONE = "everyone"
    """The author and the others of the thread, lists included."""
    OWNER = "owner"
    """The account that asked for the results."""


def audience_of(report: Report) -> Audience:
    """Return the largest audience that may get a result of the report."""
    failure = report.submission.failure
    if failure is not None:
        return {ErrorKind.KERNEL: Audience.EVERYONE, ErrorKind.USER: Audience.AUTHOR}.get(failure.kind, Audience.NOBODY)
    for audience in (Audience.EVERYONE, Audience.AUTHOR):
        if any(may_get(target, audience) for target in report.targets):
            return audience
    return Audience.NOBODY


def may_get(target: TargetReport, audience: Audience) -> bool:
    """Return True if the audience may get the verdict on a target."""
    if audience is Audience.OWNER:
        return True
    if audience is Audience.NOBODY:
        return False
    if target.verdict is Verdict.FAILED:
        return target.failure is None or target.failure.kind is ErrorKind.KERNEL
    return target.verdict in DECIDED and (audience is Audience.AUTHOR or not target.emulated)


def is_told(cell: Comparison, audience: Audience) -> bool:
    """Return True if a letter shows the figures of this comparison. Only the owner sees those without a decision."""
    return audience is Audience.OWNER or cell.verdict in DECIDED


def shown_to(report: Report, audience: Audience, also: frozenset[str] = frozenset()) -> Report:
    """Return the report with the targets that the audience may get, and those named in `also`."""
    if audience is Audience.OWNER:
        return report
    kept = [each for each in report.targets if may_get(each, audience) or failures.name(each) in also]
    return report.model_copy(update={"targets": kept, "sweep": report.sweep if audience is Audience.AUTHOR else None})


def left_out(report: Report, shown: Report) -> str:
    """Return how many targets `shown_to` has left out, and why; empty if none."""
    known = {each.run_id for each in shown.targets}
    missing = sum(each.run_id not in known for each in failures.others(report))
    if not missing:
        return ""
    which = "1 target" if missing == 1 else f"{missing} targets"
    return f"{which} of which the lab mails nothing to these readers: not decided, or a count or a model"
