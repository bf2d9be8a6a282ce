"""The report assembled from rows."""

from __future__ import annotations

import instrument_examples as examples
import pytest
from sqlalchemy import select

from wqlab_contracts import instrument
from wqlab_contracts.api.report import EnvironmentDifference
from wqlab_contracts.enums import Arm, ArtifactKind, SubmissionState, Verdict
from wqlab_contracts.messages import BootKey
from wqlab_report.writers.text import render_text
from wqlab_server.models import Artifact, ArtifactLink, Boot, Submission
from wqlab_server.reports.assemble import assemble
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


def test_profiles_of_valid_boots_give_where_the_counts_come_from(scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    run_id = scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    with transaction(scene.sessions) as session:
        for boot in session.scalars(select(Boot).where(Boot.run_id == run_id)):
            profile = examples.profile(boot.arm, boot.block)
            window = profile.windows[0].model_copy(update={"setting": "scope=system"})
            data = instrument.write(profile.model_copy(update={"windows": [window]}))
            key = BootKey(block=boot.block, position=boot.position, arm=boot.arm, attempt=boot.attempt)
            file = scene.artifact(ArtifactKind.INSTRUMENT_PROFILE, instrument.file_name(key), data.decode())
            session.merge(Artifact(sha256=file.sha256, size=file.size))
            session.flush()
            session.add(ArtifactLink(sha256=file.sha256, job_id=run_id, kind=file.kind, name=file.name))
    scene.finish(number)
    with transaction(scene.sessions) as session:
        report = assemble(session, session.get_one(Submission, number), scene.store, "http://lab.test")
    (cell,) = report.targets[0].instrument
    assert (cell.scenario, cell.setting, cell.seeds) == ("fsync", "scope=system", [0, 1])
    assert cell.changed[0].name == "flush_workqueue_prep_pwqs"
