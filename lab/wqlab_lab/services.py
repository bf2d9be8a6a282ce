"""Define the lab's programs and the supervisord configuration that runs them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wqlab_contracts.addresses_file import read_addresses

from .errors import LabError
from .paths import LAB, LAVA_LAB, LabPaths

LAVA_CAPACITY = 4
"""LAVA runs at once. They mostly wait for LAVA, which schedules its devices itself."""
STOP_FIRST = {"devices", "lava", "apply", "build", "lookups", "lists", "server", "outbox", "beat"}
"""Programs that are stopped first, because they report their progress to the others."""
START_RETRIES = 1_000_000
"""Failed starts in a row before supervisord gives a program up. It waits a second longer after each of them. A program
that cannot start while a disk is full must come back when there is space again."""
POSTGRES_BIN = Path("/usr/lib/postgresql/15/bin")


@dataclass(frozen=True)
class Service:
    """Program that supervisord runs."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    directory: Path
    stop_signal: str = "TERM"
    stop_wait_s: int = 20
    summary: str = field(default="", compare=False)


def services(paths: LabPaths, capacity: int) -> list[Service]:
    """Return the programs in start order, without the stores. `capacity`: devices that run at once."""
    run, state = paths.run, paths.state
    server, worker = paths.server_environment(), paths.worker_environment()
    coordinator = f"127.0.0.1:{paths.port('coordinator')}"

    def celery(app: str, queue: str, concurrency: int, *more: str) -> list[str]:
        return [
            "celery", "-A", app, "worker", "-Q", queue, "-n", f"{queue}@%h", "-c", str(concurrency),
            "-l", "INFO", "--without-mingle", "--without-gossip", *more,
        ]  # fmt: skip

    found = [
        *_rehearsal_services(paths),
        Service(
            "api",
            ["wqlab-server", "api", "--host", "127.0.0.1", "--port", str(paths.port("api"))],
            server,
            state,
            summary="REST API",
        ),
        Service(
            "bench",
            ["wqlab-bench", "serve", "--golden", str(paths.golden), "--host", "127.0.0.1"],
            worker,
            state,
            summary="virtual bench",
        ),
        # A coordinator that is killed loses the places of its last 15 seconds, so each start registers them again.
        Service(
            "coordinator",
            ["sh", "-c", f"wqlab-bench places & exec labgrid-coordinator -l {coordinator}"],
            worker,
            state / "labgrid",
            summary="labgrid",
        ),
        Service(
            "exporter",
            ["labgrid-exporter", "-c", coordinator, "-n", LAB, "--hostname", "127.0.0.1", "exporter.yaml"],
            {**worker, **_addresses(paths)},
            state / "labgrid",
            summary="labgrid",
        ),
        Service("server", celery("wqlab_server.tasks", "server", 1), server, state, summary="pipeline"),
        Service(
            "beat",
            ["celery", "-A", "wqlab_server.tasks", "beat", "-s", str(run / "beat"), "-l", "WARNING", "--pidfile="],
            server,
            state,
            summary="tick",
        ),
        # One process with threads saves memory; a delivery mostly waits for its receiver.
        Service(
            "outbox",
            celery("wqlab_server.tasks", "outbox", 4, "--pool=threads"),
            server,
            state,
            summary="webhooks and mail",
        ),
        Service("build", celery("wqlab_worker.tasks", "build", 1), worker, state, summary="build worker"),
        Service("apply", celery("wqlab_worker.tasks", "apply", 1), worker, state, summary="series and base kernels"),
        # One process (pool `solo`) saves memory; its tasks take only seconds.
        Service(
            "lookups", celery("wqlab_worker.tasks", "lookup", 1, "--pool=solo"), worker, state, summary="branch lookups"
        ),
        Service("lists", celery("wqlab_worker.tasks", "lists", 1), worker, state, summary="mailing lists"),
        Service("devices", celery("wqlab_worker.tasks", f"lab.{LAB}", capacity), worker, state, summary="lab worker"),
        *_remote_lab_services(paths),
    ]
    if lava := paths.lava_environment():
        found.append(
            Service(
                "lava",
                celery("wqlab_worker.tasks", f"lab.{LAVA_LAB}", LAVA_CAPACITY),
                {**worker, "WQLAB_LAB": LAVA_LAB, **lava},
                state,
                summary="LAVA lab's worker",
            )
        )
    return found


def _addresses(paths: LabPaths) -> dict[str, str]:
    """Return the addresses of hardware, which files of labgrid's exporter take from its environment.

    Raises LabError if the file has mistakes.
    """
    values, problems = read_addresses(paths.addresses.parent)
    if problems:
        raise LabError("\n".join(str(problem) for problem in problems))
    return values


def _rehearsal_services(paths: LabPaths) -> list[Service]:
    """Return the daemons of rehearsal machines: BMC, console server, network. They start QEMU, and need no secrets."""
    if not paths.rehearsal_programs.exists():
        return []
    programs = json.loads(paths.rehearsal_programs.read_text())["programs"]
    return [
        Service(each["name"], each["command"], paths.daemon_environment(), paths.rehearsal, summary=each["summary"])
        for each in programs
    ]


def _remote_lab_services(paths: LabPaths) -> list[Service]:
    """Return a second API process for labs on other machines, with HTTPS and on all addresses."""
    if paths.serving is None:
        return []
    tls = ["--tls-cert", str(paths.serving.tls / "server.crt"), "--tls-key", str(paths.serving.tls / "server.key")]
    command = ["wqlab-server", "api", "--host", "0.0.0.0", "--port", str(paths.port("api-tls")), *tls]  # noqa: S104
    return [Service("api-tls", command, paths.remote_server_environment(), paths.state, summary="REST API for labs")]


def _redis_tls_options(paths: LabPaths) -> list[str]:
    if paths.serving is None:
        return []
    password = paths.run / "redis.conf"  # a command line would be readable by every user
    password.touch(mode=0o600)
    password.write_text(f"requirepass {paths.broker_password()}\n")
    tls = paths.serving.tls
    return [
        str(password), "--tls-port", str(paths.port("redis-tls")), "--tls-auth-clients", "no",
        "--tls-cert-file", str(tls / "server.crt"), "--tls-key-file", str(tls / "server.key"),
        "--tls-ca-cert-file", str(tls / "ca.crt"),
    ]  # fmt: skip


def stores(paths: LabPaths) -> list[Service]:
    """Return PostgreSQL and Redis, which are reachable only through sockets in the state folder."""
    environment = paths.environment()
    return [
        Service(
            "postgres",
            [str(POSTGRES_BIN / "postgres"), "-D", str(paths.state / "postgres"), "-k", str(paths.run), "-h", ""],
            environment,
            paths.state,
            stop_signal="INT",
        ),
        Service(
            "redis",
            [
                str(paths.run / "redis-server"), *_redis_tls_options(paths),
                "--port", "0", "--unixsocket", str(paths.run / "redis.sock"),
                "--unixsocketperm", "700", "--dir", str(paths.state / "redis"), "--save", "", "--appendonly", "no",
            ],
            environment,
            paths.state,
        ),
    ]  # fmt: skip


def supervisor_config(paths: LabPaths, programs: list[Service]) -> str:
    """Return the text of supervisord.conf: no program starts automatically, each is restarted when it exits."""
    sections = [
        f"""[supervisord]
logfile={paths.log}/supervisord.log
pidfile={paths.run}/supervisord.pid
childlogdir={paths.log}
nodaemon=false

[unix_http_server]
file={paths.run}/supervisor.sock
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl=unix://{_escape_percent(str(paths.run))}/supervisor.sock
"""
    ]
    for program in programs:
        command = shlex.join(program.command)
        environment = ",".join(f'{name}="{_escape_percent(value)}"' for name, value in program.environment.items())
        sections.append(
            f"""[program:{program.name}]
command={_escape_percent(command)}
directory={_escape_percent(str(program.directory))}
environment={environment}
autostart=false
autorestart=true
startsecs=1
startretries={START_RETRIES}
stopsignal={program.stop_signal}
stopwaitsecs={program.stop_wait_s}
stopasgroup={"false" if program.name == "postgres" else "true"}
killasgroup=true
redirect_stderr=true
stdout_logfile={paths.log}/{program.name}.log
stdout_logfile_maxbytes=20MB
stdout_logfile_backups=1
"""
        )
    return "\n".join(sections)


def _escape_percent(text: str) -> str:
    return text.replace("%", "%%")
