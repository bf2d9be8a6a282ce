"""REST resources of bisections."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, computed_field, model_validator

from ..enums import BisectionState, BisectionStepKind, BisectionStepState, Scale, Verdict
from ..jsontypes import JSON_NUMBER, JsonBool, JsonFloat, JsonInt
from ..messages import Message
from ..messages.base import GitObject
from ..messages.commit_lists import Revision
from ..specs import Name
from ..units import effect_unit
from .base import ComputedResource

OPEN_STATES = frozenset(
    {BisectionState.LISTING, BisectionState.ENDS, BisectionState.SEARCHING, BisectionState.CONFIRMING}
)
"""States of a bisection that goes on."""


class BisectionRequest(Message):
    """Body of POST /bisections."""

    tree: Name
    """Tree of the lab, with a git repository."""
    good: Revision
    """Branch, tag or commit without the change; an ancestor of `bad`."""
    bad: Revision
    """Branch, tag or commit with the change."""
    ref: Revision | None = None
    """Branch or tag that has both; null: `bad` if it is one, else the tree's branch."""
    plan: Name
    device_type: Name
    scenario: Name | None = None
    """null if the plan has one scenario only."""
    setting: Annotated[str, Field(max_length=200)] | None = None
    """null: the plan's reference setting."""
    parameters: dict[str, str | JsonInt | JsonFloat] = Field(default_factory=dict)
    metric: Name | None = None
    """Metric that has changed; null with `failure`."""
    failure: JsonBool = False
    """Search for the commit from which on the kernel fails (oops, hang, lockdep report) as the good one does not."""
    blocks: Annotated[int, Field(ge=1, le=100), JSON_NUMBER] | None = None
    """Blocks of the two ends, and of the confirmation; null: as the plan says."""
    step_blocks: Annotated[int, Field(ge=1, le=20), JSON_NUMBER] | None = None
    """Blocks of each commit between; null: 2, 1 if the counts are exact, and for a failure that comes seldom more."""
    into_merges: JsonBool = True
    """Go on in the side branch of a merge that is found; false: the merge is the result."""
    recipe: Name | None = None
    """Recipe of the kernels instead of that of the device type; `debug` checks locking and memory."""
    priority: JsonInt = Field(default=50, ge=0, le=100)
    submission: Annotated[int, Field(ge=1, le=2**31 - 1), JSON_NUMBER] | None = None
    """Submission in which the change was seen; its page links to the bisection."""

    @model_validator(mode="after")
    def _check_what(self) -> Self:
        if (self.metric is None) is not self.failure:
            raise ValueError("give either `metric`, or `failure: true`")
        return self

    @property
    def target(self) -> str:
        return f"{self.plan}@{self.device_type}"


class CommitRef(Message):
    """A commit with its subject."""

    commit: GitObject
    subject: str
    author: str
    is_merge: bool


class BisectionStep(Message):
    """One measurement of a bisection: a submission of two commits."""

    id: int
    kind: BisectionStepKind
    state: BisectionStepState
    level: int
    """0: the commits from good to bad; each side branch is one more."""
    baseline: GitObject
    candidate: GitObject
    submission_id: int
    reason: str
    effect: float | None
    """In the bisection's `effect_unit`; null for failures, and if it was not measured."""
    ci95: tuple[float, float] | None
    verdict: Verdict | None
    passed: int
    """Boots of the candidate that passed."""
    failed: int
    """Boots of the candidate in which the kernel failed."""
    boots: int
    """Boots of both kernels."""
    submitted_at: datetime
    ended_at: datetime | None


class Bisection(ComputedResource):
    """A bisection."""

    id: int
    request: BisectionRequest
    owner: str
    state: BisectionState
    reason: str
    """Why it is in this state, or what it waits for; empty if there is nothing to say."""
    good: GitObject | None
    """The good commit; null until the commits are listed."""
    bad: GitObject | None
    commits: int | None
    """Number of commits along first parents from `good`, excluded, to `bad`."""
    culprit: CommitRef | None
    """The commit that is found or suspected; of a range its last one."""
    first: GitObject | None
    """First commit of the range; equal to the culprit unless commits before it cannot be measured."""
    probability: float | None
    """Of the culprit, or of the range."""
    effect: float | None
    """Change from good to bad, in `effect_unit`; null before it is measured, and for failures."""
    ci95: tuple[float, float] | None
    culprit_effect: float | None
    """Change from the culprit's parent to the culprit, in the run that confirmed it."""
    culprit_ci95: tuple[float, float] | None
    reverted: BisectionStep | None = None
    """Change from `bad` to `bad` with the culprit reverted on top; null if that was not tried."""
    scale: Scale | None
    unit: str
    failure_rate: float | None
    """Share of the bad commit's boots that fail; null for a metric."""
    failure_title: str
    """Title of the kernel failure that is bisected, such as an oops; empty if a metric is bisected."""
    device: str | None
    """Device that measured the ends, and measures the others while it can; null before."""
    boots: int
    """Boots of the search so far, without those of the ends and the confirmation."""
    plain_boots: int
    """Boots that a plain bisection would take for the search: all blocks at each halving."""
    shift_id: int | None
    """The shift of a watched tree that is bisected; null if a person asked."""
    watch: str | None
    """The watch of that tree, on whose budget it runs."""
    created_at: datetime
    ended_at: datetime | None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def effect_unit(self) -> str:
        """Unit of the effects."""
        return "" if self.scale is None else effect_unit(self.scale, self.unit)


class BisectionCommit(CommitRef):
    """A commit of a level, with what is known about it."""

    position: int
    """From 1; the last is the bad commit."""
    probability: float
    """That it is the culprit."""
    unusable: str
    """Why it cannot be measured; empty if it can, or was not tried."""
    effect: float | None
    """Difference from the good commit over all its blocks, in `effect_unit`; null if it was not measured."""
    ci95: tuple[float, float] | None
    blocks: int
    passed: int
    failed: int
    submissions: list[int]


class BisectionLevel(Message):
    """The commits of one first-parent line: from good to bad, or in the side branch of a merge."""

    merge: GitObject | None
    """Merge whose side branch this is; null for the line from good to bad."""
    good: GitObject
    bad: GitObject
    measured: bool
    """False until its ends have been measured, or if they do not differ: all commits then have the same probability."""
    commits: list[BisectionCommit]
    """Oldest first."""


class BisectionData(Bisection):
    """A bisection with its commits and steps."""

    levels: list[BisectionLevel]
    steps: list[BisectionStep]
    """Oldest first."""
