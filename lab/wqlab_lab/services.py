"""The lab's processes, as supervisord runs them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .paths import LAB, LAVA_LAB, Layout

LAVA_RUNS = 4
"""At once. They wait for LAVA nearly all the time; LAVA knows itself how many devices it has."""
END_FIRST = {"devices", "lava", "build", "lookups", "server", "beat"}
"""They tell the others how far they came."""
POSTGRES_BIN = Path("/usr/lib/postgresql/15/bin")


@dataclass(frozen=True)
class Service:
    name: str
    command: list[str]
    environment: Mapping[str, str]
    directory: Path
    stop_signal: str = "TERM"
    stop_wait_s: int = 20
    summary: str = field(default="", compare=False)


def services(layout: Layout, capacity: int) -> list[Service]:
    """Every process in the order it is started. `capacity`: devices that run at once."""
    run, state = layout.run, layout.state
    server, worker = layout.server_environment(), layout.worker_environment()
    coordinator = f"127.0.0.1:{layout.port('coordinator')}"

    def celery(app: str, queue: str, concurrency: int, *more: str) -> list[str]:
        return [
            "celery", "-A", app, "worker", "-Q", queue, "-n", f"{queue}@%h", "-c", str(concurrency),
            "-l", "INFO", "--without-mingle", "--without-gossip", *more,
        ]  # fmt: skip

    found = [
        Service(
            "api",
            ["wqlab-server", "api", "--host", "127.0.0.1", "--port", str(layout.port("api"))],
            server,
            state,
            summary="REST API",
        ),
        Service(
            "bench", ["wqlab-bench", "serve", "--golden", str(layout.golden)], worker, state, summary="virtual bench"
        ),
        Service(
            "coordinator", ["labgrid-coordinator", "-l", coordinator], worker, state / "labgrid", summary="labgrid"
        ),
        Service(
            "exporter",
            ["labgrid-exporter", "-c", coordinator, "-n", LAB, "--hostname", "127.0.0.1", "exporter.yaml"],
            worker,
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
        Service("build", celery("wqlab_worker.tasks", "build", 1), worker, state, summary="build worker"),
        # In its one process: its tasks take seconds, and there is no second one to keep in memory.
        Service(
            "lookups", celery("wqlab_worker.tasks", "lookup", 1, "--pool=solo"), worker, state, summary="branch lookups"
        ),
        Service("devices", celery("wqlab_worker.tasks", f"lab.{LAB}", capacity), worker, state, summary="lab worker"),
        *_for_labs_elsewhere(layout),
    ]
    if lava := layout.lava_environment():
        found.append(
            Service(
                "lava",
                celery("wqlab_worker.tasks", f"lab.{LAVA_LAB}", LAVA_RUNS),
                {**worker, "WQLAB_LAB": LAVA_LAB, **lava},
                state,
                summary="LAVA lab's worker",
            )
        )
    return found


def _for_labs_elsewhere(layout: Layout) -> list[Service]:
    """The same API once more, by HTTPS and from everywhere."""
    if layout.serving is None:
        return []
    tls = ["--tls-cert", str(layout.serving.tls / "server.crt"), "--tls-key", str(layout.serving.tls / "server.key")]
    command = ["wqlab-server", "api", "--host", "0.0.0.0", "--port", str(layout.port("api-tls")), *tls]  # noqa: S104
    return [Service("api-tls", command, layout.server_environment(), layout.state, summary="REST API for labs")]


def _redis_for_labs_elsewhere(layout: Layout) -> list[str]:
    if layout.serving is None:
        return []
    password = layout.run / "redis.conf"  # not on the command line, which everybody can read
    password.touch(mode=0o600)
    password.write_text(f"requirepass {layout.broker_password()}\n")
    tls = layout.serving.tls
    return [
        str(password), "--tls-port", str(layout.port("redis-tls")), "--tls-auth-clients", "no",
        "--tls-cert-file", str(tls / "server.crt"), "--tls-key-file", str(tls / "server.key"),
        "--tls-ca-cert-file", str(tls / "ca.crt"),
    ]  # fmt: skip


def stores(layout: Layout) -> list[Service]:
    """PostgreSQL and Redis, reachable through sockets in the state folder only."""
    environment = layout.environment()
    return [
        Service(
            "postgres",
            [str(POSTGRES_BIN / "postgres"), "-D", str(layout.state / "postgres"), "-k", str(layout.run), "-h", ""],
            environment,
            layout.state,
            stop_signal="INT",
        ),
        Service(
            "redis",
            [
                str(layout.run / "redis-server"), *_redis_for_labs_elsewhere(layout),
                "--port", "0", "--unixsocket", str(layout.run / "redis.sock"),
                "--unixsocketperm", "700", "--dir", str(layout.state / "redis"), "--save", "", "--appendonly", "no",
            ],
            environment,
            layout.state,
        ),
    ]  # fmt: skip


def supervisor_config(layout: Layout, programs: list[Service]) -> str:
    """supervisord.conf: nothing starts by itself, everything is restarted when it dies."""
    sections = [
        f"""[supervisord]
logfile={layout.log}/supervisord.log
pidfile={layout.run}/supervisord.pid
childlogdir={layout.log}
nodaemon=false

[unix_http_server]
file={layout.run}/supervisor.sock
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl=unix://{_escaped(str(layout.run))}/supervisor.sock
"""
    ]
    for program in programs:
        command = shlex.join(program.command)
        environment = ",".join(f'{name}="{_escaped(value)}"' for name, value in program.environment.items())
        sections.append(
            f"""[program:{program.name}]
command={_escaped(command)}
directory={_escaped(str(program.directory))}
environment={environment}
autostart=false
autorestart=true
startsecs=1
stopsignal={program.stop_signal}
stopwaitsecs={program.stop_wait_s}
stopasgroup={"false" if program.name == "postgres" else "true"}
killasgroup=true
redirect_stderr=true
stdout_logfile={layout.log}/{program.name}.log
stdout_logfile_maxbytes=20MB
stdout_logfile_backups=1
"""
        )
    return "\n".join(sections)


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
