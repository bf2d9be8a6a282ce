"""Run a lab whose programs restart when their code changes, and Vite's development server for its pages."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace

from . import web
from .services import Service

_CODE = {
    "api": ("contracts", "comparison", "server"),
    "server": ("contracts", "comparison", "server"),
    "outbox": ("contracts", "comparison", "server"),
    "apply": ("contracts", "worker"),
    "build": ("contracts", "worker"),
    "lookups": ("contracts", "worker"),
    "lists": ("contracts", "worker"),
    "devices": ("contracts", "worker"),
}
"""Program -> folders of the checkout whose Python files it runs."""
_STOP_TIMEOUT_S = 5
"""A worker that still runs so long after SIGINT is killed; an interrupted run is queued again."""


def reloading(services: list[Service]) -> list[Service]:
    """Return the services with those that run the project's code restarted at each change of it."""
    return [_reloading(service) if service.name in _CODE else service for service in services]


def _reloading(service: Service) -> Service:
    folders = [str(web.CHECKOUT / folder) for folder in _CODE[service.name]]
    if service.name == "api":  # reloads itself, faster than a new process starts
        options = [word for folder in folders for word in ("--reload", folder)]
        return replace(service, command=[*service.command, *options])
    command = [
        sys.executable, "-m", "watchfiles", "--filter", "python", "--target-type", "command",
        "--sigint-timeout", str(_STOP_TIMEOUT_S), shlex.join(service.command), *folders,
    ]  # fmt: skip
    return replace(service, command=command)


def serve_pages(url: str) -> int:
    """Run Vite's development server until it is interrupted; it forwards API requests to `url`.

    Return its exit status, 0 if it was interrupted. Raises WebError if web/node_modules is missing.
    """
    folder = web.CHECKOUT / "web"
    vite = folder / "node_modules" / "vite" / "bin" / "vite.js"
    if not vite.exists():
        raise web.WebError("web/node_modules is missing; `make web-packages` makes it")
    environment = {**os.environ, "WQLAB_URL": url}
    command = [str(web.node()), str(vite), "--host", "127.0.0.1", "--clearScreen", "false"]
    status = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    return 0 if status == -signal.SIGINT else status
