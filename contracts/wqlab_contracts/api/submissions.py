"""REST resources of submissions: request, progress and results."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from ..enums import ErrorKind, JobState, Outcome, SubmissionState, Verdict
from ..jsontypes import JSON_NUMBER, JsonBool, JsonInt
from ..layouts import MOST_LAYOUTS
from ..messages import (
    Artifact,
    CheckpatchFinding,
    CommitPair,
    Failure,
    GitSeries,
    Message,
    PatchSummary,
    Series,
    TakenThread,
    Target,
    ThreadSeries,
)
from ..messages.apply import PriorArt
from ..specs import Backend, DeviceType, Name
from .builds import BuildView
from .runs import RunView
from .sweeps import SweepRequest


class RequestOptions(Message):
    """Everything in a request except the series."""

    tree: Name
    targets: list[Target] = Field(min_length=1, max_length=32)
    blocks: Annotated[int, Field(ge=1, le=100), JSON_NUMBER] | None = None
    """Blocks of each target, exactly; null: as many as the family of tests and the noise floor ask for, and at least
    as many as the plan says."""
    repetitions: Annotated[int, Field(ge=1, le=100), JSON_NUMBER] | None = None
    """Untraced repetitions of each scenario and setting in a boot; null: those of the plan's profile."""
    looks: list[Annotated[int, Field(ge=2, le=100), JSON_NUMBER]] | None = Field(
        default=None, min_length=2, max_length=20
    )
    """Numbers of blocks after which each target may stop early, ascending; the last is the largest number of blocks.
    null: as the plan says. Only without `blocks`."""
    layouts: Annotated[int, Field(ge=1, le=MOST_LAYOUTS), JSON_NUMBER] | None = None
    """Layouts in which each kernel is linked: block b of a target boots layout b modulo this number of both kernels, so
    that the effect of alignment is averaged. 1: only the ordinary link. null: 1, on instrumented devices as many as
    blocks, at most 8."""
    priority: JsonInt = Field(default=50, ge=0, le=100)
    recipe: Name | None = None
    """Recipe to use instead of that of the device types; `debug` checks locking and memory."""
    backend: Backend | None = None
    """Backend of the devices; null: the pool of the type with the shortest queue."""
    force: JsonBool = False
    """Measure even if the two kernels are byte-identical."""
    walk: JsonBool = False
    """Measure each patch of the series against the one before: the report then has a ladder with a rung for each patch.
    For a series of 2 to 16 patches."""
    trace: JsonBool = True
    """If a primary metric differs, boot both kernels a few times more with tracing, and report what else differs.
    Traced boots never enter the verdict."""
    sweep: SweepRequest | None = None
    """Instrumented topologies on which to measure the targets without a device type; each becomes a target for each
    topology."""

    def layouts_on(self, device_type: DeviceType, blocks: int) -> int:
        """Return the number of layouts that a target of so many blocks on this device type boots in turn.

        The counts of one layout on an instrumented device are exact, so that an effect of alignment looks like one of
        the patch. Blocks of one layout share it and are not independent: each block has a layout of its own there, up
        to MOST_LAYOUTS.
        """
        return self.layouts or (min(blocks, MOST_LAYOUTS) if device_type.instrumented else 1)

    def recipe_for(self, device_type: DeviceType) -> Name:
        """Return the recipe of the kernels for a device type."""
        return self.recipe or device_type.recipe


class SubmissionRequest(RequestOptions):
    """Body of POST /submissions."""

    series: Series | None
    """Null if the submission has no series and compares settings only."""

    def indexed_targets(self) -> list[tuple[int, Target]]:
        """Return the targets to measure, each with the index of the requested target that it comes from.

        A target without a device type becomes one for each topology of the sweep, possible or not.
        """
        names = [topology.name for topology in self.sweep.topologies()] if self.sweep else []
        return [
            (index, each)
            for index, target in enumerate(self.targets)
            for each in (
                [target] if target.device_type else [target.model_copy(update={"device_type": name}) for name in names]
            )
        ]

    def expanded(self) -> Self:
        """Return the request with the targets to measure, as it is stored. Expanding it again changes nothing."""
        return self.model_copy(update={"targets": [target for _, target in self.indexed_targets()]})


class SubmittedMbox(Message):
    """An mbox that was submitted, without its text: `GET /submissions/ID/mbox` returns that."""

    size: int = Field(ge=0)
    """Bytes in UTF-8."""


class SubmittedSeries(Message):
    """The series of a submission: exactly one of `git`, `mbox`, `thread` and `commits`."""

    git: GitSeries | None = None
    mbox: SubmittedMbox | None = None
    thread: ThreadSeries | None = None
    commits: CommitPair | None = None


class SubmittedRequest(RequestOptions):
    """The request of a submission. An mbox is named by its size only, since it may have 20 MB."""

    series: SubmittedSeries | None
    """Null if the submission has no series and compares settings only."""


class Eta(Message):
    """Estimated time of completion."""

    finish_at: datetime | None
    what: str
    """Text on current activity and remaining work."""
    done_boots: int
    total_boots: int


class ApplyView(Message):
    """State and result of applying the series."""

    state: JobState
    outcome: Outcome | None
    failure: Failure | None = None
    base_commit: str | None = None
    release: str | None = None
    patches: list[PatchSummary] = Field(default_factory=list)
    checkpatch: list[CheckpatchFinding] = Field(default_factory=list)
    checkpatch_skipped: str = ""
    """Why checkpatch did not check every patch; empty if it did, so that only then no findings mean a clean series."""
    prior_art: PriorArt | None = None
    """Commits that may be the same change as a patch of the series; null if they were not searched for."""
    base_package: str = ""
    """Debian source package and version that the base was imported from; empty for a commit of a repository."""
    series_mbox: Artifact | None = None
    thread: TakenThread | None = None
    """The mails that were taken, for a series that is given by a Message-ID; null until they are found."""
    files_deleted_at: datetime | None = None
    """When retention deleted the mbox; its download then answers 410."""


class TargetSummary(Message):
    """One target of a submission, for lists."""

    run_id: int
    plan: str
    device_type: str
    emulated: bool
    modelled: bool = False
    """True if the device is modelled, so that the verdict is a model's."""
    device: str | None
    state: JobState
    outcome: Outcome | None
    verdict: Verdict | None
    """null until the figures are compared."""
    failure_kind: ErrorKind | None = None
    """Kind of the run's failure; null if the run has not failed."""
    headline: str
    """The verdict in one sentence."""
    done_boots: int
    total_boots: int


class SubmissionSummary(Message):
    """A submission, for lists."""

    id: int
    title: str
    author: str = ""
    """Author of the first patch: `Name <address>`; empty for a settings study or if not yet known."""
    version: int | None = None
    """Version of the series: 2 for `[PATCH v2 ...]`; null for a branch or a settings study."""
    series_key: str
    tree: str
    owner: str
    priority: int
    state: SubmissionState
    outcome: Outcome | None
    failure: Failure | None
    verdicts: dict[Verdict, int]
    """Number of primary comparisons with each verdict, without modelled ones."""
    modelled_verdicts: dict[Verdict, int] = Field(default_factory=dict)
    """The same of modelled ones, which have no effect on the exit code."""
    retry_of: int | None = None
    """Id of the finished submission that this one repeats."""
    targets: list[TargetSummary] = Field(default_factory=list)
    done_boots: int = 0
    total_boots: int = 0
    created_at: datetime
    finished_at: datetime | None
    pinned_at: datetime | None = None
    """When the submission was pinned: retention then keeps artifacts and consoles that its report links to."""
    pinned_by: str | None = None


class SubmissionView(SubmissionSummary):
    """A submission with its builds and runs."""

    request: SubmittedRequest
    apply: ApplyView
    builds: list[BuildView]
    runs: list[RunView]
    traced_runs: list[RunView] = Field(default_factory=list)
    """Runs that trace both kernels because a primary metric differs between them; empty in a report. They have no
    verdict."""
    eta: Eta
    exit_code: int | None
    """Exit code of `wqlab submit --wait`; null until the submission is finished."""
