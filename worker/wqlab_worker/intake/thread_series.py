"""The choice of a series from a thread, which `parse_thread` makes in the sandbox, by its name in the worker."""

from __future__ import annotations

from wqlab_contracts.revision_mails import Selection
from wqlab_contracts.thread_series import Thread, ThreadProblem, revision_query, select

__all__ = ["Selection", "Thread", "ThreadProblem", "revision_query", "select"]
