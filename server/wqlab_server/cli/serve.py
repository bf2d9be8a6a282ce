"""Serve the API with uvicorn, and restart it when its code changes."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SHUTDOWN_TIMEOUT_S = 3
"""How long open event and console streams may delay the shutdown; their clients resume where they were."""
_STOP_TIMEOUT_S = 1
"""A process that still runs so long after SIGTERM is killed before a reload; clients repeat their requests."""


def serve(listen: dict[str, Any]) -> None:
    """Serve until a signal stops the process. `listen`: uvicorn's options for address and TLS."""
    import uvicorn

    from wqlab_contracts import logs

    from ..app import create_app

    logs.configure()
    uvicorn.run(
        create_app(),
        **listen,
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        proxy_headers=is_behind_proxy(os.environ),
    )


def is_behind_proxy(environment: Mapping[str, str]) -> bool:
    """Return True if the operator names a proxy (`FORWARDED_ALLOW_IPS`).

    uvicorn would otherwise let every program on this machine name any client in X-Forwarded-For, and so pass the limits
    of requests and sign-ins for each address.
    """
    return bool(environment.get("FORWARDED_ALLOW_IPS", "").strip(" ,"))


def serve_with_reload(listen: dict[str, Any], folders: Sequence[Path]) -> None:
    """Serve, and restart at each change of a Python file in `folders`.

    Importing libraries takes two thirds of a start. This process imports them once and forks the server, which imports
    only the project's own modules. An error in those ends the server; the next change starts it again.
    """
    import watchfiles

    importlib.import_module("wqlab_server.app")
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    fork = multiprocessing.get_context("fork")
    server = fork.Process(target=_serve_changed_code, args=(listen,))
    server.start()
    try:
        python = watchfiles.PythonFilter()
        for _ in watchfiles.watch(*folders, watch_filter=python, stop_event=stopped, raise_interrupt=False):
            _stop(server)
            server = fork.Process(target=_serve_changed_code, args=(listen,))
            server.start()
    finally:
        _stop(server)


def _serve_changed_code(listen: dict[str, Any]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for name in [name for name in sys.modules if name.startswith("wqlab_")]:
        del sys.modules[name]
    importlib.import_module("wqlab_server.cli.serve").serve(listen)


def _stop(server: multiprocessing.process.BaseProcess) -> None:
    server.terminate()
    server.join(_STOP_TIMEOUT_S)
    server.kill()
    server.join()
