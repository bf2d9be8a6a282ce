"""Client of LAVA's REST API (v0.2, LAVA 2026.10), for the calls that a run needs."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, Literal, TypeVar

import httpx
import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

PROBE_TIMEOUT_S = 5.0
TIMEOUT_S = 30.0
PAGE = 200
UNFINISHED = ("Submitted", "Scheduling", "Scheduled", "Running", "Canceling")

ModelT = TypeVar("ModelT", bound=BaseModel)


class LavaError(Exception):
    """LAVA did not fulfil a request; the text names the server and quotes its answer."""


class LavaUnreachable(LavaError):
    """LAVA does not answer, or not as LAVA does; a later request may succeed."""


class LavaRefused(LavaError):
    """LAVA refused the request; repeating it will not help."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class LavaJob(_Model):
    """State of one job."""

    id: int
    description: str | None = None
    state: Literal["Submitted", "Scheduling", "Scheduled", "Running", "Canceling", "Finished"]
    health: Literal["Unknown", "Complete", "Incomplete", "Canceled"]
    actual_device: str | None = None
    failure_comment: str | None = None

    @property
    def finished(self) -> bool:
        return self.state == "Finished"


class LavaDeviceState(_Model):
    """State of one device."""

    hostname: str
    device_type: str
    state: str
    """Idle, Reserved or Running."""
    health: str
    """Good, Unknown, Looping, Bad, Maintenance or Retired."""


class LavaTestCase(_Model):
    """Result of one test case."""

    name: str
    result: str
    measurement: str | None = None
    metadata: str | None = None
    """YAML; for the job's own test case it has the type and text of the error."""

    @property
    def details(self) -> dict[str, Any]:
        """The parsed metadata; empty if it is no YAML mapping."""
        try:
            known = yaml.safe_load(self.metadata or "")
        except yaml.YAMLError:
            return {}
        return known if isinstance(known, dict) else {}


class LogLine(_Model):
    """One entry of a job's log. Entries of level `target` are lines of the device's console, without the line end."""

    dt: datetime
    lvl: str
    msg: Any = ""

    @property
    def text(self) -> str:
        return self.msg if isinstance(self.msg, str) else str(self.msg)


_LOG = TypeAdapter(list[LogLine])
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Lava:
    """REST client of one LAVA server. All methods raise LavaUnreachable or LavaRefused."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v0.2/",
            headers={"Authorization": f"Token {token}"},
            timeout=TIMEOUT_S,
            follow_redirects=True,
        )

    def close(self) -> None:
        self._http.close()

    def version(self) -> str:
        """Return LAVA's version: a cheap check that needs no permission."""
        return str(self._json("GET", "system/version/", timeout=PROBE_TIMEOUT_S)["version"])

    def user(self) -> str:
        """Return the name of the token's user. Raises LavaRefused for an unknown token."""
        return str(self._json("GET", "system/whoami/")["user"])

    def submit(self, definition: str) -> int:
        """Submit a job and return its id."""
        return int(self._json("POST", "jobs/", json={"definition": definition})["job_ids"][0])

    def job(self, job_id: int) -> LavaJob:
        return self._as(LavaJob, self._json("GET", f"jobs/{job_id}/"))

    def unfinished(self, user: str) -> list[LavaJob]:
        """Return the jobs of `user` that have not ended."""
        submitter = {"submitter__username": user}
        return [job for state in UNFINISHED for job in self._all(LavaJob, "jobs/", **submitter, state=state)]

    def cancel(self, job_id: int) -> None:
        self._json("POST", f"jobs/{job_id}/cancel/")

    def job_url(self, job_id: int) -> str:
        """Return the URL of the job's page."""
        return f"{self.url}/scheduler/job/{job_id}"

    def log(self, job_id: int, start: int = 0) -> list[LogLine]:
        """Return the log's entries from number `start` on; empty while there are none."""
        answer = self._send(
            "GET", f"jobs/{job_id}/logs/", params={"start": start} if start else None, absent_is_fine=True
        )
        if answer is None or not answer.content.strip():
            return []
        try:
            # While the job runs, the last entry may be incomplete.
            return _LOG.validate_python(yaml.load(_whole_lines(answer.text), Loader=_LOADER) or [])  # noqa: S506 - a safe loader
        except (yaml.YAMLError, ValidationError) as error:
            raise LavaUnreachable(f"{self.url}: the log of job {job_id} is not readable: {error}"[:500]) from error

    def tests(self, job_id: int) -> list[LavaTestCase]:
        return self._all(LavaTestCase, f"jobs/{job_id}/tests/")

    def devices(self) -> list[LavaDeviceState]:
        return self._all(LavaDeviceState, "devices/")

    def queued(self) -> Counter[str]:
        """Return the number of jobs that wait for a device, by device type."""
        return Counter(job["requested_device_type"] for job in self._pages("jobs/", state="Submitted"))

    # --- one request --------------------------------------------------------------------------------------------

    def _all(self, model: type[ModelT], path: str, **params: str) -> list[ModelT]:
        return [self._as(model, item) for item in self._pages(path, **params)]

    def _pages(self, path: str, **params: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = self._json("GET", path, params={**params, "limit": str(PAGE), "offset": str(len(found))})
            found += page["results"]
            if not page.get("next"):
                return found

    def _as(self, model: type[ModelT], data: Any) -> ModelT:
        try:
            return model.model_validate(data)
        except ValidationError as error:
            raise LavaUnreachable(f"{self.url} does not answer as LAVA 2026.10 does: {error}"[:500]) from error

    def _json(self, method: str, path: str, **how: Any) -> Any:
        answer = self._send(method, path, **how)
        assert answer is not None  # noqa: S101 - nothing was allowed to be absent
        try:
            return answer.json()
        except ValueError as error:
            raise LavaUnreachable(f"{self.url} does not answer {path} with JSON; is it a LAVA server?") from error

    def _send(
        self, method: str, path: str, *, absent_is_fine: bool = False, timeout: float = TIMEOUT_S, **how: Any
    ) -> httpx.Response | None:
        try:
            answer = self._http.request(method, path, timeout=timeout, **how)
        except httpx.HTTPError as error:
            raise LavaUnreachable(f"LAVA at {self.url} does not answer: {error or type(error).__name__}") from error
        if answer.status_code == 404 and absent_is_fine:
            return None
        if answer.status_code >= 500 or answer.status_code == 429:
            raise LavaUnreachable(f"LAVA at {self.url} answers {answer.status_code} to {path}")
        if answer.is_error:
            raise LavaRefused(f"LAVA at {self.url} refuses {method} {path}: {_error_text(answer)}")
        return answer


def _whole_lines(text: str) -> str:
    return text[: text.rfind("\n") + 1]


def _error_text(answer: httpx.Response) -> str:
    try:
        data = answer.json()
    except ValueError:
        return f"{answer.status_code} {answer.text[:300]}"
    if isinstance(data, dict):
        return str(data.get("message") or data.get("detail") or data)[:1000]
    return str(data)[:1000]
