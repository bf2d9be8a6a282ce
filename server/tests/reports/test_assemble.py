"""The report assembled from rows."""

from __future__ import annotations

import pytest

from wqlab_contracts.api.report import EnvironmentDifference
from wqlab_contracts.enums import Arm, SubmissionState, Verdict
from wqlab_server.models import Submission
from wqlab_server.reports.assemble import assemble
from wqlab_server.reports.render.text import render_text
from wqlab_server.storage.db import transaction

from ..support.scene import Scene

pytestmark = pytest.mark.integration


def test_report_of_a_finished_submission(scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    scene.finish(number)
    with transaction(scene.sessions) as session:
        report = assemble(session, session.get_one(Submission, number), scene.store, "http://lab.test")
    (target,) = report.targets
    assert (report.submission.state, target.verdict) == (SubmissionState.FINISHED, Verdict.FAILED)
    assert target.environment is not None
    assert target.environment.facts == {"clocksource": "tsc"}
    assert [attempt.failure.summary for attempt in report.attempts] == ["panic in flush"]
    assert report.config_diff == ["CONFIG_NEW absent -> y"]
    assert target.environment.differences == [
        EnvironmentDifference(name="CONFIG_NEW", baseline="absent", candidate="y")
    ]


def test_missing_configuration_leaves_the_difference_out(scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    for file in scene.settings.artifact_dir.rglob("*"):
        if file.is_file():
            file.unlink()
    with transaction(scene.sessions) as session:
        report = assemble(session, session.get_one(Submission, number), scene.store, "http://lab.test")
    assert (report.config_diff, report.config_compared) == ([], False)
    assert "same options" not in render_text(report)
    assert report.config_sha256
