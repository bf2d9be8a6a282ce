"""Every table. Rows are the truth of the lab; no column holds what another can tell, except counters marked as such.

Importing the package registers every table, so that foreign keys and relationships by name always resolve.
"""

from .artifacts import Artifact, ArtifactLink
from .base import Base, Typed, fences
from .builds import Build, SubmissionBuild
from .faults import TickFault
from .job import Job
from .lab import Device, Lab, Lease
from .measurements import BootValue, Comparison, Finding, Sample, Unsupported
from .runs import BlockAttempt, Boot, ConsoleChunk, Run, RunAttempt
from .submissions import Apply, Event, Submission
from .tokens import Token

__all__ = [
    "Apply",
    "Artifact",
    "ArtifactLink",
    "Base",
    "BlockAttempt",
    "Boot",
    "BootValue",
    "Build",
    "Comparison",
    "ConsoleChunk",
    "Device",
    "Event",
    "Finding",
    "Job",
    "Lab",
    "Lease",
    "Run",
    "RunAttempt",
    "Sample",
    "Submission",
    "SubmissionBuild",
    "TickFault",
    "Token",
    "Typed",
    "Unsupported",
    "fences",
]
