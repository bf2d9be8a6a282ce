"""Advance jobs of KernelCI: claim the node, make the submission, write the result back.

Each step is one request to KernelCI and one transaction. What is written to KernelCI is stored first, so that a restart
between the two repeats the step and recognises what it did before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import and_, func, or_, select, update
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import Outcome, SubmissionState, Verdict

from ...http.problems import ApiProblem
from ...models import Apply, KernelCiJob, Submission
from ...models.kernelci import ENDED, KernelCiState
from ...settings import Settings
from ...storage.db import SessionFactory, clock, transaction
from . import results
from .api import KernelCi, KernelCiError, Node, NotFound, Refused, child
from .mapping import JobRules, Unmappable, map_job

Create = Callable[[Session, SubmissionRequest, str], int]
"""Create a submission with an idempotency key and return its id. Raises ApiProblem."""

DEFINITION_ATTEMPTS = 8
"""Attempts at fetching a job definition, in a quarter of an hour, before the job is given back as incomplete."""
ATTEMPTS = 100
"""Attempts at any step, in a day, before the job is given up."""
FIRST_RETRY_S = 30
LONGEST_RETRY_S = 900
BATCH = 200
_QUOTA_STATUS = 429
_TIMED_OUT = "node_timeout"
"""KernelCI's code for a node whose time was over. Its own services overwrite it by a result that comes later."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Jobs:
    """What advances jobs."""

    factory: SessionFactory
    settings: Settings
    api: KernelCi
    rules: JobRules
    create: Create

    def due(self) -> list[str]:
        """Return the ids of the nodes whose jobs can advance, the longest known first."""
        with transaction(self.factory) as session:
            waiting = and_(
                KernelCiJob.state.not_in([*ENDED, KernelCiState.RUNNING]), KernelCiJob.due_at <= clock(session)
            )
            measured = and_(KernelCiJob.state == KernelCiState.RUNNING, Submission.state == SubmissionState.FINISHED)
            query = (
                select(KernelCiJob.node_id)
                .outerjoin(Submission, Submission.id == KernelCiJob.submission_id)
                .where(or_(waiting, measured))
                .order_by(KernelCiJob.seen_at, KernelCiJob.node_id)
                .limit(BATCH)
            )
            return list(session.scalars(query))

    def advance(self, node_id: str) -> None:
        """Take a job as far as it goes. An error is stored in its row, with the time of the next attempt."""
        state: KernelCiState | None = None
        while True:
            with transaction(self.factory) as session:
                job = session.get_one(KernelCiJob, node_id)
                session.expunge(job)
            if job.state is state or job.state in ENDED:
                return
            state = job.state
            try:
                self._step(job)
            except NotFound as error:
                self._lose(job, str(error))
            except KernelCiError as error:
                self._retry_later(job, str(error))
            except Exception as error:  # a bug in one job must not stop the others
                log.exception("kernelci_job_crashed", node=node_id)
                self._retry_later(job, f"{type(error).__name__}: {error}"[:500])

    def _step(self, job: KernelCiJob) -> None:
        steps = {
            KernelCiState.SEEN: self._claim,
            KernelCiState.CLAIMED: self._submit,
            KernelCiState.RUNNING: self._conclude,
            KernelCiState.REPORTING: self._report,
        }
        steps[job.state](job)

    def _claim(self, job: KernelCiJob) -> None:
        """Write `data.job_id`. The API has no conditional write; `_submit` reads whether another lab wrote its own."""
        node = self.api.node(job.node_id)
        if child(node, "data", "job_id") != job.job_id:
            if child(node, "state") != "available" or child(node, "data", "job_id"):
                self._lose(job, _owner(node))
                return
            node["data"] = {**(node.get("data") or {}), "job_id": job.job_id}
            self.api.put(node)
        self._set(job, state=KernelCiState.CLAIMED)

    def _submit(self, job: KernelCiJob) -> None:
        node = self.api.node(job.node_id)
        if child(node, "data", "job_id") != job.job_id or child(node, "state") == "done":
            self._lose(job, _owner(node))
            return
        try:
            definition = self.api.definition(job.definition_url)
            request = map_job(node, definition, self.rules)
            with transaction(self.factory) as session:
                submission_id = self.create(session, request, f"kernelci:{job.node_id}")
                self._set(job, session, state=KernelCiState.RUNNING, submission_id=submission_id)
        except (Unmappable, Refused) as error:
            self._end(job, results.unmappable(str(error)))
        except ApiProblem as problem:
            if problem.status == _QUOTA_STATUS:
                raise KernelCiError(f"waiting: {problem.detail}") from problem
            self._end(job, results.unmappable(problem.detail))
        except KernelCiError as error:
            if job.attempts + 1 < DEFINITION_ATTEMPTS:
                raise KernelCiError(str(error)) from error
            self._end(job, results.lab_failure(f"the job definition cannot be fetched: {error}"))

    def _conclude(self, job: KernelCiJob) -> None:
        with transaction(self.factory) as session:
            submission = session.get_one(Submission, job.submission_id)
            if submission.state is not SubmissionState.FINISHED:
                return
            outcome = session.scalar(select(Apply.outcome).where(Apply.submission_id == submission.id))
            verdicts = _verdicts(submission)
            result = results.measured(submission.failure, verdicts, applied=outcome is Outcome.PASSED)
        self._end(job, result)

    def _report(self, job: KernelCiJob) -> None:
        node = self.api.node(job.node_id)
        if child(node, "data", "job_id") != job.job_id:
            self._lose(job, _owner(node))
            return
        if child(node, "state") == "done":
            if child(node, "result") == job.result and child(node, "data", "error_code") == job.error_code:
                self._set(job, state=KernelCiState.REPORTED)  # an earlier attempt succeeded, its answer was lost
                return
            if child(node, "data", "error_code") != _TIMED_OUT:
                self._lose(job, _owner(node))
                return
        try:
            self.api.put(self._reported(node, job))
        except Refused as error:
            self._lose(job, str(error))
            return
        self._set(job, state=KernelCiState.REPORTED)

    def _reported(self, node: Node, job: KernelCiJob) -> Node:
        """Return the node with the job's result and, if the lab is public, a link to the report."""
        data = {**(node.get("data") or {}), "error_code": job.error_code, "error_msg": job.reason or None}
        artifacts = dict(node.get("artifacts") or {})
        if job.submission_id is not None:
            report = f"{self.settings.public_url.rstrip('/')}/r/{job.submission_id}"
            with transaction(self.factory) as session:
                verdicts = sorted(_verdicts(session.get_one(Submission, job.submission_id)))
            ours = {"submission": job.submission_id, "report": report, "verdicts": [str(each) for each in verdicts]}
            data["misc"] = {**(data.get("misc") or {}), "wqlab": ours}
            if self.settings.public_reading:
                artifacts["test_log"] = f"{report}.txt"
        return {**node, "state": "done", "result": job.result, "data": data, "artifacts": artifacts}

    def _end(self, job: KernelCiJob, result: results.NodeResult) -> None:
        self._set(
            job,
            state=KernelCiState.REPORTING,
            result=result.result,
            error_code=result.error_code,
            reason=result.error_msg or "",
        )

    def _lose(self, job: KernelCiJob, reason: str) -> None:
        self._set(job, state=KernelCiState.LOST, reason=reason)

    def _retry_later(self, job: KernelCiJob, problem: str) -> None:
        if job.attempts + 1 >= ATTEMPTS:
            self._lose(job, f"given up: {problem}")
            return
        log.warning("kernelci_step_failed", node=job.node_id, state=job.state.value, problem=problem)
        wait = timedelta(seconds=min(FIRST_RETRY_S * 2 ** min(job.attempts, 10), LONGEST_RETRY_S))
        with transaction(self.factory) as session:
            values = {"problem": problem, "attempts": job.attempts + 1, "due_at": clock(session) + wait}
            session.execute(update(KernelCiJob).where(KernelCiJob.node_id == job.node_id).values(**values))

    def _set(self, job: KernelCiJob, session: Session | None = None, **values: Any) -> None:
        """Write a job's new state. Its attempts begin again."""
        if session is None:
            with transaction(self.factory) as own:
                self._set(job, own, **values)
            return
        ended = {"ended_at": func.clock_timestamp()} if values["state"] in ENDED else {}
        written = values | ended | {"attempts": 0, "problem": "", "due_at": func.clock_timestamp()}
        session.execute(update(KernelCiJob).where(KernelCiJob.node_id == job.node_id).values(**written))
        log.info("kernelci_job", node=job.node_id, **{name: str(value) for name, value in values.items()})


def _verdicts(submission: Submission) -> set[Verdict]:
    found = (facet.removeprefix("verdict:") for facet in submission.facets if facet.startswith("verdict:"))
    return {Verdict(each) for each in found}


def _owner(node: Node) -> str:
    """Return why a node is not the lab's."""
    state, result, holder = child(node, "state"), child(node, "result"), child(node, "data", "job_id")
    message = child(node, "data", "error_msg")
    if state == "done":
        return f"KernelCI ended the job: {result or 'no result'}{f', {message}' if message else ''}"
    return f"claimed by {holder}" if holder else f"the node is {state}"
