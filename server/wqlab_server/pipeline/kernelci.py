"""Take jobs from KernelCI: read its events and advance the jobs, in a process of its own.

A poll waits for another server for up to minutes, and the worker that runs the tick does one thing at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import AuditAction

from ..intake.kernelci.api import KernelCi, KernelCiError
from ..intake.kernelci.jobs import Create, Jobs
from ..intake.kernelci.mapping import read_rules
from ..intake.kernelci.poll import read_events
from ..settings import Settings
from ..storage.audit import OPERATOR, record
from ..storage.db import SessionFactory, transaction
from ..storage.live_data import LiveData
from ..submissions import service as submissions

OWNER = "kernelci"
"""Owner of the submissions; the quotas of a submitter apply to it."""
_LOCK = 0x77716C6B
"""Key of the advisory lock that prevents two polls at the same time."""

log = structlog.get_logger(__name__)


class NotConfigured(ValueError):
    """A setting that a poll needs is missing or wrong."""


def poll(factory: SessionFactory, settings: Settings, data: LiveData) -> bool:
    """Read new events and advance all jobs; return False if another process is polling.

    Raises NotConfigured or DataError if the settings or the rules are unusable, and KernelCiError if the events cannot
    be read; jobs that are known already are advanced nevertheless.
    """
    token = _read_token(settings)
    if settings.kernelci_jobs_file is None:
        raise NotConfigured("set WQLAB_KERNELCI_JOBS_FILE to the file that maps KernelCI's jobs")
    rules = read_rules(settings.kernelci_jobs_file)
    with transaction(factory) as guard, KernelCi(settings.kernelci_url, token) as api:
        if not guard.scalar(select(func.pg_try_advisory_xact_lock(_LOCK))):
            return False
        jobs = Jobs(factory, settings, api, rules, _creator(settings, data))
        failed: KernelCiError | None = None
        try:
            read_events(factory, settings, api)
        except KernelCiError as error:
            failed = error
        for node_id in jobs.due():
            jobs.advance(node_id)
        if failed is not None:
            raise failed
    return True


def poll_for_ever(
    factory: SessionFactory,
    settings: Settings,
    data: LiveData,
    sleep: Callable[[float], None] = time.sleep,
    touch: Path | None = None,
) -> None:
    """Poll until the process is ended. An error is logged, and the next poll comes at its time.

    The modification time of `touch` becomes that of the last poll without an error. Raises NotConfigured.
    """
    while True:
        try:
            poll(factory, settings, data)
            if touch is not None:
                touch.touch()
        except NotConfigured:
            raise
        except Exception as error:
            log.error("kernelci_poll_failed", error=f"{type(error).__name__}: {error}")
        sleep(settings.kernelci_poll_s)


def _creator(settings: Settings, data: LiveData) -> Create:
    def create(session: Session, request: SubmissionRequest, key: str) -> int:
        submission = submissions.create(
            session, data.current(), settings, request, OWNER, idempotency_key=key, limited=True
        )
        record(session, OPERATOR, AuditAction.CREATE_SUBMISSION, f"submission/{submission.id}", source=key)
        return submission.id

    return create


def _read_token(settings: Settings) -> str:
    if not settings.kernelci_url or not settings.kernelci_runtime or settings.kernelci_token_file is None:
        raise NotConfigured("set WQLAB_KERNELCI_URL, WQLAB_KERNELCI_RUNTIME and WQLAB_KERNELCI_TOKEN_FILE")
    try:
        token = settings.kernelci_token_file.read_text().strip()
    except OSError as error:
        raise NotConfigured(f"WQLAB_KERNELCI_TOKEN_FILE cannot be read: {error.strerror}") from error
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise NotConfigured("WQLAB_KERNELCI_TOKEN_FILE contains no token")
    return token
