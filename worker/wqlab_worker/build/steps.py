"""Estimate how many lines of output a build prints, from earlier builds of this machine."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from wqlab_contracts.messages import BuildJob

from ..workspace import Workspace

USUAL_STEPS = 2050
"""Lines of make's output for a `measure` kernel: the estimate until a build of this kind was counted."""


def _steps_file(workspace: Workspace) -> Path:
    return workspace.builds / "steps.json"


def _steps_name(job: BuildJob) -> str:
    return f"{job.recipe.name}-{job.arch}-{'emulated' if job.emulated else 'hardware'}"


def _counted_steps(workspace: Workspace) -> dict[str, int]:
    with suppress(OSError, ValueError):
        return dict(json.loads(_steps_file(workspace).read_text()))
    return {}


def expected_steps(workspace: Workspace, job: BuildJob) -> int:
    """Return how many lines make is expected to print for the job."""
    return int(_counted_steps(workspace).get(_steps_name(job), USUAL_STEPS))


def remember_steps(workspace: Workspace, job: BuildJob, steps: int) -> None:
    """Keep the number of lines that make printed for the job."""
    fresh = _steps_file(workspace).with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(_counted_steps(workspace) | {_steps_name(job): steps}))
    fresh.rename(_steps_file(workspace))
