"""What a check of a target says, for b4 and Patchwork."""

from __future__ import annotations

from typing import Literal

from .api.submissions import TargetSummary
from .enums import ErrorKind, Verdict

Status = Literal["pass", "warn", "fail"]
ORDER: tuple[Status, ...] = ("pass", "warn", "fail")
_FINE = frozenset({Verdict.IMPROVEMENT, Verdict.EQUIVALENT, Verdict.BELOW_THRESHOLD})
_OF_THE_SERIES = frozenset({ErrorKind.USER, ErrorKind.KERNEL})


def status_of_failure(kind: ErrorKind) -> Status:
    """Return `fail` if the series or its kernel is at fault, else `warn`."""
    return "fail" if kind in _OF_THE_SERIES else "warn"


def status_of(target: TargetSummary) -> Status:
    """Return the status of a target.

    `fail`: the series or its kernel fails, or a regression was measured on hardware; `warn`: a count or a modelled
    figure regressed, the lab failed, or the target is not decided; `pass`: it is decided, and nothing regressed.
    """
    if target.verdict in _FINE:
        return "pass"
    if target.verdict is Verdict.FAILED or (target.verdict is None and target.failure_kind is not None):
        return status_of_failure(target.failure_kind or ErrorKind.KERNEL)
    return "fail" if target.verdict is Verdict.REGRESSION and not target.emulated else "warn"


def kind_of(target: TargetSummary) -> str:
    """Return `modelled` or `emulated`; empty for hardware."""
    return "modelled" if target.modelled else "emulated" if target.emulated else ""


def text_of(target: TargetSummary) -> str:
    """Return the verdict and its sentence; how many boots are done if there is none.

    A target that the lab failed to measure has the sentence alone: "failed" would read as the series.
    """
    if target.verdict is None:
        return f"{target.done_boots} of {target.total_boots} boots"
    if target.headline and target.verdict is Verdict.FAILED and status_of(target) != "fail":
        return target.headline
    return ": ".join(filter(None, [target.verdict.value.replace("_", " "), target.headline]))
