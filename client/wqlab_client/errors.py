"""What can go wrong between a user and a lab, each with the exit code it ends a command with."""

from __future__ import annotations

from wqlab_contracts.api.submissions import Problem
from wqlab_contracts.enums import ExitCode


class WqlabError(Exception):
    """Base of every error that this package raises on purpose.

    `summary` names the thing that is wrong, `fix` what to do about it.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, summary: str, fix: str = "") -> None:
        super().__init__(f"{summary}. {fix}" if fix else summary)
        self.summary = summary
        self.fix = fix


class UsageError(WqlabError):
    """The command, a file it was given or the configuration makes no sense."""


class RequestRefused(WqlabError):
    """The server understood the request and refused it: HTTP 4xx with its problem details (RFC 9457)."""

    def __init__(self, what: str, problem: Problem, fix: str = "") -> None:
        self.mistakes = [_mistake(entry) for entry in problem.errors]
        """One line for each field that is wrong: where it is, and what is wrong with it."""
        if len(self.mistakes) > 1:
            detail = f"the server refuses it, {len(self.mistakes)} mistakes"
        else:
            detail = self.mistakes[0] if self.mistakes else problem.detail or problem.title
        super().__init__(f"{what}: {detail}", fix)
        self.problem = problem

    @property
    def status(self) -> int:
        return self.problem.status


class LabUnavailable(WqlabError):
    """No usable answer: the server cannot be reached, is overloaded or broken. Nothing is known about the series."""

    exit_code = ExitCode.INFRASTRUCTURE


class StreamSilent(LabUnavailable):
    """A stream was open and brought nothing for longer than allowed: lost, or just nothing to say."""


def _mistake(entry: dict[str, str]) -> str:
    where = entry.get("pointer") or entry.get("parameter") or ""
    what = entry.get("detail") or ", ".join(f"{key} {value}" for key, value in entry.items())
    return f"{where}: {what}" if where else what
