"""Lookup of builds, their artifacts and new warnings."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import PAIR, Arm, ArtifactKind
from wqlab_contracts.messages import BuildJob, BuildResult, CompilerWarning
from wqlab_server.builds import queries
from wqlab_server.http.problems import ApiProblem
from wqlab_server.models import Build, SubmissionBuild

from ..support.lab import LabUnderTest, ScriptedWorker, passing_build

pytestmark = pytest.mark.integration


def test_own_warnings_are_those_of_the_candidate_only(lab: LabUnderTest) -> None:
    old = CompilerWarning(where="kernel/workqueue.c:10:5", text="unused variable 'a'")
    new = CompilerWarning(where="kernel/workqueue.c:20:5", text="unused variable 'b'")

    def build_with_warnings(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
        warnings = [old] if job.trusted else [old, new]
        return passing_build(job, worker).model_copy(update={"warnings": warnings})

    lab.worker.on_build = build_with_warnings
    lab.finished(lab.submit("locks@single"))
    with lab.transaction() as session:
        by_arm = dict(session.execute(select(SubmissionBuild.arm, SubmissionBuild.build_id)).all())
        found = {arm: queries.own_warnings(session, session.get_one(Build, by_arm[arm])) for arm in PAIR}
    assert found == {Arm.BASELINE: [], Arm.CANDIDATE: [new]}


def test_missing_build_or_artifact_is_not_found(lab: LabUnderTest) -> None:
    lab.finished(lab.submit("locks@single"))
    with lab.transaction() as session:
        build = queries.get(session, session.scalars(select(Build.id).order_by(Build.id)).first() or 0)
        kernel = queries.artifact_of_kind(build, ArtifactKind.KERNEL)
        assert queries.artifact_by_hash(build, kernel.sha256) == kernel
        for find in (
            lambda: queries.get(session, 99),
            lambda: queries.artifact_of_kind(build, ArtifactKind.CONFIG),
            lambda: queries.artifact_by_hash(build, "0" * 64),
        ):
            with pytest.raises(ApiProblem) as problem:
                find()
            assert problem.value.status == 404
