"""Control supervisord by XML-RPC over its unix socket: a call takes milliseconds, `supervisorctl` half a second."""

from __future__ import annotations

import http.client
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport


class SupervisorError(Exception):
    """supervisord refused a call; the text has the program's name and the reason."""


class Supervisor:
    """Running supervisord."""

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
        """Return program -> supervisord's state name (RUNNING, STARTING, STOPPED, BACKOFF, FATAL ...)."""
        return {program["name"]: program["statename"] for program in self._rpc.getAllProcessInfo()}

    def pids(self) -> dict[str, int]:
        """Return program -> process id; 0 for a program that does not run."""
        return {program["name"]: int(program["pid"]) for program in self._rpc.getAllProcessInfo()}

    def programs(self) -> list[dict[str, Any]]:
        """Return what supervisord knows of each program: name, statename, description, start and now (Unix times)."""
        return list(self._rpc.getAllProcessInfo())

    def start(self, name: str) -> None:
        """Start a program, unless it runs, without waiting for it. Raises SupervisorError."""
        _call_ignoring_fault(Faults.ALREADY_STARTED, name, lambda: self._rpc.startProcess(name, False))

    def stop(self, name: str) -> None:
        _call_ignoring_fault(Faults.NOT_RUNNING, name, lambda: self._rpc.stopProcess(name, True))

    def end(self, groups: Iterable[Collection[str]], timeout_s: float) -> None:
        """Stop the programs group by group, then supervisord, whose own shutdown takes a second for each program.

        Raises SupervisorError if a group does not end in time or supervisord ends first; supervisord has ended then,
        and programs may remain.
        """
        own = os.pidfd_open(self.pid())
        try:
            for group in groups:
                self._stop_together(group, own, timeout_s)
            self._rpc.shutdown()
            _wait_for_end("supervisord", own, timeout_s)
        except (OSError, http.client.HTTPException) as error:
            raise SupervisorError(f"supervisord does not answer ({error})") from error
        finally:
            if not select.select([own], [], [], 0)[0]:
                signal.pidfd_send_signal(own, signal.SIGKILL)
            os.close(own)

    def _stop_together(self, names: Collection[str], own: int, timeout_s: float) -> None:
        ends: dict[str, int] = {}
        try:
            for program in self._rpc.getAllProcessInfo():
                if program["name"] in names and (end := _open_pidfd(program["pid"])) is not None:
                    ends[program["name"]] = end
            for name in names:
                _call_ignoring_fault(Faults.NOT_RUNNING, name, partial(self._rpc.stopProcess, name, False))
            deadline = time.monotonic() + timeout_s
            for name, end in ends.items():
                _wait_for_end(
                    name, end, deadline - time.monotonic(), own
                )  # supervisord kills a program that ignores SIGTERM
        finally:
            for end in ends.values():
                os.close(end)

    def reload(self) -> None:
        """Apply changes of the configuration file; a changed program is stopped but not started again."""
        added, changed, removed = self._rpc.reloadConfig()[0]
        for name in [*changed, *removed]:
            self.stop(name)
            self._rpc.removeProcessGroup(name)
        for name in [*added, *changed]:
            self._rpc.addProcessGroup(name)


def _open_pidfd(pid: int) -> int | None:
    """Return a pidfd, readable once the process has ended; None if there is no such process."""
    try:
        return os.pidfd_open(pid) if pid else None
    except ProcessLookupError:
        return None


def _wait_for_end(name: str, end: int, timeout_s: float, supervisord: int | None = None) -> None:
    watched = [end] if supervisord is None else [end, supervisord]
    ended = select.select(watched, [], [], max(timeout_s, 0))[0]
    if end not in ended:
        raise SupervisorError("supervisord has been killed" if ended else f"{name} does not end")


def _call_ignoring_fault(fault: int, name: str, call: Callable[[], object]) -> None:
    try:
        call()
    except Fault as error:
        if error.faultCode != fault:
            raise SupervisorError(f"{name}: {error.faultString}") from error
