"""Decide what a bisection does next, from its commit lists and the steps that are measured. Pure.

A restart of the server repeats nothing and loses nothing: the decision is computed again from the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wqlab_comparison import bisection as search
from wqlab_contracts.api.bisections import BisectionRequest
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import BisectionStepState as State
from wqlab_contracts.enums import Verdict
from wqlab_contracts.messages.commit_lists import ListedCommit

from ..models import BisectionStep, CommitList

CONFIRMATIONS = 3
"""Suspects of one list that are measured against their parents, before the bisection ends without a result."""
PROBE_BLOCKS = 2
MOST_PROBE_BLOCKS = 8
"""Blocks of a commit between the ends in a search for a failure that comes seldom."""
LEAST_RATE = 0.02
_PASSES_BY_CHANCE = 0.1
"""Probability that no boot of such a commit fails although it has the defect."""


@dataclass(frozen=True)
class Line:
    """A commit list with its steps, in the order in which they were made. The list is finished."""

    row: CommitList
    steps: Sequence[BisectionStep]
    noise: Sequence[Sequence[float]] = ()
    """Block differences of all steps of the bisection."""

    @property
    def commits(self) -> Sequence[ListedCommit]:
        return self.row.result.commits if self.row.result is not None else ()

    @property
    def good(self) -> str:
        return (self.row.result.good if self.row.result is not None else None) or self.row.payload.good

    @property
    def bad(self) -> str:
        return (self.row.result.bad if self.row.result is not None else None) or self.row.payload.bad

    @property
    def ends(self) -> BisectionStep | None:
        """The step that has measured good and bad, or has found that they cannot be measured."""
        return next((each for each in self.steps if each.kind is Kind.ENDS and each.state in _ENDED), None)

    @cached_property
    def change(self) -> search.Shift | search.Crash | None:
        """The difference of good and bad; None if they were not measured, or do not differ."""
        ends = self.ends
        if ends is None or not ends.differs:
            return None
        if ends.failed:
            return search.Crash(max(ends.failed / (ends.failed + ends.passed), LEAST_RATE))
        effect = float(np.mean(ends.differences))
        return search.Shift(effect, search.pooled_deviation(effect, self.noise)) if effect else None

    @property
    def unusable(self) -> Mapping[int, str]:
        """Position -> why the commit cannot be measured."""
        return {
            each.last: each.reason
            for each in self.steps
            if each.state is State.UNUSABLE and each.kind not in {Kind.ENDS, Kind.REVERT}
        }

    @cached_property
    def chances(self) -> np.ndarray | None:
        """Probability of each commit to be the culprit. Shape (commits,); None before the ends are measured."""
        if self.change is None or not self.commits:
            return None
        seen = [self._observation(each) for each in self.steps if each.state is State.MEASURED]
        return search.probabilities(len(self.commits), self.change, [each for each in seen if each is not None])

    def _observation(self, step: BisectionStep) -> search.Observation | None:
        if step.kind in {Kind.ENDS, Kind.REVERT}:
            return None
        shift = isinstance(self.change, search.Shift)
        differences = tuple(step.differences)
        if step.kind is Kind.PROBE:
            return (
                search.Measurement(step.last, differences)
                if shift
                else search.Boots(step.last, step.passed, step.failed)
            )
        return (
            search.Confirmation(step.first, step.last, differences)
            if shift
            else search.ConfirmationBoots(step.first, step.last, step.passed, step.failed)
        )

    def confirmation(self, first: int, last: int) -> BisectionStep | None:
        """Return the step that has confirmed that one of these commits is the culprit.

        If they are all, the ends have shown it already.
        """
        ends = self.ends
        whole = first == 1 and last == len(self.commits) and self.commits[0].parents[:1] == [self.good]
        if whole and ends is not None and ends.differs:
            return ends
        return next(
            (
                each
                for each in self.steps
                if each.kind is Kind.CONFIRM and each.differs and (each.first, each.last) == (first, last)
            ),
            None,
        )

    @property
    def suspected(self) -> int:
        """Number of suspects that were measured against their parents."""
        return sum(each.kind is Kind.CONFIRM and each.state in _ENDED for each in self.steps)

    @property
    def full_blocks(self) -> int:
        """Number of blocks for the good and the bad commit."""
        ends = self.ends
        if ends is None:
            return 0
        return max(len(ends.differences), ends.blocks or 0, 1)

    def plain_boots(self) -> int:
        """Boots that a plain bisection of this list takes."""
        return search.plain_boots(len(self.commits), self.full_blocks, self.change) if self.change is not None else 0


_ENDED = frozenset({State.MEASURED, State.UNUSABLE})


@dataclass(frozen=True)
class ListSide:
    """Have the side branch of a merge listed."""

    line: Line
    merge: ListedCommit


@dataclass(frozen=True)
class Measure:
    """Submit two commits."""

    line: Line
    kind: Kind
    first: int
    last: int
    baseline: str
    candidate: str
    blocks: int | None


@dataclass(frozen=True)
class Found:
    """The culprit is one of the commits `first` to `last` of the line, as `shown` says."""

    line: Line
    first: int
    last: int
    probability: float
    shown: BisectionStep


@dataclass(frozen=True)
class NoDifference:
    """Good and bad of the line do not differ, or one of them cannot be measured."""

    line: Line
    ends: BisectionStep


@dataclass(frozen=True)
class GivenUp:
    """The search has no result; the text says why."""

    line: Line
    reason: str


Action = ListSide | Measure | Found | NoDifference | GivenUp


def lines_of(lists: Iterable[CommitList], steps: Sequence[BisectionStep]) -> dict[str, Line]:
    """Return the finished lists with their steps, by merge; that from good to bad has the empty key."""
    noise = [each.differences for each in steps if each.state is State.MEASURED and not each.identical]
    return {
        row.merge: Line(row, [each for each in steps if each.list_id == row.id], noise)
        for row in lists
        if row.result is not None
    }


def decide(request: BisectionRequest, lines: Mapping[str, Line], *, reverts: bool = False) -> Action:
    """Return what to do next. `lines` has the list from good to bad, and no step is running.

    With `reverts` a regression is measured once more: its commit reverted on top of the bad one.
    """
    action = _decide(lines[""], lines, request)
    return _revert(action, lines[""], request) if reverts and isinstance(action, Found) else action


def _revert(found: Found, line: Line, request: BisectionRequest) -> Found | Measure:
    """Return the measurement of the revert of the commit found.

    Return `found` if the revert was measured, if there is no regression, or if the commit is a merge or the bad commit,
    whose revert is its parent.
    """
    commit = found.line.commits[found.last - 1]
    tried = any(each.kind is Kind.REVERT and each.state in _ENDED for each in line.steps)
    regression = found.first == found.last and found.shown.verdict is Verdict.REGRESSION
    if tried or not regression or len(commit.parents) != 1 or commit.commit == line.bad:
        return found
    return Measure(line, Kind.REVERT, 1, len(line.commits), line.bad, commit.commit, request.blocks)


def _decide(line: Line, lines: Mapping[str, Line], request: BisectionRequest) -> Action:
    commits, ends = line.commits, line.ends
    if ends is None:
        return Measure(line, Kind.ENDS, 1, len(commits), line.good, line.bad, request.blocks)
    if line.change is None or line.chances is None:
        return NoDifference(line, ends)
    found = search.conclude(line.chances, line.unusable)
    if found is None:
        return _probe(line, request, line.chances)
    last = commits[found.last - 1]
    if found.first == found.last and len(last.parents) == 2 and request.into_merges:
        side = lines.get(last.commit)
        if side is None:
            return ListSide(line, last)
        if side.commits:
            inside = _decide(side, lines, request)
            if not isinstance(inside, NoDifference):
                return inside
        # The side branch alone makes no difference: it is the merge itself.
    shown = line.confirmation(found.first, found.last)
    if shown is not None:
        return Found(line, found.first, found.last, found.probability, shown)
    if line.suspected >= CONFIRMATIONS:
        return GivenUp(line, f"{line.suspected} suspects were measured against their parents, and none differs")
    parent = commits[found.first - 1].parents[0] if commits[found.first - 1].parents else line.good
    return Measure(line, Kind.CONFIRM, found.first, found.last, parent, last.commit, request.blocks)


def _probe(line: Line, request: BisectionRequest, chances: np.ndarray) -> Action:
    most = 10 + 8 * math.ceil(math.log2(len(chances)))
    if sum(each.kind is Kind.PROBE and each.state in _ENDED for each in line.steps) >= most:
        return GivenUp(
            line, f"{most} measurements did not tell the commits apart; --step-blocks measures each one longer"
        )
    position = search.next_commit(chances, line.unusable)
    if position is None:
        return GivenUp(line, "no commit between good and bad can be measured")
    candidate = line.commits[position - 1].commit
    return Measure(line, Kind.PROBE, position, position, line.good, candidate, probe_blocks(line, request))


def probe_blocks(line: Line, request: BisectionRequest) -> int:
    """Return the blocks of a commit between the ends."""
    if request.step_blocks is not None:
        return request.step_blocks
    if isinstance(line.change, search.Crash):
        if line.change.rate >= 1 - _PASSES_BY_CHANCE:
            return 1
        return min(math.ceil(math.log(_PASSES_BY_CHANCE) / math.log(1 - line.change.rate)), MOST_PROBE_BLOCKS)
    return 1 if line.ends is not None and line.ends.exact else PROBE_BLOCKS
