"""All kinds of jobs."""

from __future__ import annotations

from functools import partial

from wqlab_contracts.enums import JobKind

from ..bisections.lists import CommitListKind
from ..builds.apply_kind import ApplyKind
from ..builds.build_kind import BuildKind
from ..intake.forges.heads import HeadReadingKind
from ..intake.previews import PreviewKind
from ..intake.proposals import proposer
from ..intake.threads import ThreadLookupKind
from ..intake.watched_lists import ListReadKind
from ..jobs.protocol import Kinds
from ..series.branch_readings import BranchReadingKind
from ..series.branches import BranchListKind
from .admission import quoted_minutes
from .device_sessions import RunKind

KINDS: Kinds = {
    JobKind.APPLY: ApplyKind(),
    JobKind.BUILD: BuildKind(),
    JobKind.RUN: RunKind(),
    JobKind.LIST_BRANCHES: BranchListKind(),
    JobKind.FIND_THREAD: ThreadLookupKind(),
    JobKind.READ_BRANCH: BranchReadingKind(),
    JobKind.READ_HEAD: HeadReadingKind(),
    JobKind.LIST_COMMITS: CommitListKind(),
    JobKind.READ_LIST: ListReadKind(),
    JobKind.PREVIEW_WATCH: PreviewKind(
        minutes=lambda context: partial(quoted_minutes, data=context.data.current(), settings=context.settings),
        propose=lambda context: proposer(context.session, context.settings, context.data.current()),
    ),
}
