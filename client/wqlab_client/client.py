"""Python client of the REST interface, with a method for each request of the command `wqlab`, typed by the models of
`wqlab_contracts.api`."""

from __future__ import annotations

from .calls.bisections import BisectionCalls
from .calls.builds import BuildCalls, RunCalls
from .calls.comparisons import ComparisonCalls
from .calls.events import EventCalls
from .calls.lab import LabCalls
from .calls.reports import ReportCalls, ReportFormat
from .calls.touches import TouchesCalls
from .calls.watches import WatchCalls

__all__ = ["Client", "ReportFormat"]


class Client(
    EventCalls,
    ReportCalls,
    BuildCalls,
    RunCalls,
    LabCalls,
    WatchCalls,
    BisectionCalls,
    ComparisonCalls,
    TouchesCalls,
):
    """A connection to one lab; safe to use from several threads.

    >>> with Client("https://lab.example.org", token) as lab:
    ...     submitted = lab.submit(request)
    ...     done = lab.wait(submitted.id)
    ...     print(lab.report_text(done.id, ReportFormat.TEXT))

    Every method raises RequestRefused when the server refuses the request and LabUnavailable when there is no usable
    answer. Idempotent requests are retried with back-off when the connection fails or the server answers 429, 502, 503
    or 504; `on_retry` is called with the reason before each wait.
    """
