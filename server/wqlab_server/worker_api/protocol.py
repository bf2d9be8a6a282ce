"""Check the version of a worker before it gets a job."""

from __future__ import annotations

from typing import Annotated

import structlog
from fastapi import Header

from wqlab_contracts.messages.protocol import PROTOCOL, PROTOCOL_HEADER, RELEASE_HEADER, release

from ..http.auth import Worker
from ..http.problems import ApiProblem

log = structlog.get_logger(__name__)


def check_protocol(
    principal: Worker,
    protocol: Annotated[int, Header(alias=PROTOCOL_HEADER, ge=0, le=10**6)],
    worker_release: Annotated[str, Header(alias=RELEASE_HEADER, max_length=50)],
) -> None:
    """Raise ApiProblem 403 if the worker has another version of the worker API than this server.

    Only claims are checked: a worker that got a job from an older server may finish it.
    """
    if protocol == PROTOCOL:
        return
    log.warning("worker_refused", worker=principal.owner, lab=principal.lab, protocol=protocol, release=worker_release)
    older = "worker" if protocol < PROTOCOL else "server"
    raise ApiProblem(
        403,
        f"this worker is wqlab {worker_release} with protocol {protocol}, the server is wqlab {release()} with "
        f"protocol {PROTOCOL}: update the {older}; the job waits",
        slug="other-protocol",
    )
