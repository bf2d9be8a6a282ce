"""Results of checks, and what the checks share: queries of the database and requests to the API, each with a limit."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from ..lifecycle import Lab
from ..services import POSTGRES_BIN

TIMEOUT_S = 10.0
"""Limit of one query or request, so that a hung part does not stop the others' checks."""
PROGRAM_TIMEOUT_S = 30.0
"""Limit of one program. Several start at once, which has taken more than ten seconds on a busy machine."""


class State(StrEnum):
    """Result of a check, the worst last."""

    OK = "ok"
    WARNING = "warning"
    """The lab works, but something needs attention."""
    UNKNOWN = "unknown"
    """It could not be checked, so nothing is known."""
    FAILED = "failed"


@dataclass(frozen=True)
class Check:
    """Result of one check."""

    name: str
    state: State
    seen: str
    action: str = ""
    """What to do; empty if nothing is to be done."""


class Unchecked(Exception):
    """Something could not be checked; the text says why."""


Checks = Callable[["Subject"], Iterable[Check]]


def collect(name: str, checks: Checks, subject: Subject) -> list[Check]:
    """Return the results of `checks`; if they cannot be completed, the last one is `name` with the state unknown."""
    found: list[Check] = []
    try:
        found.extend(checks(subject))
    except Unchecked as error:
        found.append(Check(name, State.UNKNOWN, str(error), "repair what is listed as failed, then run this again"))
    except Exception as error:  # whatever is broken, the other checks must run
        reason = f"the check itself failed: {type(error).__name__}: {error}"
        found.append(Check(name, State.UNKNOWN, reason, "check this by hand, and report the message as a defect"))
    return found


def worst(checks: Iterable[Check]) -> State:
    """Return the worst state of the checks; unknown if there is none."""
    order = list(State)
    return max((check.state for check in checks), key=order.index, default=State.UNKNOWN)


def as_json(checks: list[Check]) -> str:
    """Return the checks as a JSON document: `state`, the worst one, and `checks`."""
    return json.dumps({"state": worst(checks), "checks": [asdict(check) for check in checks]}, indent=1)


def as_text(checks: list[Check]) -> str:
    """Return a line for each check, with the action below it, and a summary."""
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        lines.append(f"{check.state:8} {check.name:{width}}  {check.seen}".rstrip())
        if check.action:
            lines.append(f"{'':8} {'':{width}}  -> {check.action}")
    counts = {state: sum(check.state is state for check in checks) for state in reversed(State)}
    lines.append(", ".join(f"{count} {state}" for state, count in counts.items() if count))
    return "\n".join(lines)


class Subject:
    """The lab that is examined. Checks in several threads share it; what does not answer is not asked again."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.paths = lab.paths
        self._database_problem: str | None = None

    @property
    def control(self) -> str:
        """Return the command that starts, stops and restarts the lab's programs."""
        return f"{Path(sys.executable).parent}/supervisorctl -c {self.lab.config}"

    def environment_of(self, program: str) -> dict[str, str]:
        """Return the environment with which a program runs; empty if it does not run."""
        try:
            pid = self.lab.supervisor.pids().get(program, 0)
            content = Path(f"/proc/{pid}/environ").read_bytes() if pid else b""
        except (OSError, http.client.HTTPException):
            return {}
        entries = [entry.partition("=") for entry in content.decode(errors="replace").split("\0") if "=" in entry]
        return {name: value for name, _, value in entries}

    def port(self, service: str) -> int | None:
        """Return the port of a service from its file; None if it was never chosen."""
        try:
            return int((self.paths.run / f"{service}.port").read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise Unchecked(f"{self.paths.run}/{service}.port is damaged: remove it and run `make restart`") from error

    def query(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows of an SQL query. Raises Unchecked if PostgreSQL does not answer or refuses it."""
        if self._database_problem is not None:
            raise Unchecked(self._database_problem)
        wrapped = f"SELECT coalesce(json_agg(t), '[]') FROM ({statement}) t"  # noqa: S608 - statements are constants
        command = [str(POSTGRES_BIN / "psql"), "-h", str(self.paths.run), "-d", "wqlab", "-XAtqc", wrapped]
        limits = {"PGCONNECT_TIMEOUT": "5", "PGOPTIONS": "-c statement_timeout=5000"}
        try:
            done = run(command, {**os.environ, **limits})
        except Unchecked as error:
            self._database_problem = "PostgreSQL does not answer"
            raise Unchecked(self._database_problem) from error
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["psql failed"])[0].removeprefix("psql: error: ")
            if done.returncode == 2:  # no connection
                self._database_problem = "PostgreSQL does not answer"
            raise Unchecked(f"PostgreSQL: {reason}")
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows

    def request(self, path: str, token: str | None = None) -> httpx.Response:
        """Return the API's answer. Raises Unchecked if there is none."""
        answer = self._answers.get((path, token))
        if answer is None:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = self._send(path, headers)
            self._answers[path, token] = answer
        if isinstance(answer, str):
            raise Unchecked(answer)
        return answer

    @cached_property
    def _answers(self) -> dict[tuple[str, str | None], httpx.Response | str]:
        return {}

    def _send(self, path: str, headers: Mapping[str, str]) -> httpx.Response | str:
        port = self.port("api")
        if port is None:
            return "the API has no port: the lab was never started"
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_S, trust_env=False) as api:
                return api.get(path, headers=headers)
        except httpx.HTTPError as error:
            return f"the API on port {port} does not answer ({error or type(error).__name__})"


def run(command: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program with a limit on its time. Raises Unchecked if it is missing or takes longer."""
    try:
        return subprocess.run(
            command, env=dict(environment), text=True, capture_output=True, check=False, timeout=PROGRAM_TIMEOUT_S
        )
    except FileNotFoundError as error:
        raise Unchecked(f"{command[0]} is not installed: run `make setup`") from error
    except subprocess.TimeoutExpired as error:
        raise Unchecked(f"{command[0]} did not end within {PROGRAM_TIMEOUT_S:.0f} s") from error
