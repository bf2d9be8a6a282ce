"""Turn what ended a job into its failure and outcome."""

from __future__ import annotations

import errno
import os

import structlog

from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.messages import Failure

from .server import ArtifactCorrupt

log = structlog.get_logger()


def failure_of(error: Exception) -> Failure:
    """Return the Failure that describes an exception that ended a job."""
    known = getattr(error, "failure", None)
    if isinstance(known, Failure):
        return known
    if isinstance(error, ArtifactCorrupt):
        return Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary=str(error),
            advice="The artifact store was changed from outside the server; build the kernel again.",
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary=f"the worker has no space left: {error.filename or os.environ.get('WQLAB_CACHE', 'its volume')}",
            advice="The lab's operator makes space (`wqlab-lab storage` lists what uses it); then run `wqlab retry`.",
        )
    log.error("job failed", error=repr(error), exc_info=error)
    return Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the worker failed: {error!r}"[:1000])


def outcome_of(failure: Failure) -> Outcome:
    return Outcome.CANCELED if failure.kind is ErrorKind.CANCELED else Outcome.FAILED
