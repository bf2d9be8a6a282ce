"""Define every table. The rows are the lab's authoritative state, without redundant columns except marked counters
and copies.

Importing the package registers every table, so that foreign keys and relationships by name always resolve.
"""

from .accounts import BrowserSession, SignInThrottle, Token, User
from .artifacts import Artifact, ArtifactLink
from .audit import AuditEntry
from .base import Base, Typed, fences
from .bisections import Bisection, BisectionStep, CommitList
from .builds import Build, SubmissionBuild
from .forges import FORGE_SOURCE, ForgeChange, ForgeEvent, ForgeHead, ForgeRepository
from .history import HistoryEnvironment, HistoryLine, HistoryPoint, HistoryShift
from .job import Apply, BranchList, BranchReading, HeadReading, Job, ListRead, ThreadLookup
from .lab import Device, DeviceCheck, HealthChange, Lab, Lease
from .lab_hosts import LabHost, LabInvite
from .lists import ListPreview, SeenMail, WatchDecisionRow, WatchedList
from .mail_addresses import MailAddress
from .mailbox import ListReply, MailBounce, ReceivedCommand
from .measurements import BootValue, Comparison, Finding, Sample, Unsupported
from .orders import Order
from .outbox import Delivery, DeliveryAttempt, PendingEvent, SubmissionMail, Webhook
from .reports import KeptReport
from .runs import BlockAttempt, Boot, CanaryRun, ConsoleChunk, Run, RunAttempt
from .storage_reports import StorageReport
from .submissions import Event, Submission
from .tick_errors import TickError
from .ticks import LastTick
from .watches import Watch, WatchedHead

__all__ = [
    "FORGE_SOURCE",
    "Apply",
    "Artifact",
    "ArtifactLink",
    "AuditEntry",
    "Base",
    "Bisection",
    "BisectionStep",
    "BlockAttempt",
    "Boot",
    "BootValue",
    "BranchList",
    "BranchReading",
    "BrowserSession",
    "Build",
    "CanaryRun",
    "CommitList",
    "Comparison",
    "ConsoleChunk",
    "Delivery",
    "DeliveryAttempt",
    "Device",
    "DeviceCheck",
    "Event",
    "Finding",
    "ForgeChange",
    "ForgeEvent",
    "ForgeHead",
    "ForgeRepository",
    "HeadReading",
    "HealthChange",
    "HistoryEnvironment",
    "HistoryLine",
    "HistoryPoint",
    "HistoryShift",
    "Job",
    "KeptReport",
    "Lab",
    "LabHost",
    "LabInvite",
    "LastTick",
    "Lease",
    "ListPreview",
    "ListRead",
    "ListReply",
    "MailAddress",
    "MailBounce",
    "Order",
    "PendingEvent",
    "ReceivedCommand",
    "Run",
    "RunAttempt",
    "Sample",
    "SeenMail",
    "SignInThrottle",
    "StorageReport",
    "Submission",
    "SubmissionBuild",
    "SubmissionMail",
    "ThreadLookup",
    "TickError",
    "Token",
    "Typed",
    "Unsupported",
    "User",
    "Watch",
    "WatchDecisionRow",
    "WatchedHead",
    "WatchedList",
    "Webhook",
    "fences",
]
