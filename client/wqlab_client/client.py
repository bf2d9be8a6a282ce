"""Python client of the REST interface: one method per endpoint, typed by the models of `wqlab_contracts.api`."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from datetime import datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, TypeVar, Unpack, cast
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from wqlab_contracts.api.audit import AuditEntry
from wqlab_contracts.api.base import Page
from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.devices import DeviceTypeView, DeviceView, QuarantineRequest
from wqlab_contracts.api.labs import LabInvitation, LabInvited, LabView
from wqlab_contracts.api.plans import PlanView, TreeView
from wqlab_contracts.api.queue import DeviceCheck
from wqlab_contracts.api.quotes import Quota
from wqlab_contracts.api.report import Report
from wqlab_contracts.api.runs import RunView, SampleRow
from wqlab_contracts.api.submissions import SubmissionRequest, SubmissionSummary, SubmissionView
from wqlab_contracts.enums import AuditAction, AuditOutcome, Outcome, SubmissionState
from wqlab_contracts.messages import Artifact, Event

from . import sse
from .errors import LabUnavailable, StreamSilent, UsageError
from .follow import follow
from .replay.archive import BundleError, open_bundle
from .transport import ONCE, Params, Retry, Transport, decode

T = TypeVar("T")
API = "/api/v1"
KEY_BYTES = 10_000
"""Maximum size of a public key; an answer that is longer is cut."""
CHECK_WAIT_S = 20
"""Seconds for which the server may hold a request for a check's progress (long polling); its maximum."""


class ReportFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    HTML = "html"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    MMTESTS = "mmtests"


class SubmissionFilter(TypedDict, total=False):
    """Filters of a submission list; `q` is text to search for."""

    state: SubmissionState | None
    outcome: Outcome | None
    tree: str | None
    owner: str | None
    plan: str | None
    device_type: str | None
    q: str | None


class AuditFilter(TypedDict, total=False):
    """Filters of the audit log; `resource` is TYPE or TYPE/ID, times without an offset are in UTC."""

    actor: str | None
    action: AuditAction | None
    resource: str | None
    address: str | None
    outcome: AuditOutcome | None
    since: datetime | None
    until: datetime | None


class Client:
    """A connection to one lab; safe to use from several threads.

    >>> with Client("https://lab.example.org", token) as lab:
    ...     submitted = lab.submit(request)
    ...     done = lab.wait(submitted.id)
    ...     print(lab.report_text(done.id, ReportFormat.TEXT))

    Every method raises RequestRefused when the server refuses the request and LabUnavailable when there is no usable
    answer. Idempotent requests are retried with back-off when the connection fails or the server answers 429, 502, 503
    or 504; `on_retry` is called with the reason before each wait.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        retry: Retry | None = None,
        timeout_s: float = 60.0,
        on_retry: Callable[[str], None] | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._transport = Transport(
            url,
            token,
            retry=retry or Retry(),
            timeout_s=timeout_s,
            user_agent=f"wqlab-client/{version('wqlab-client')}",
            on_retry=on_retry,
            sleep=sleep or time.sleep,
        )

    @property
    def url(self) -> str:
        return self._transport.url

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- audit log ----------------------------------------------------------------------------------------------

    def audit_page(
        self, *, cursor: str | None = None, limit: int = 50, **filters: Unpack[AuditFilter]
    ) -> Page[AuditEntry]:
        """Return one page of the audit log, newest first; `cursor` is the `next` of the page before."""
        params: dict[str, str | int | None] = {"cursor": cursor, "limit": limit}
        for name, value in filters.items():
            params[name] = value.isoformat() if isinstance(value, datetime) else cast("str | None", value)
        return self._get(Page[AuditEntry], f"{API}/audit", "read the audit log", params)

    # --- submissions --------------------------------------------------------------------------------------------

    def submit(self, request: SubmissionRequest, idempotency_key: str | None = None) -> SubmissionView:
        """Create a submission.

        The request carries an Idempotency-Key, so that repeating it after a lost answer never creates a second
        submission. Pass your own key (such as a CI job's id) so that a rerun of that job returns the same submission.
        """
        return self._post(
            SubmissionView,
            f"{API}/submissions",
            "submit",
            body=request.model_dump_json().encode(),
            headers={"Idempotency-Key": idempotency_key or str(uuid.uuid4())},
        )

    def submissions(self, *, page_size: int = 50, **filters: Unpack[SubmissionFilter]) -> Iterator[SubmissionSummary]:
        """Yield all submissions that match, newest first; pages are fetched as they are consumed."""
        cursor = None
        while True:
            page = self.submissions_page(limit=page_size, cursor=cursor, **filters)
            yield from page.items
            cursor = page.next
            if cursor is None:
                return

    def submissions_page(
        self, *, cursor: str | None = None, limit: int = 50, **filters: Unpack[SubmissionFilter]
    ) -> Page[SubmissionSummary]:
        """Return one page of the submissions that match, newest first; `cursor` is the `next` of the page before."""
        chosen = cast("dict[str, str | None]", filters)
        params: dict[str, str | int | None] = {**chosen, "cursor": cursor, "limit": limit}
        return self._get(Page[SubmissionSummary], f"{API}/submissions", "list submissions", params)

    def submission(self, submission_id: int, *, retry: Retry | None = None) -> SubmissionView:
        path, what = _submission(submission_id)
        return self._get(SubmissionView, path, what, retry=retry)

    def cancel(self, submission_id: int) -> SubmissionView:
        path, what = _submission(submission_id)
        return self._post(SubmissionView, f"{path}/cancel", f"cancel {what}")

    def retry(self, submission_id: int) -> SubmissionView:
        """Submit the same request again and return the new submission. Not retried when the answer is lost."""
        path, what = _submission(submission_id)
        return self._post(SubmissionView, f"{path}/retry", f"retry {what}", repeatable=False)

    def pin(self, submission_id: int) -> SubmissionView:
        """Keep the submission's kernels, logs and consoles, whatever their age."""
        path, what = _submission(submission_id)
        return decode(SubmissionView, self._transport.call("PUT", f"{path}/pin", what=f"pin {what}"), f"pin {what}")

    def unpin(self, submission_id: int) -> SubmissionView:
        path, what = _submission(submission_id)
        return decode(
            SubmissionView, self._transport.call("DELETE", f"{path}/pin", what=f"unpin {what}"), f"unpin {what}"
        )

    def events(
        self,
        submission_id: int,
        *,
        after: int = 0,
        give_up_s: float = 600.0,
        silence_s: float = 60.0,
        on_connected: Callable[[], None] | None = None,
        stop: threading.Event | None = None,
    ) -> Iterator[Event]:
        """Yield the submission's events with `seq` above `after`, each once, until the submission is finished.

        Survives lost connections and restarts of the server: it reconnects with back-off and resumes after the last
        event that it yielded. A stream that is silent for `silence_s` seconds counts as lost. Raises LabUnavailable
        after `give_up_s` seconds without contact. `stop`, set from another thread, ends the iteration at the next
        bytes from the server.
        """
        path, what = _submission(submission_id)
        received = False
        failures, lost_at = 0, None

        def read_until_stopped(response: httpx.Response) -> Iterator[bytes]:
            nonlocal received, failures
            for chunk in response.iter_bytes():
                if stop is not None and stop.is_set():
                    return
                if chunk.startswith(b":"):  # a comment, which the server sends to keep the connection alive
                    received, failures = True, 0
                yield chunk

        while True:
            received = False
            reason = "the event stream ended"
            try:
                headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
                with self._transport.stream(
                    f"{path}/events", what=f"events of {what}", headers=headers, silence_s=silence_s
                ) as response:
                    lost_at = None
                    if on_connected is not None:
                        on_connected()
                    for message in sse.parse_events(read_until_stopped(response)):
                        received, failures = True, 0
                        event = Event.model_validate_json(message.data, extra="ignore")
                        if event.seq > after:
                            after = event.seq
                            yield event
                if stop is not None and stop.is_set():
                    return
                # The server closes the stream when the submission is finished, but also when it shuts down.
                if self.submission(submission_id, retry=ONCE).state is SubmissionState.FINISHED:
                    return
            except LabUnavailable as error:
                reason = error.summary
            except (ValidationError, ValueError) as error:
                raise LabUnavailable(
                    f"events of {what}: the stream contains an invalid event ({error})",
                    "check that client and server have the same version",
                ) from None
            if stop is not None and stop.is_set():
                return
            failures += 0 if received else 1
            now = time.monotonic()
            lost_at = now if lost_at is None else lost_at
            if now - lost_at > give_up_s:
                raise LabUnavailable(
                    f"events of {what}: no contact with {self.url} for {give_up_s:.0f} s ({reason})",
                    f"the submission goes on without you; resume with `wqlab watch {submission_id}`",
                )
            self._transport.wait(self._transport.retry.wait_s(max(failures, 1)), reason)

    def wait(self, submission_id: int, *, timeout_s: float | None = None) -> SubmissionView:
        """Wait until the submission is finished and return it. Raises TimeoutError after `timeout_s` seconds."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with closing(self.follow(submission_id, tick_s=1.0)) as views:
            for view in views:
                if view.state is SubmissionState.FINISHED:
                    return view
                if deadline is not None and time.monotonic() > deadline:
                    break
        raise TimeoutError(f"submission {submission_id} is not finished after {timeout_s:.0f} s")

    def follow(
        self, submission_id: int, *, tick_s: float | None = None, give_up_s: float = 600.0
    ) -> Generator[SubmissionView, None, None]:
        """Yield the submission now and after every change until it is finished (see `follow.follow`)."""
        return follow(self, submission_id, tick_s=tick_s, give_up_s=give_up_s)

    # --- reports ------------------------------------------------------------------------------------------------

    def report(self, submission_id: int) -> Report:
        path, what = _submission(submission_id)
        return self._get(Report, f"{path}/report", f"report of {what}", {"format": ReportFormat.JSON})

    def report_text(self, submission_id: int, report_format: ReportFormat) -> str:
        """Return the report as the server renders it."""
        path, what = _submission(submission_id)
        response = self._transport.call(
            "GET",
            f"{path}/report",
            what=f"report of {what}",
            params={"format": report_format},
            headers={"Accept": "*/*"},
        )
        return response.content.decode("utf-8", errors="replace")

    def bundle(self, submission_id: int, target: Path, *, kernels: bool = False) -> int:
        """Save the bundle of a finished submission as `target` and return its size in bytes.

        `target` is created only when the whole bundle has been received. Raises LabUnavailable if it ends early.
        """
        path, what = _submission(submission_id)
        staged = target.with_name(f".{target.name}.{os.getpid()}.part")
        size = 0
        try:
            with (
                self._transport.stream(
                    f"{path}/bundle", what=f"bundle of {what}", params={"kernels": "true" if kernels else None}
                ) as response,
                staged.open("wb") as file,
            ):
                for chunk in response.iter_bytes():
                    size += file.write(chunk)
            _check_complete(staged, what)
            staged.replace(target)
        finally:
            staged.unlink(missing_ok=True)
        return size

    def lab_key(self) -> str:
        """Return the public key that signs the lab's bundles, in the format of OpenSSH: `ssh-ed25519 BASE64 NAME`."""
        content = b""
        with self._transport.stream(f"{API}/lab-key", what="the lab's key") as response:
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > KEY_BYTES:
                    break
        return content[:KEY_BYTES].decode("utf-8", errors="replace")

    # --- builds and runs ----------------------------------------------------------------------------------------

    def build(self, build_id: int) -> BuildView:
        return self._get(BuildView, f"{API}/builds/{build_id}", f"build {build_id}")

    def build_log(self, build_id: int) -> str:
        response = self._transport.call(
            "GET", f"{API}/builds/{build_id}/log", what=f"log of build {build_id}", headers={"Accept": "text/plain"}
        )
        return response.content.decode("utf-8", errors="replace")

    def build_config(self, build_id: int) -> str:
        """Return the .config that the kernel was built with."""
        response = self._transport.call(
            "GET",
            f"{API}/builds/{build_id}/config",
            what=f"configuration of build {build_id}",
            headers={"Accept": "text/plain"},
        )
        return response.content.decode("utf-8", errors="replace")

    def series(self, submission_id: int) -> str:
        """Return the series under test as an mbox, which `git am` applies on top of the base commit."""
        path, what = _submission(submission_id)
        response = self._transport.call(
            "GET", f"{path}/series", what=f"series of {what}", headers={"Accept": "text/plain"}
        )
        return response.content.decode("utf-8", errors="surrogateescape")

    def quotas(self) -> list[Quota]:
        """Return one's quotas with what is left; empty for maintainers and administrators."""
        return self._get(list[Quota], f"{API}/quota", "quotas")

    def mbox(self, submission_id: int) -> str:
        """Return the mbox of a submission as it was submitted."""
        path, what = _submission(submission_id)
        response = self._transport.call("GET", f"{path}/mbox", what=f"mbox of {what}", headers={"Accept": "text/plain"})
        return response.content.decode("utf-8", errors="surrogateescape")

    def download(self, build_id: int, artifact: Artifact, target: Path) -> None:
        """Save a build's artifact as `target`, which is created only when size and SHA-256 match.

        Raises LabUnavailable if they do not match.
        """
        what = f"artifact {artifact.name} of build {build_id}"
        staged = target.with_name(f".{target.name}.{os.getpid()}.part")
        digest, size = hashlib.sha256(), 0
        try:
            with (
                self._transport.stream(f"{API}/builds/{build_id}/artifacts/{artifact.sha256}", what=what) as response,
                staged.open("wb") as file,
            ):
                for chunk in response.iter_bytes():
                    size += len(chunk)
                    if size > artifact.size:
                        break
                    digest.update(chunk)
                    file.write(chunk)
            if size != artifact.size or digest.hexdigest() != artifact.sha256:
                raise LabUnavailable(
                    f"{what}: the downloaded file does not match the announced size and SHA-256", "download it again"
                )
            staged.replace(target)
        finally:
            staged.unlink(missing_ok=True)

    def run(self, run_id: int) -> RunView:
        return self._get(RunView, f"{API}/runs/{run_id}", f"run {run_id}")

    def console(
        self,
        run_id: int,
        boot_id: int,
        *,
        offset: int = 0,
        follow: bool = False,
        give_up_s: float = 600.0,
    ) -> Iterator[bytes]:
        """Yield a boot's console from byte `offset`; with `follow`, until the boot ends, across lost connections."""
        what = f"console of run {run_id}, boot {boot_id}"
        failures, lost_at = 0, None
        while True:
            params: Params = {"boot": boot_id, "offset": offset, "follow": "true" if follow else None}
            try:
                with self._transport.stream(f"{API}/runs/{run_id}/console", what=what, params=params) as response:
                    failures, lost_at = 0, None
                    for chunk in response.iter_bytes():
                        offset += len(chunk)
                        yield chunk
                return
            except LabUnavailable as error:
                if follow and isinstance(error, StreamSilent):
                    continue  # a device may print nothing for a minute
                failures += 1
                now = time.monotonic()
                lost_at = now if lost_at is None else lost_at
                limit_reached = now - lost_at > give_up_s if follow else failures >= self._transport.retry.attempts
                if limit_reached:
                    raise
                self._transport.wait(self._transport.retry.wait_s(failures), error.summary)

    def samples(self, run_id: int) -> list[SampleRow]:
        path = f"{API}/runs/{run_id}/samples"
        return self._get(list[SampleRow], path, f"samples of run {run_id}", {"format": "json"})

    def samples_csv(self, run_id: int) -> str:
        """Return the run's samples as CSV, the input format of `wqlab compare`."""
        response = self._transport.call(
            "GET",
            f"{API}/runs/{run_id}/samples",
            what=f"samples of run {run_id}",
            params={"format": "csv"},
            headers={"Accept": "text/csv"},
        )
        return response.text

    def run_artifacts(self, run_id: int) -> list[Artifact]:
        """Return the artifacts of the run's boots, such as the raw output of the plan's script."""
        return self._get(list[Artifact], f"{API}/runs/{run_id}/artifacts", f"artifacts of run {run_id}")

    def run_artifact(self, run_id: int, artifact: Artifact) -> bytes:
        """Return an artifact's bytes, at most a few MiB. Raises LabUnavailable if their SHA-256 is wrong."""
        what = f"artifact {artifact.name} of run {run_id}"
        path = f"{API}/runs/{run_id}/artifacts/{artifact.sha256}"
        response = self._transport.call("GET", path, what=what, headers={"Accept": "*/*"})
        if hashlib.sha256(response.content).hexdigest() != artifact.sha256:
            raise LabUnavailable(
                f"{what}: the downloaded file does not match the announced size and SHA-256", "try again"
            )
        return response.content

    # --- the lab ------------------------------------------------------------------------------------------------

    def devices(self) -> list[DeviceView]:
        return self._get(list[DeviceView], f"{API}/devices", "list devices")

    def device(self, name: str) -> DeviceView:
        return self._get(DeviceView, f"{API}/devices/{quote(name, safe='')}", f"device {name}")

    def quarantine(self, name: str, reason: str) -> DeviceView:
        """Take a device out of the pool. Raises UsageError for an empty or overlong reason."""
        try:
            request = QuarantineRequest(reason=reason)
        except ValidationError:
            raise UsageError(
                "a quarantine needs a reason of 1 to 500 characters", "describe what is wrong with the device"
            ) from None
        path = f"{API}/devices/{quote(name, safe='')}/quarantine"
        return self._post(DeviceView, path, f"quarantine {name}", body=request.model_dump_json().encode())

    def release(self, name: str) -> DeviceView:
        """Put a quarantined device back into the pool; a health check precedes its first run."""
        return self._post(DeviceView, f"{API}/devices/{quote(name, safe='')}/release", f"release {name}")

    def check_device(self, name: str) -> DeviceCheck:
        """Start a check of a device, or return the one in progress. For maintainers."""
        return self._post(DeviceCheck, f"{API}/devices/{quote(name, safe='')}/check", f"check of {name}")

    def await_device_check(self, known: DeviceCheck) -> DeviceCheck:
        """Wait up to CHECK_WAIT_S seconds for a change of a check and return it; `known` is its last known state."""
        path = f"{API}/devices/{quote(known.device, safe='')}/checks/{known.id}"
        params: Params = {"seen": known.changes, "wait_s": CHECK_WAIT_S}
        return self._get(DeviceCheck, path, f"check {known.id} of {known.device}", params)

    def labs(self) -> list[LabView]:
        return self._get(list[LabView], f"{API}/labs", "list labs")

    def invite_lab(self, name: str, *, valid_s: int, again: bool = False) -> LabInvited:
        """Create a token with which one host joins as this lab. For administrators.

        `valid_s`: seconds until the token expires; `again`: replace a host that has joined.
        """
        body = LabInvitation(valid_s=valid_s, again=again).model_dump_json().encode()
        return self._post(LabInvited, f"{API}/labs/{quote(name, safe='')}/invite", f"invite lab {name}", body=body)

    def remove_lab(self, name: str) -> None:
        """Revoke a lab's credentials and quarantine its devices. For administrators."""
        self._transport.call(
            "DELETE", f"{API}/labs/{quote(name, safe='')}", what=f"remove lab {name}", repeatable=False
        )

    def device_types(self) -> list[DeviceTypeView]:
        return self._get(list[DeviceTypeView], f"{API}/device-types", "list device types")

    def plans(self) -> list[PlanView]:
        return self._get(list[PlanView], f"{API}/plans", "list plans")

    def trees(self) -> list[TreeView]:
        return self._get(list[TreeView], f"{API}/trees", "list trees")

    # --- requests -----------------------------------------------------------------------------------------------

    def _get(self, model: type[T], path: str, what: str, params: Params | None = None, retry: Retry | None = None) -> T:
        return decode(model, self._transport.call("GET", path, what=what, params=params, retry=retry), what)

    def _post(
        self,
        model: type[T],
        path: str,
        what: str,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        repeatable: bool = True,
    ) -> T:
        response = self._transport.call("POST", path, what=what, body=body, headers=headers, repeatable=repeatable)
        return decode(model, response, what)


def _check_complete(staged: Path, what: str) -> None:
    """Raise LabUnavailable if the file is no whole bundle: the server ends a stream when the token is revoked."""
    try:
        with open_bundle(staged):
            pass
    except BundleError as error:
        reason = error.summary.removeprefix(f"{staged}: ")
        raise LabUnavailable(f"bundle of {what}: the download is incomplete ({reason})", "download it again") from None


def _submission(submission_id: int) -> tuple[str, str]:
    return f"{API}/submissions/{submission_id}", f"submission {submission_id}"
