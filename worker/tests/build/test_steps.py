"""Expected lines of output of a build."""

from __future__ import annotations

from wqlab_contracts.messages import Source
from wqlab_worker.build.steps import USUAL_STEPS, expected_steps, remember_steps
from wqlab_worker.workspace import Workspace


def test_counted_steps_replace_the_usual_number(base: Source, workspace: Workspace, build_job) -> None:
    job = build_job(base)
    assert expected_steps(workspace, job) == USUAL_STEPS
    remember_steps(workspace, job, 17)
    assert expected_steps(workspace, job) == 17
    hardware = job.model_copy(update={"emulated": False})
    assert expected_steps(workspace, hardware) == USUAL_STEPS


def test_damaged_file_gives_the_usual_number(base: Source, workspace: Workspace, build_job) -> None:
    (workspace.builds / "steps.json").write_text("{")
    assert expected_steps(workspace, build_job(base)) == USUAL_STEPS
