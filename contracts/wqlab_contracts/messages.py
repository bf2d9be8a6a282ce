"""What server and workers say to each other: jobs handed out with a claim, events streamed back, results.

Every worker request carries the claim's `fence`; the server refuses a stale one (409), and then the worker stops.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from .enums import Arm, ArtifactKind, ErrorKind, EventKind, FindingKind, Outcome, RunPurpose
from .specs import BootMethod, CpuArch, KernelRecipe, Name, Profile, TestPlan, Topology, Tree

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
GitObject = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
EXCERPT_LIMIT = 16_384
"""Longest excerpt (characters) of a log that travels inside a message; the whole log is an artifact."""


class Message(BaseModel):
    """Texts may come from a board, which can print any byte; the NUL, which PostgreSQL cannot hold, becomes U+FFFD."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*")
    @classmethod
    def _holds_no_nul(cls, value: Any) -> Any:
        return _without_nul(value)


def _without_nul(value: Any) -> Any:
    """Nested messages have seen to themselves."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in value else value
    if isinstance(value, list):
        return [_without_nul(each) for each in value]
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(each) for name, each in value.items()}
    return value


# --- a submission -----------------------------------------------------------------------------------------------


class GitSeries(Message):
    url: str
    ref: str
    base: str | None = None


class MboxSeries(Message):
    text: str = Field(max_length=20_000_000)

    @field_validator("text", mode="before")
    @classmethod
    def _is_text(cls, value: object) -> object:
        """Raises ValueError: a patch is never altered, not even where it could not be kept."""
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"a NUL byte at character {value.index(chr(0))}: patches are text; use git format-patch")
        return value


class Series(Message):
    """Exactly one of the two."""

    git: GitSeries | None = None
    mbox: MboxSeries | None = None


class Target(Message):
    plan: Name
    device_type: Name
    settings: list[str] | None = None
    """Canonical settings to measure instead of the plan's default."""
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    """Over the profile's parameters."""


class Artifact(Message):
    sha256: Sha256
    size: int = Field(ge=0)
    kind: ArtifactKind
    name: str = Field(max_length=200)


class Failure(Message):
    """Why something ended badly, in words a person can act on."""

    kind: ErrorKind
    summary: str
    excerpt: str = ""
    advice: str = ""


# --- apply: from what was submitted to a base commit and a source tree ------------------------------------------


class ApplyJob(Message):
    submission_id: int
    tree: Tree
    series: Series | None
    """None for a settings study: only the tree's head is resolved."""
    toolchain: str = "gcc"
    """The recipe's compiler command; the answer says which exact one the worker has."""


class PatchSummary(Message):
    subject: str
    author: str
    message_id: str | None = None
    insertions: int = 0
    deletions: int = 0
    files: list[str] = Field(default_factory=list)


class CheckpatchFinding(Message):
    severity: Literal["error", "warning", "check"]
    text: str
    where: str = ""


class Source(Message):
    """One exact source tree: a commit, or a series on top of it. `tree_oid` is its content."""

    tree: Tree
    base_commit: GitObject
    tree_oid: GitObject
    commit: GitObject
    """The commit whose tree is `tree_oid`; for a candidate it lives in `bundle`."""
    bundle: Artifact | None = None
    """git bundle with everything that the tree's own history lacks; None when `commit` is in the tree."""
    release: str
    """`make kernelversion` of the tree, for people."""


class ApplyResult(Message):
    outcome: Outcome
    failure: Failure | None = None
    baseline: Source | None = None
    candidate: Source | None = None
    title: str = ""
    series_key: str = ""
    """Groups versions of one series: its change-id, else its normalised subject."""
    patches: list[PatchSummary] = Field(default_factory=list)
    checkpatch: list[CheckpatchFinding] = Field(default_factory=list)
    series_mbox: Artifact | None = None
    toolchain: str = ""
    """Exact identity of compiler and linker; part of every build key, so that two kernels that are compared were
    never built by different compilers."""


# --- build ------------------------------------------------------------------------------------------------------


class BuildJob(Message):
    build_id: int
    key: Sha256
    source: Source
    trusted: bool
    """True for a commit of an operator's tree: only such builds write the shared compiler cache."""
    recipe: KernelRecipe
    arch: CpuArch
    emulated: bool
    """Whether `recipe.emulated_fragments` are merged."""
    fragments: dict[str, str]
    """Name -> text of every fragment; `keys.in_merge_order` says in which order they are merged."""
    toolchain: str
    """The compiler the build must use; a worker that has another one fails it as infrastructure."""


class CompilerWarning(Message):
    where: str
    """file:line:column, relative to the source tree."""
    text: str
    option: str = ""


class BuildResult(Message):
    outcome: Outcome
    failure: Failure | None = None
    reused: bool = False
    """Found in the worker's cache under the same key; nothing was compiled."""
    build_id_gnu: str = ""
    release: str = ""
    """The string `uname -r` will print."""
    compiler: str = ""
    reproducer: str = ""
    """A command line anyone can run to build the same kernel."""
    duration_s: float = 0.0
    ccache: dict[str, int] = Field(default_factory=dict)
    warnings: list[CompilerWarning] = Field(default_factory=list)
    unmet_options: list[str] = Field(default_factory=list)
    """Options that the fragments ask for and the finished configuration does not have: `CONFIG_X=y (is n)`."""
    artifacts: list[Artifact] = Field(default_factory=list)
    """Those uploaded; at least kernel, vmlinux, System.map, config, log, metadata when it passed."""


# --- run --------------------------------------------------------------------------------------------------------


class Kernel(Message):
    build_id_gnu: str
    release: str
    image: Artifact
    """The kernel image; fetched by hash."""
    figures: bool = True


class BlockPlan(Message):
    """One block: its boots in order. A settings study has one boot a block."""

    block: int
    arms: list[Arm]
    first_attempt: int = 0
    """Attempt number to start from; earlier ones were discarded by earlier holders of the run."""


class DeviceFacts(Message):
    """What a worker must know of the board it was given."""

    name: Name
    device_type: Name
    lab: Name
    arch: CpuArch
    topology: Topology
    boot: BootMethod
    emulated: bool
    scratch: list[str] = Field(default_factory=list)


class RunJob(Message):
    run_id: int
    purpose: RunPurpose
    device: DeviceFacts
    previous_holder: bool
    """A holder before this one may have left the place acquired: release it and power-cycle first."""
    plan: TestPlan
    profile: Profile
    """The plan's profile for this board with the submission's settings and parameters applied."""
    files: dict[str, str]
    """The plan's files that go to the board: relative name -> text."""
    kernels: dict[Arm, Kernel]
    """A health check has the baseline (golden) kernel only."""
    blocks: list[BlockPlan]
    seed: int
    """Shuffles the order of settings inside each boot."""


class BootKey(Message):
    """Unique within a run."""

    block: int
    position: int
    arm: Arm
    attempt: int


class BootStarted(Message):
    type: Literal["boot_started"] = "boot_started"
    at: datetime
    boot: BootKey


class MeasuredTopology(Message):
    """What the booted kernel reports. Each list has one entry per CPU, in CPU order."""

    cpus: int
    core: list[int]
    l3: list[int]
    node: list[int]
    package: list[int]
    cluster: list[int] | None = None
    """None when the kernel tells of no clusters between cores and L3 domains."""
    capacity: list[int] | None = None
    """How much each CPU gets done, the strongest 1024; None when the kernel does not tell."""


class BootVerified(Message):
    """The variant runs: read in this boot, not assumed."""

    type: Literal["boot_verified"] = "boot_verified"
    at: datetime
    boot: BootKey
    kernel_boot_id: str
    token: str
    build_id_gnu: str
    release: str
    cmdline: str
    topology: MeasuredTopology
    environment: dict[str, str] = Field(default_factory=dict)
    """Mitigations, preemption model, clock source, crypto driver, governor ... as read."""
    golden_s: float
    kexec_s: float


class Sample(Message):
    scenario: str
    setting: str
    repetition: int = Field(ge=0)
    metric: str
    value: float = Field(allow_inf_nan=False)
    warmup: bool = False


class Samples(Message):
    type: Literal["samples"] = "samples"
    at: datetime
    boot: BootKey
    samples: list[Sample]
    commands: dict[str, str] = Field(default_factory=dict)
    """Scenario -> the exact workload command line that the board ran."""
    facts: dict[str, str] = Field(default_factory=dict)
    """What the board told of its environment while measuring (crypto driver, workqueue attributes ...)."""


class Unsupported(Message):
    """A setting or metric that this kernel or board lacks; never a failure."""

    type: Literal["unsupported"] = "unsupported"
    at: datetime
    boot: BootKey
    scenario: str
    setting: str
    metric: str | None = None
    """None: the whole setting."""
    reason: str


class Finding(Message):
    type: Literal["finding"] = "finding"
    at: datetime
    boot: BootKey
    kind: FindingKind
    title: str
    excerpt: str
    console_offset: int
    """Byte offset of the excerpt in the boot's console."""
    fatal: bool


class BootFinished(Message):
    type: Literal["boot_finished"] = "boot_finished"
    at: datetime
    boot: BootKey
    outcome: Outcome
    failure: Failure | None = None
    workload_s: float = 0.0
    overhead_s: float = 0.0
    """Seconds of this boot that were neither boot nor workload."""


class BlockFinished(Message):
    type: Literal["block_finished"] = "block_finished"
    at: datetime
    block: int
    attempt: int


class BlockDiscarded(Message):
    type: Literal["block_discarded"] = "block_discarded"
    at: datetime
    block: int
    attempt: int
    arm: Arm | None
    """The arm whose boot failed; None when neither is to blame."""
    failure: Failure


class Progress(Message):
    """What is happening now, for people."""

    type: Literal["progress"] = "progress"
    at: datetime
    text: str
    done: int = 0
    total: int = 0


RunEvent = Annotated[
    BootStarted
    | BootVerified
    | Samples
    | Unsupported
    | Finding
    | BootFinished
    | BlockFinished
    | BlockDiscarded
    | Progress,
    Field(discriminator="type"),
]


class RunResult(Message):
    outcome: Outcome
    failure: Failure | None = None
    """kind infrastructure: retried; kind kernel: the variant could not finish any block."""
    device_suspect: bool = False
    """The board itself is in doubt; a health check follows."""


# --- the claim protocol -----------------------------------------------------------------------------------------


class ClaimRequest(Message):
    worker: str
    """host/process, for people and for labgrid's place owner."""
    lab: Name | None = None
    nonce: str | None = Field(default=None, min_length=8, max_length=64)
    """New for each claim, the same when its request is repeated: a live claim that it made is answered again."""


class ApplyClaim(Message):
    job: ApplyJob
    fence: int
    expires_in_s: float


class BuildClaim(Message):
    job: BuildJob
    fence: int
    expires_in_s: float


class RunClaim(Message):
    job: RunJob
    fence: int
    expires_in_s: float
    completed_blocks: list[int]


class Heartbeat(Message):
    fence: int


class HeartbeatAnswer(Message):
    expires_in_s: float
    cancel: bool


class RunEvents(Message):
    fence: int
    events: list[RunEvent]


class ProgressEvents(Message):
    """Progress of an apply or a build."""

    fence: int
    events: list[Progress]


class ConsoleChunk(Message):
    """Console text of one boot; idempotent by (boot, offset). `data` is base64: a console can hold any byte."""

    fence: int
    boot: BootKey
    offset: int = Field(ge=0)
    data: str


class ConsoleAnswer(Message):
    next_offset: int
    """Where the server's copy ends."""
    truncated: bool
    """The boot's byte cap is reached; further chunks are dropped, and the report says so."""


class FinishApply(Message):
    fence: int
    result: ApplyResult


class FinishBuild(Message):
    fence: int
    result: BuildResult


class FinishRun(Message):
    fence: int
    result: RunResult


class Event(Message):
    """One entry of a submission's event stream; `seq` counts per submission from 1."""

    seq: int
    at: datetime
    kind: EventKind
    build_id: int | None = None
    run_id: int | None = None
    boot_id: int | None = None
    data: dict[str, Any] = Field(default_factory=dict)


_SUBJECT_PREFIX = re.compile(r"^\s*(?:\[[^\]]*\]\s*|(?:re|fwd?):\s*)+", re.IGNORECASE)


def normalised_subject(subject: str) -> str:
    """A patch subject without `[PATCH v2 0/3]` and `Re:`, folded: the same for every version of a series."""
    return " ".join(_SUBJECT_PREFIX.sub("", subject).split()).casefold()
