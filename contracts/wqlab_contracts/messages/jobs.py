"""Every kind of job: what the worker gets with a claim, and what it sends at the end."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .apply import ApplyJob, ApplyResult
from .base import Message
from .branch_readings import BranchReadingJob, BranchReadingResult
from .build import BuildJob, BuildResult
from .commit_lists import CommitListJob, CommitListResult
from .forge_readings import ForgeReadingJob, ForgeReadingResult
from .list_reads import ListReadJob, ListReadResult
from .lookups import LookupJob, LookupResult
from .run import RunJob, RunResult
from .thread_lookups import ThreadLookupJob, ThreadLookupResult

JobPayload = Annotated[
    ApplyJob
    | BuildJob
    | RunJob
    | LookupJob
    | ThreadLookupJob
    | BranchReadingJob
    | ForgeReadingJob
    | CommitListJob
    | ListReadJob,
    Field(discriminator="kind"),
]
JobResult = Annotated[
    ApplyResult
    | BuildResult
    | RunResult
    | LookupResult
    | ThreadLookupResult
    | BranchReadingResult
    | ForgeReadingResult
    | CommitListResult
    | ListReadResult,
    Field(discriminator="kind"),
]


class Claim(Message):
    """A claimed job. The worker holds it until `expires_in_s` seconds have passed without a heartbeat."""

    job: JobPayload
    fence: int
    expires_in_s: float


class FinishJob(Message):
    """Last message of a claim: how the attempt ended."""

    fence: int
    result: JobResult
