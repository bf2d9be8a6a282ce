"""The `wqlab-worker` command, for an operator's manual tasks. Celery starts the workers themselves."""

from __future__ import annotations

import json
import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import httpx
import typer
from kombu.exceptions import OperationalError

from . import protection, reaper, retention
from .backends.lava.lava_client import Lava, LavaError
from .claims import jobs
from .settings import settings
from .workspace import Workspace

app = typer.Typer(no_args_is_help=True, help=__doc__, add_completion=False)

_READY_TIMEOUT_S = 10.0


@app.command()
def reap() -> None:
    """Free the labgrid places of dead sessions now."""
    configured = settings()
    server = jobs.connect_server(configured)
    lab = configured.lab
    for item in reaper.reap(configured.coordinator, lab, lambda: server.leases(lab), lambda: server.power(lab)):
        typer.echo(f"{item.place}: released from {item.holder}")


@app.command()
def storage() -> None:
    """Delete now what retention would delete from this machine's cache and logs, and print what uses the rest."""
    keep, now = retention.Limits.from_environment(), datetime.now(UTC).timestamp()
    areas = [
        *retention.clean(Workspace.from_environment(), keep, now),
        *retention.clean_logs(Path(os.environ["WQLAB_STATE"]), keep.keep_days, now),
    ]
    typer.echo(json.dumps([area.model_dump(mode="json") for area in areas], indent=1))


@app.command()
def run(id: Annotated[int, typer.Argument(help="Id of a queued run.")]) -> None:
    """Claim and run one run in the foreground, without a broker."""
    jobs.process(id, settings())


@app.command()
def ready(queue: Annotated[str, typer.Argument(help="Queue of a worker on this machine, such as build.")]) -> None:
    """Check that the worker answers through the broker, and that the server and its LAVA, if it has one, are ready.

    The exit status is 1 if not, with the reason.
    """
    from .tasks import app as workers  # imports Celery

    configured = settings()
    try:
        if not workers.control.ping([f"{queue}@{socket.gethostname()}"], timeout=_READY_TIMEOUT_S):
            sys.exit(f"the worker of queue {queue} does not answer")
        address = f"{configured.server_url.rstrip('/')}/readyz"
        token = {"Authorization": f"Bearer {configured.worker_token.get_secret_value()}"}
        httpx.get(address, headers=token, timeout=_READY_TIMEOUT_S).raise_for_status()
        if configured.lava_url:
            Lava(configured.lava_url, configured.lava_token.get_secret_value()).version()
    except (OperationalError, httpx.HTTPError, LavaError) as error:
        sys.exit(f"the worker of queue {queue} cannot work: {error}")


@app.command()
def limits() -> None:
    """Show which limits on submitted code the kernel enforces here. The exit status is 1 if jobs are refused."""
    found = protection.find_protection()
    typer.echo(f"files: {found.files}: {found.files_reason}")
    typer.echo(f"memory: {found.memory}: {found.memory_reason}")
    typer.echo(f"system calls: {'filtered' if found.filtered else 'not filtered on this architecture'}")
    raise typer.Exit(1 if found.files == "refused" else 0)


def main() -> None:
    app()
