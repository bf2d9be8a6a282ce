"""Messages between server and workers: jobs handed out with a claim, events and results.

Each worker request carries the claim's `fence`. The server refuses a stale fence with 409, and the worker then stops.
"""

from .apply import ApplyJob, ApplyResult, CheckpatchFinding, CommitRange, PatchSummary, Source
from .base import EXCERPT_LIMIT, STACK_LIMIT, Artifact, Failure, GitObject, Message, Sha256, StackFrame
from .build import BuildJob, BuildResult, CompilerWarning
from .changed_lines import ChangedLines, RanLines
from .claims import (
    ClaimRequest,
    ConsoleAnswer,
    ConsoleChunk,
    Heartbeat,
    HeartbeatAnswer,
    JobEvents,
)
from .events import (
    BlockDiscarded,
    BlockFinished,
    BootFinished,
    BootKey,
    BootStarted,
    BootVerified,
    CheckStep,
    Finding,
    MeasuredTopology,
    Progress,
    RunEvent,
    Sample,
    Samples,
    Unsupported,
)
from .pool import LavaDevice, LavaPool
from .run import BlockPlan, DeviceFacts, Kernel, LabPower, LavaBoot, RunJob, RunResult
from .submission import CommitPair, Event, GitSeries, MboxSeries, Series, Target, ThreadSeries, normalised_subject
from .threads import TakenThread, ThreadMail, ThreadSelection, ThreadSource

__all__ = [
    "EXCERPT_LIMIT",
    "STACK_LIMIT",
    "ApplyJob",
    "ApplyResult",
    "Artifact",
    "BlockDiscarded",
    "BlockFinished",
    "BlockPlan",
    "BootFinished",
    "BootKey",
    "BootStarted",
    "BootVerified",
    "BuildJob",
    "BuildResult",
    "ChangedLines",
    "CheckStep",
    "CheckpatchFinding",
    "ClaimRequest",
    "CommitPair",
    "CommitRange",
    "CompilerWarning",
    "ConsoleAnswer",
    "ConsoleChunk",
    "DeviceFacts",
    "Event",
    "Failure",
    "Finding",
    "GitObject",
    "GitSeries",
    "Heartbeat",
    "HeartbeatAnswer",
    "JobEvents",
    "Kernel",
    "LabPower",
    "LavaBoot",
    "LavaDevice",
    "LavaPool",
    "MboxSeries",
    "MeasuredTopology",
    "Message",
    "PatchSummary",
    "Progress",
    "RanLines",
    "RunEvent",
    "RunJob",
    "RunResult",
    "Sample",
    "Samples",
    "Series",
    "Sha256",
    "Source",
    "StackFrame",
    "TakenThread",
    "Target",
    "ThreadMail",
    "ThreadSelection",
    "ThreadSeries",
    "ThreadSource",
    "Unsupported",
    "normalised_subject",
]
