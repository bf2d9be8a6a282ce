"""Errors of the client, each with the exit code of the command that it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wqlab_contracts.enums import ExitCode

if TYPE_CHECKING:
    from wqlab_contracts.api.base import Problem


class WqlabError(Exception):
    """Base class of the errors that this package raises.

    `summary` names what is wrong, `fix` says what to do about it.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, summary: str, fix: str = "") -> None:
        super().__init__(f"{summary}. {fix}" if fix else summary)
        self.summary = summary
        self.fix = fix


class UsageError(WqlabError):
    """The command line, an input file or the configuration is invalid."""


class RequestRefused(WqlabError):
    """The server understood the request and refused it: HTTP 4xx with its problem details (RFC 9457)."""

    def __init__(self, what: str, problem: Problem, fix: str = "") -> None:
        self.mistakes = [_mistake(entry) for entry in problem.errors]
        """One line for each invalid field: its location and what is wrong with it."""
        if len(self.mistakes) > 1:
            detail = f"the server refused the request: {len(self.mistakes)} mistakes"
        else:
            detail = self.mistakes[0] if self.mistakes else problem.detail or problem.title
        super().__init__(f"{what}: {detail}", fix)
        self.problem = problem

    @property
    def status(self) -> int:
        return self.problem.status


class LabUnavailable(WqlabError):
    """The server cannot be reached, is overloaded or failed. Nothing is known about the series."""

    exit_code = ExitCode.INFRASTRUCTURE


class StreamSilent(LabUnavailable):
    """An open stream carried no byte for longer than allowed: the connection is lost, or nothing happened."""


def _mistake(entry: dict[str, str]) -> str:
    where = entry.get("pointer") or entry.get("parameter") or ""
    what = entry.get("detail") or ", ".join(f"{key} {value}" for key, value in entry.items())
    return f"{where}: {what}" if where else what
