"""supervisord's XML-RPC interface, over its unix socket: a call costs milliseconds, a `supervisorctl` half a second."""

from __future__ import annotations

import http.client
import os
import select
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport


class SupervisorError(Exception):
    """supervisord refused a call; the text has the program's name and the reason."""


class Supervisor:
    def __init__(self, socket: Path) -> None:
        self._socket = socket

    @property
    def _rpc(self) -> Any:
        transport = SupervisorTransport(None, None, f"unix://{self._socket}")
        return ServerProxy("http://127.0.0.1", transport=transport).supervisor

    def answers(self) -> bool:
        try:
            return bool(self._rpc.getState()["statename"] == "RUNNING")
        except (OSError, http.client.HTTPException):
            return False

    def pid(self) -> int:
        return int(self._rpc.getPID())

    def states(self) -> dict[str, str]:
        """Program -> supervisord's state name (RUNNING, STARTING, STOPPED, BACKOFF, FATAL ...)."""
        return {program["name"]: program["statename"] for program in self._rpc.getAllProcessInfo()}

    def start(self, name: str) -> None:
        """Starts a program without waiting for it; one that runs already is left alone."""
        _allowing(Faults.ALREADY_STARTED, name, lambda: self._rpc.startProcess(name, False))

    def stop(self, name: str) -> None:
        _allowing(Faults.NOT_RUNNING, name, lambda: self._rpc.stopProcess(name, True))

    def stop_together(self, names: Collection[str]) -> None:
        """Returns when all have ended. supervisord's own shutdown ends them one after the other, a second each."""
        known = [program for program in self._rpc.getAllProcessInfo() if program["name"] in names]
        ends = [end for program in known if (end := _end_of(program["pid"])) is not None]
        try:
            for program in known:
                name = program["name"]
                _allowing(Faults.NOT_RUNNING, name, partial(self._rpc.stopProcess, name, False))
            for end in ends:
                select.select([end], [], [])  # supervisord kills what does not end by itself
        finally:
            for end in ends:
                os.close(end)

    def reload(self) -> None:
        """Takes over what changed in the configuration file; a changed program is stopped, not started again."""
        added, changed, removed = self._rpc.reloadConfig()[0]
        for name in [*changed, *removed]:
            self.stop(name)
            self._rpc.removeProcessGroup(name)
        for name in [*added, *changed]:
            self._rpc.addProcessGroup(name)

    def shutdown(self) -> None:
        self._rpc.shutdown()


def _end_of(pid: int) -> int | None:
    """Readable once the process has ended; None when it has, or never was."""
    try:
        return os.pidfd_open(pid) if pid else None
    except ProcessLookupError:
        return None


def _allowing(fault: int, name: str, call: Callable[[], object]) -> None:
    try:
        call()
    except Fault as error:
        if error.faultCode != fault:
            raise SupervisorError(f"{name}: {error.faultString}") from error
