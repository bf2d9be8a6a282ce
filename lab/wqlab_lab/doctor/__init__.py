"""Examine a lab on this machine: `wqlab-lab doctor`. It changes nothing, and works whatever is broken."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from ..lifecycle import Lab
from . import machine, programs, work
from .checks import TIMEOUT_S, Check, Checks, State, Subject, as_json, as_text, collect, worst

CHECKS: Mapping[str, Checks] = {
    "permissions": machine.permissions,
    "disk": machine.space,
    "processes": programs.processes,
    "ports": programs.ports,
    "postgresql": programs.database,
    "redis": programs.broker,
    "api": programs.api,
    "tokens": programs.tokens,
    "certificate": programs.certificate,
    "mail": programs.mail,
    "labgrid": programs.labgrid,
    "tick": work.tick,
    "queue": work.queue,
    "leases": work.leases,
    "devices": work.devices,
    "golden systems": machine.golden_systems,
    "sandbox": machine.sandbox,
    "subordinate ids": machine.subordinate_ids,
    "logs": programs.logs,
}


def examine(lab: Lab) -> list[Check]:
    """Return the results of all checks, in the order in which an operator reads them."""
    subject = Subject(lab)
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_S)  # supervisord's client has no limit of its own
    try:
        with ThreadPoolExecutor(len(CHECKS)) as threads:  # they mostly wait for programs
            found = [threads.submit(collect, name, checks, subject) for name, checks in CHECKS.items()]
            return [check for future in found for check in future.result()]
    finally:
        socket.setdefaulttimeout(before)


def exit_status(checks: list[Check]) -> int:
    """Return 4 if a check failed or could not be made, else 0. Warnings do not count."""
    return 4 if worst(checks) in {State.FAILED, State.UNKNOWN} else 0


__all__ = ["CHECKS", "Check", "State", "as_json", "as_text", "examine", "exit_status", "worst"]
