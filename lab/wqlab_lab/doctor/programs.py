"""Checks of the lab's programs: processes, ports, stores, API, clocks, tokens, labgrid, and errors in the logs."""

from __future__ import annotations

import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from wqlab_contracts.mail import unreachable

from ..lifecycle import listens
from ..paths import LAB
from .checks import TIMEOUT_S, Check, State, Subject, Unchecked, run

RECENT_START_S = 60
"""A program that started later, in a lab that has run for longer than `SETTLED_S`, may be failing again and again."""
SETTLED_S = 300
CLOCK_LIMIT_S = 3.0
CERTIFICATE_WARNING = timedelta(days=14)
LOG_WINDOW = timedelta(minutes=10)
LOG_TAIL_BYTES = 1 << 20
START = "`make up` starts the lab"


def processes(subject: Subject) -> Iterator[Check]:
    """Check supervisord and each program."""
    paths = subject.paths
    supervisor = subject.lab.supervisor
    if not (paths.state / "postgres" / "PG_VERSION").exists():
        seen = f"{paths.state} holds no lab"
        yield Check("supervisord", State.FAILED, seen, f"set WQLAB_STATE to the lab's folder; {START}")
        return
    if not supervisor.answers():
        yield Check("supervisord", State.FAILED, "it does not answer, so the lab does not run", START)
        return
    yield Check("supervisord", State.OK, f"pid {supervisor.pid()}")
    if not subject.lab.complete():
        yield Check("start", State.WARNING, "the last start was not finished", "`make up` continues it")
    settled = time.time() - (paths.run / "supervisord.pid").stat().st_mtime > SETTLED_S
    for program in supervisor.programs():
        yield _process(subject, program, settled)


def _process(subject: Subject, program: dict[str, Any], settled: bool) -> Check:
    name = program["name"]
    log = subject.paths.log / f"{name}.log"
    seen = f"{program['statename']} {program['description']}".strip()
    if program["statename"] != "RUNNING":
        last = _last_line(log)
        state = State.WARNING if program["statename"] == "STARTING" else State.FAILED
        action = f"`{subject.control} start {name}`; if it exits again, the reason is in {log}"
        return Check(f"process {name}", state, f"{seen}; last line of its log: {last}" if last else seen, action)
    age = program["now"] - program["start"]
    if settled and age < RECENT_START_S:
        action = f"if you did not restart it, the reason is in {log}"
        return Check(f"process {name}", State.WARNING, f"started {age} s ago, later than the lab", action)
    return Check(f"process {name}", State.OK, seen)


def _last_line(log: Path) -> str:
    lines = _tail(log).strip().splitlines()
    return lines[-1][:200] if lines else ""


def ports(subject: Subject) -> Iterator[Check]:
    """Check that a program listens on each port of the lab."""
    found = {name: subject.port(name) for name in ("api", "coordinator", "api-tls", "redis-tls")}
    try:
        bench = json.loads(subject.paths.bench.read_text())
        found["bench"] = int(str(bench["http"]).rpartition(":")[2])
    except (OSError, ValueError, KeyError):
        found["bench"] = None
    programs = {"redis-tls": "redis"}
    for name, port in found.items():
        program = programs.get(name, name)
        if port is None:
            if name.endswith("-tls"):
                continue  # only a lab with WQLAB_SERVE has it
            yield Check(f"port {name}", State.FAILED, "no port is chosen: the program was not started", START)
        elif listens(port):
            yield Check(f"port {name}", State.OK, f"127.0.0.1:{port}")
        else:
            action = f"`{subject.control} restart {program}`"
            yield Check(f"port {name}", State.FAILED, f"nothing listens on 127.0.0.1:{port}", action)


def database(subject: Subject) -> Iterator[Check]:
    """Check that PostgreSQL answers, the revision of the schema, and the clock."""
    action = f"its log: {subject.paths.log}/postgres.log; `{subject.control} restart postgres`"
    try:
        before = time.time()
        [row] = subject.query("SELECT version(), extract(epoch FROM clock_timestamp())::float8 AS at")
        after = time.time()
    except Unchecked as error:
        yield Check("postgresql", State.FAILED, str(error), action)
        yield Check("schema", State.UNKNOWN, "it is in PostgreSQL", "repair PostgreSQL, then run this again")
        return
    yield Check("postgresql", State.OK, row["version"].partition(" on ")[0])
    yield _clock("clock of the database", row["at"], before, after)
    done = run(["wqlab-server", "revisions"], subject.paths.environment())
    known = done.stdout.split()
    if done.returncode or not known:
        raise Unchecked(f"`wqlab-server revisions` failed: {done.stderr.strip()[-200:]}")
    found = sorted(row["version_num"] for row in subject.query("SELECT version_num FROM alembic_version"))
    if found == [known[0]]:
        yield Check("schema", State.OK, f"revision {known[0]}")
    elif set(found) <= set(known):
        yield Check("schema", State.FAILED, f"revision {found}, this version needs {known[0]}", "`make restart`")
    else:
        action = "run the version that wrote it; or restore a backup"
        yield Check("schema", State.FAILED, f"revision {found} is of another version", action)


def _clock(name: str, at: float, before: float, after: float, resolution_s: float = 0.0) -> Check:
    """Compare a clock that was read between two times of this process."""
    skew = max(before - at - resolution_s, at - after, 0.0)
    if skew <= CLOCK_LIMIT_S:
        return Check(name, State.OK, "agrees with this machine's")
    return Check(name, State.FAILED, f"differs by {skew:.0f} s", "synchronize the clocks: `timedatectl set-ntp true`")


def broker(subject: Subject) -> Iterator[Check]:
    """Check that Redis answers."""
    password = subject.paths.keys / "redis.password"
    environment = subject.paths.environment()
    if password.exists():
        environment["REDISCLI_AUTH"] = password.read_text()
    socket = str(subject.paths.run / "redis.sock")
    done = run(["redis-cli", "-s", socket, "--no-auth-warning", "ping"], environment)
    answer = done.stdout.strip()
    if answer == "PONG" or answer.endswith("\nPONG"):
        yield Check("redis", State.OK, "answers")
        return
    action = f"its log: {subject.paths.log}/redis.log; `{subject.control} restart redis`"
    yield Check("redis", State.FAILED, (answer or done.stderr.strip() or "no answer")[:200], action)


def api(subject: Subject) -> Iterator[Check]:
    """Check the API: that it answers, each part that it needs, and its clock."""
    log = subject.paths.log / "api.log"
    action = f"its log: {log}; `{subject.control} restart api`"
    before = time.time()
    try:
        ready = subject.request("/readyz")
    except Unchecked as error:
        yield Check("api", State.FAILED, str(error), action)
        return
    after = time.time()
    try:
        parts: dict[str, dict[str, Any]] = ready.json()["checks"]
    except (ValueError, KeyError, TypeError):
        yield Check("api", State.FAILED, f"/readyz answers {ready.status_code} and no list of parts", action)
        return
    broken = {name: part for name, part in parts.items() if not part["ok"]}
    seen = f"answers at port {subject.port('api')}" + (f", not ready: {', '.join(broken)}" if broken else ", ready")
    yield Check("api", State.FAILED if broken else State.OK, seen, "repair the parts listed below" if broken else "")
    for name, part in parts.items():
        problems = [part["detail"], *part["problems"]]
        if not part["ok"] or part["problems"]:
            state = State.WARNING if part["ok"] else State.FAILED
            yield Check(f"api: {name}", state, "; ".join(filter(None, problems)), f"details: {log}")
    if date := ready.headers.get("date"):
        at = parsedate_to_datetime(date).timestamp()
        yield _clock("clock of the API", at, before, after, resolution_s=1.0)


def tokens(subject: Subject) -> Iterator[Check]:
    """Check that the API accepts the tokens in the state folder."""
    paths = subject.paths
    for name in dict.fromkeys(["worker", "admin", *(file.stem for file in sorted(paths.keys.glob("*.token")))]):
        file = paths.keys / f"{name}.token"
        renew = f"`rm {file} && make restart` makes a new one"
        try:
            secret = file.read_text().strip()
        except FileNotFoundError:
            yield Check(f"token {name}", State.FAILED, f"{file} is missing", "`make restart` makes a new one")
            continue
        except OSError as error:
            yield Check(f"token {name}", State.FAILED, f"{file}: {error.strerror}", f"chmod 600 {file}")
            continue
        try:
            path = f"/api/worker/v1/labs/{LAB}/leases" if name == "worker" else "/api/v1/session"
            answer = subject.request(path, secret)
        except Unchecked as error:
            yield Check(f"token {name}", State.UNKNOWN, str(error), "repair the API, then run this again")
            continue
        if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            yield Check(f"token {name}", State.FAILED, f"the API refuses it: {_detail(answer)}", renew)
        elif not answer.is_success:
            seen = f"the API answers {answer.status_code}: {_detail(answer)}"
            yield Check(f"token {name}", State.UNKNOWN, seen, "repair the API, then run this again")
        elif name == "worker" and subject.environment_of("devices").get("WQLAB_WORKER_TOKEN", secret) != secret:
            seen = "valid, but the workers were started with another one"
            yield Check(f"token {name}", State.WARNING, seen, "`make restart`")
        else:
            yield Check(f"token {name}", State.OK, "valid")


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase


def mail(subject: Subject) -> Iterator[Check]:
    """Check that the readers of the lab's mails can open the address in them."""
    environment = subject.environment_of("api")
    if not environment:
        raise Unchecked("the API does not run, and its environment says whether the lab sends mail")
    url = environment.get("WQLAB_PUBLIC_URL", "")
    if not environment.get("WQLAB_SMTP_HOST"):
        yield Check("mail", State.OK, "the lab sends none: WQLAB_SMTP_HOST is not set")
    elif not url or (reason := unreachable(url)):
        seen = f"no mail is sent: {reason if url else 'WQLAB_PUBLIC_URL is not set'}"
        yield Check("mail", State.FAILED, seen, "start the lab with WQLAB_PUBLIC_URL: `make restart`")
    else:
        yield Check("mail", State.OK, f"mails have links to {url}")


def certificate(subject: Subject) -> Iterator[Check]:
    """Check the certificate with which the API serves labs on other machines; nothing if it serves none."""
    port, served = subject.port("api-tls"), subject.environment_of("api-tls")
    if port is None:
        return
    host, ca = urlsplit(served.get("WQLAB_LAB_URL", "")).hostname, served.get("WQLAB_CA_FILE", "")
    if not host or not ca:
        raise Unchecked("the program api-tls does not run")
    renew = f"`lab/certificates.sh {host} {Path(ca).parent}`, then `make restart`"
    try:
        context = ssl.create_default_context(cafile=ca)
        with (
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection,
            context.wrap_socket(connection, server_hostname=host) as encrypted,
        ):
            ends_at = ssl.cert_time_to_seconds(str((encrypted.getpeercert() or {})["notAfter"]))
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        yield Check("certificate", State.FAILED, f"other machines refuse it: {reason}", renew)
        return
    ends = datetime.fromtimestamp(ends_at, UTC)
    late = ends - datetime.now(UTC) < CERTIFICATE_WARNING
    seen = f"valid for {host} until {ends:%Y-%m-%d}"
    yield Check("certificate", State.WARNING if late else State.OK, seen, renew if late else "")


def labgrid(subject: Subject) -> Iterator[Check]:
    """Check that the coordinator answers, and that the exporter offers each device of the bench."""
    port = subject.port("coordinator")
    if port is None:
        raise Unchecked("the coordinator has no port: the lab was never started")
    environment = {**subject.paths.environment(), "LG_COORDINATOR": f"127.0.0.1:{port}"}
    done = run(["labgrid-client", "resources"], environment)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1][:200]
        action = f"`{subject.control} restart coordinator exporter`"
        yield Check("labgrid coordinator", State.FAILED, f"127.0.0.1:{port}: {reason}", action)
        yield Check("labgrid exporter", State.UNKNOWN, "the coordinator knows", "repair the coordinator first")
        return
    yield Check("labgrid coordinator", State.OK, f"answers at 127.0.0.1:{port}")
    groups = {line.strip().split("/")[1] for line in done.stdout.splitlines() if line.strip().count("/") >= 2}
    try:
        wanted = set(json.loads(subject.paths.bench.read_text())["devices"])
    except (OSError, ValueError, KeyError) as error:
        raise Unchecked(f"{subject.paths.bench} cannot be read, so the bench has not started") from error
    missing = sorted(wanted - groups)
    if missing:
        action = f"`{subject.control} restart exporter`; its log: {subject.paths.log}/exporter.log"
        yield Check("labgrid exporter", State.FAILED, f"does not offer {', '.join(missing)}", action)
    else:
        yield Check("labgrid exporter", State.OK, f"offers {len(wanted)} devices")


# --- logs -------------------------------------------------------------------------------------------------------

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")
_LEVEL = re.compile(r"\b(ERROR|FATAL|PANIC|CRITICAL)\b|gave up:|not expected\)")

_START_AND_STOP = re.compile(
    r"the database system is (starting up|shutting down)|terminating connection due to administrator command"
)
"""PostgreSQL's words to clients while it starts and stops; it logs them as errors."""


def logs(subject: Subject) -> Iterator[Check]:
    """Report the errors of the last minutes in each program's log."""
    since = datetime.now(UTC) - LOG_WINDOW
    minutes = int(LOG_WINDOW.total_seconds() // 60)
    files = sorted(subject.paths.log.glob("*.log"))
    if not files:
        raise Unchecked(f"{subject.paths.log} has no logs")
    clean = 0
    for file in files:
        errors = [text for line in _tail(file).splitlines() if (text := recent_error(line, since))]
        if errors:
            seen = f"{len(errors)} in the last {minutes} minutes, the newest: {errors[-1][:300]}"
            yield Check(f"errors in {file.name}", State.WARNING, seen, f"read {file}")
        else:
            clean += 1
    yield Check("logs", State.OK, f"{clean} of {len(files)} logs have no error in the last {minutes} minutes")


def recent_error(line: str, since: datetime) -> str | None:
    """Return the message of a log line that reports an error after `since`, else None.

    Lines are those of structlog (JSON, also behind Celery's prefix), Celery, PostgreSQL and supervisord, all in UTC.
    """
    head, brace, rest = line.partition("{")
    if brace:
        try:
            record = json.loads(brace + rest)
            if "level" in record:
                serious = record["level"] in {"error", "critical"}
                text = " ".join(str(record[key]) for key in ("event", "what", "item", "error") if key in record)
                return text if serious and _is_after(str(record.get("timestamp", head)), since) else None
        except (ValueError, TypeError):
            pass
    reported = _LEVEL.search(line) and not _START_AND_STOP.search(line)
    return line if reported and _is_after(line, since) else None


def _is_after(text: str, since: datetime) -> bool:
    found = _TIME.search(text[:60])
    if found is None:
        return False
    return datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00") >= since


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(end - LOG_TAIL_BYTES, 0))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
