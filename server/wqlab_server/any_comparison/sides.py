"""Resolve the two sides of a comparison of anything: arms of submissions, heads of watched trees, with filters.

A selector is `SUBMISSION`, `SUBMISSION:ARM` or `TREE@COMMIT`, then any of `;plan=`, `;device_type=`, `;device=` and
`;setting=`: `12:candidate`, `linux-next@1f2e3d4c5b6a`, `12:baseline;setting=scope=cache`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Arm, RunPurpose

from ..http.problems import invalid, not_found
from ..models import Apply, Boot, BootValue, Run, Submission, WatchedHead

FILTERS = ("plan", "device_type", "device", "setting")
SYNTAX = (
    "write SUBMISSION, SUBMISSION:baseline, SUBMISSION:candidate or TREE@COMMIT, then any of ;plan=, ;device_type=, "
    ";device= and ;setting="
)
SELECTOR_PATTERN = (
    r"^([1-9][0-9]{0,8}(:(baseline|candidate))?|[A-Za-z0-9][A-Za-z0-9_.-]{0,63}@[0-9a-f]{7,64})"
    r"(;(plan|device_type|device|setting)=[ -:<-~]*)*$"
)
"""The syntax for the API's description; `parse` has the better messages."""
_SUBMISSION = re.compile(r"([1-9][0-9]{0,8})(?::(baseline|candidate))?")
_HEAD = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,63})@([0-9a-f]{7,64})")


@dataclass(frozen=True)
class Selector:
    """One side as given."""

    text: str
    submission: int | None
    arm: Arm | None
    tree: str = ""
    commit: str = ""
    filters: tuple[tuple[str, str], ...] = ()

    def filter(self, name: str) -> str | None:
        return dict(self.filters).get(name)


@dataclass(frozen=True)
class Source:
    """A submission and the arm that has the side's kernel."""

    submission_id: int
    arm: Arm


@dataclass(frozen=True)
class Value:
    """One boot's value of one metric."""

    run_id: int
    block: int
    device: str
    plan: str
    device_type: str
    scenario: str
    setting: str
    metric: str
    value: float


def parse(text: str, parameter: str) -> Selector:
    """Parse one side of a comparison, such as `12:candidate`. Raises ApiProblem 422 with the name of the parameter."""
    name, *parts = text.split(";")
    filters = [tuple(part.split("=", 1)) for part in parts]
    if text.isprintable() and all(len(each) == 2 and each[0] in FILTERS for each in filters):
        chosen = tuple((each[0], each[1]) for each in filters)
        if found := _SUBMISSION.fullmatch(name):
            return Selector(text, int(found[1]), Arm(found[2]) if found[2] else None, filters=chosen)
        if found := _HEAD.fullmatch(name):
            return Selector(text, None, None, found[1], found[2], chosen)
    raise invalid([{"parameter": parameter, "in": "query", "detail": f"{text[:200]!r} is no side: {SYNTAX}"}])


def sources(session: Session, selector: Selector) -> list[Source]:
    """Return where the side was measured, the submission of its own first. Raises ApiProblem 404.

    A head was measured by its own submission, and as the baseline of the heads that were compared with it.
    """
    if selector.submission is not None:
        submission = session.get(Submission, selector.submission)
        if submission is None:
            raise not_found("submission", selector.submission)
        if submission.request.series is None and selector.arm is Arm.CANDIDATE:
            raise not_found("candidate of submission", selector.submission, "a settings study has the baseline only")
        default = Arm.BASELINE if submission.request.series is None else Arm.CANDIDATE
        return [Source(submission.id, selector.arm or default)]
    heads = session.scalars(
        select(WatchedHead)
        .where(WatchedHead.watch == selector.tree, WatchedHead.commit.startswith(selector.commit, autoescape=True))
        .order_by(WatchedHead.id)
    ).all()
    if not heads:
        raise not_found("head", f"{selector.tree}@{selector.commit}", "the page of its watch lists the heads")
    ids = [head.id for head in heads]
    own = [Source(head.submission_id, Arm.CANDIDATE) for head in heads if head.submission_id is not None]
    children = session.scalars(
        select(WatchedHead.submission_id)
        .where(WatchedHead.parent_id.in_(ids), WatchedHead.submission_id.is_not(None))
        .order_by(WatchedHead.id)
    )
    found = [*own, *(Source(each, Arm.BASELINE) for each in children if each is not None)]
    if not found:
        raise not_found(
            "measurement of head", f"{selector.tree}@{selector.commit}", f"the head is {heads[0].state.value}"
        )
    return found


def choose(left: list[Source], right: list[Source]) -> tuple[Source, Source]:
    """Return the sources to compare: of one submission if both sides have one, else the first of each."""
    pairs = [(one, other) for one in left for other in right]
    return next((pair for pair in pairs if pair[0].submission_id == pair[1].submission_id), pairs[0])


def values(session: Session, source: Source, selector: Selector) -> list[Value]:
    """Return the values of the side's valid boots that the selector's filters choose."""
    query = (
        select(
            Run.id, Boot.block, Boot.device_name, Run.plan_name, Run.device_type, BootValue.scenario,
            BootValue.setting, BootValue.metric, BootValue.value,
        )
        .join(Boot, Boot.id == BootValue.boot_id)
        .join(Run, Run.id == BootValue.run_id)
        .where(
            Run.submission_id == source.submission_id,
            Run.purpose == RunPurpose.MEASURE,
            Boot.arm == source.arm,
            Boot.valid,
        )
        .order_by(Run.target, Run.id, BootValue.scenario, BootValue.setting, BootValue.metric, Boot.block)
    )  # fmt: skip
    columns = {
        "plan": Run.plan_name,
        "device_type": Run.device_type,
        "device": Boot.device_name,
        "setting": BootValue.setting,
    }
    for name, wanted in selector.filters:
        query = query.where(columns[name] == wanted)
    return [Value(*row) for row in session.execute(query)]


def commit_of(session: Session, source: Source) -> str:
    """Return the commit of the side's kernel; of a candidate made from patches, empty."""
    apply = session.scalars(select(Apply).where(Apply.submission_id == source.submission_id)).one()
    series = session.get_one(Submission, source.submission_id).request.series
    if source.arm is Arm.CANDIDATE:
        return series.commits.candidate if series is not None and series.commits is not None else ""
    baseline = apply.result.baseline if apply.result is not None else None
    return baseline.base_commit if baseline is not None else ""
