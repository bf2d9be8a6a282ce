"""Retention deletes what nothing needs any more, and nothing else."""

from __future__ import annotations

import hashlib
import threading
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.enums import ArtifactKind, JobKind, Outcome
from wqlab_contracts.messages import BuildJob, BuildResult
from wqlab_server.models import Artifact, ArtifactLink, Build, Run, SubmissionBuild
from wqlab_server.retention import service
from wqlab_server.retention.delete import adopt_orphans, delete_files, remove_bytes
from wqlab_server.retention.needs import Need, file_needs
from wqlab_server.storage.artifacts import ArtifactStore
from wqlab_server.storage.db import transaction

from ..support.lab import LabUnderTest, RunSession, ScriptedWorker, build_id_of, passing_run

pytestmark = pytest.mark.integration


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def build_with_files(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
    """A build whose kernel differs from other builds and whose config does not."""
    kernel = worker.upload(ArtifactKind.KERNEL, "bzImage", f"kernel {job.build_id:04}".encode() * 1000)
    config = worker.upload(ArtifactKind.CONFIG, "config", b"CONFIG_SMP=y\n")
    return BuildResult(outcome=Outcome.PASSED, build_id_gnu=build_id_of(job), artifacts=[kernel, config])


def run_with_console(run: RunSession) -> Any:
    result = passing_run(run)
    run.worker._fence = (run.job.run_id, run.fence)
    run.worker.upload(ArtifactKind.RAW_OUTPUT, "output.txt", f"output {run.job.run_id}".encode())
    run.console(run.first_key, 0, b"Linux version 6.12\n" * 10)
    return result


@pytest.fixture
def store(lab: LabUnderTest) -> ArtifactStore:
    lab.worker.on_build, lab.worker.on_run = build_with_files, run_with_console
    lab.mark_all_good()
    found: ArtifactStore = lab.app.state.store
    return found


def measured(lab: LabUnderTest, target: str = "locks@single", **more: Any) -> int:
    submission_id = lab.submit(target, **more)
    lab.finished(submission_id)
    return submission_id


def age(lab: LabUnderTest, days: float) -> None:
    """Move the end of everything that has finished `days` into the past."""
    for table in ("submissions", "jobs"):
        lab.sql(f"UPDATE {table} SET finished_at = finished_at - make_interval(secs => :s)", s=days * 86400)
    lab.sql("UPDATE submissions SET linked_at = linked_at - make_interval(secs => :s)", s=days * 86400)
    lab.sql("UPDATE storage_reports SET reported_at = reported_at - make_interval(secs => :s)", s=days * 86400)


def retain(lab: LabUnderTest, **settings: Any) -> None:
    service.run(lab.sessions, lab.settings.model_copy(update=settings), lab.app.state.store)


def get(lab: LabUnderTest, path: str) -> httpx.Response:
    answer: httpx.Response = lab.client.get(path, headers={"Authorization": f"Bearer {lab.token}"})
    return answer


def view(lab: LabUnderTest, submission_id: int) -> dict[str, Any]:
    content: dict[str, Any] = get(lab, f"/api/v1/submissions/{submission_id}").json()
    return content


def downloads(lab: LabUnderTest, submission_id: int) -> dict[str, str]:
    """Return download -> `there`, or the detail of the refusal."""
    shown = view(lab, submission_id)
    paths = {"series": f"/api/v1/submissions/{submission_id}/series"} if shown["apply"]["series_mbox"] else {}
    for build in shown["builds"]:
        for file in build["artifacts"]:
            paths[f"{build['arm']} {file['name']}"] = f"/api/v1/builds/{build['id']}/artifacts/{file['sha256']}"
    for run in shown["runs"]:
        for file in get(lab, f"/api/v1/runs/{run['id']}/artifacts").json():
            paths[file["name"]] = f"/api/v1/runs/{run['id']}/artifacts/{file['sha256']}"
        paths["console"] = f"/api/v1/runs/{run['id']}/console?boot={run['boots'][0]['id']}"
    answers = {name: get(lab, path) for name, path in paths.items()}
    assert {answer.status_code for answer in answers.values()} <= {200, 410}
    return {name: answer.json()["detail"] if answer.is_error else "there" for name, answer in answers.items()}


def stored(lab: LabUnderTest) -> set[str]:
    return {path.name for path in lab.settings.artifact_dir.rglob("*") if path.is_file()}


def test_old_files_are_deleted_and_the_report_says_when(lab: LabUnderTest, store: ArtifactStore) -> None:
    submission_id = measured(lab)
    before = get(lab, f"/r/{submission_id}.md").text
    age(lab, 400)
    lab.tick()
    refused = downloads(lab, submission_id)
    assert refused["candidate bzImage"] == f"bzImage was deleted by retention on {today()}"
    assert refused["output.txt"] == f"output.txt was deleted by retention on {today()}"
    assert refused["console"].endswith(f"was deleted by retention on {today()}")
    assert stored(lab) == set()
    report = get(lab, f"/r/{submission_id}.md").text
    note = f"deleted by retention on {today()}"
    assert note not in before
    assert note in " ".join(report.split())
    assert set(before.splitlines()) <= set(report.splitlines()), "everything else stays"
    for suffix in ("", ".md", ".json", ".xml"):
        answer = get(lab, f"/r/{submission_id}{suffix}")
        assert answer.status_code == 200
        assert suffix == ".xml" or today() in answer.text
    assert get(lab, f"/api/v1/runs/{lab.runs(submission_id)[0].id}/samples").json(), "samples stay"


def test_recent_files_stay(lab: LabUnderTest, store: ArtifactStore) -> None:
    submission_id = measured(lab)
    age(lab, 89)
    retain(lab)
    assert set(downloads(lab, submission_id).values()) == {"there"}


def test_unfinished_submission_keeps_its_files(lab: LabUnderTest, store: ArtifactStore) -> None:
    lab.worker.on_run = lambda run: None
    submission_id = lab.submit("locks@single")
    lab.until_idle()
    age(lab, 1000)
    retain(lab, artifact_total_bytes=1)
    with lab.transaction() as session:
        assert session.scalars(select(Artifact).where(Artifact.deleted_at.is_not(None))).all() == []
    assert view(lab, submission_id)["state"] == "running"


def test_pinned_submission_keeps_everything(lab: LabUnderTest, store: ArtifactStore) -> None:
    pinned = measured(lab)
    headers = {"Authorization": f"Bearer {lab.token}"}
    shown = lab.client.put(f"/api/v1/submissions/{pinned}/pin", headers=headers).json()
    assert (shown["pinned_by"], bool(shown["pinned_at"])) == ("dev", True)
    age(lab, 1000)
    retain(lab, artifact_total_bytes=1, console_total_bytes=1)
    assert set(downloads(lab, pinned).values()) == {"there"}
    areas = {area["name"]: area for area in get(lab, "/api/v1/lab/storage").json()["machines"][0]["areas"]}
    assert areas["artifacts"]["pinned_bytes"] == areas["artifacts"]["bytes"] > 0
    assert "pinned" in areas["artifacts"]["problem"]
    assert get(lab, "/api/v1/lab/storage").json()["pinned"] == [pinned]
    lab.client.delete(f"/api/v1/submissions/{pinned}/pin", headers=headers).raise_for_status()
    retain(lab)
    assert "there" not in downloads(lab, pinned).values()


def test_report_that_is_read_by_its_link_keeps_its_files(lab: LabUnderTest, store: ArtifactStore) -> None:
    linked = measured(lab)
    age(lab, 1000)
    assert get(lab, f"/r/{linked}").status_code == 200
    retain(lab)
    assert set(downloads(lab, linked).values()) == {"there"}
    age(lab, 91)
    retain(lab)
    assert "there" not in {name: text for name, text in downloads(lab, linked).items() if name != "console"}.values()


def test_size_limit_deletes_what_was_needed_longest_ago(lab: LabUnderTest, store: ArtifactStore) -> None:
    old = measured(lab, blocks=1)
    age(lab, 10)
    lab.sql("UPDATE jobs SET key = 'other ' || id WHERE kind = 'build'")  # the next submission builds its own kernels
    new = measured(lab, blocks=1)
    age(lab, 1)
    with lab.transaction() as session:
        total = sum(session.scalars(select(Artifact.size)))
    retain(lab, artifact_total_bytes=total - 11100)
    assert "there" not in {downloads(lab, old)[name] for name in ("baseline bzImage", "candidate bzImage")}
    assert set(downloads(lab, new).values()) == {"there"}, "the config, which both builds have, stays"


def test_build_without_kernel_is_not_reused(lab: LabUnderTest, store: ArtifactStore) -> None:
    first = measured(lab)
    age(lab, 400)
    retain(lab)
    second = measured(lab)
    builds = [{build["id"] for build in view(lab, each)["builds"]} for each in (first, second)]
    assert builds[0].isdisjoint(builds[1])
    assert set(downloads(lab, second).values()) == {"there"}
    third = measured(lab)
    assert {build["id"] for build in view(lab, third)["builds"]} == builds[1], "a build with its kernel is reused"


def need_of_build(lab: LabUnderTest) -> Need:
    with lab.transaction() as session:
        return next(need for need in file_needs(session) if need.kind == "build" and need.deletable)


def test_build_that_a_new_submission_uses_meanwhile_stays(lab: LabUnderTest, store: ArtifactStore) -> None:
    """Retention has read its list of builds; before it deletes, a submission takes one of them."""
    measured(lab)
    age(lab, 400)
    need = need_of_build(lab)
    second = lab.submit("locks@single")
    lab.work(JobKind.APPLY, "wqlab.advance")
    with lab.transaction() as session:
        assert need.id in session.scalars(
            select(SubmissionBuild.build_id).where(SubmissionBuild.submission_id == second)
        )
    assert delete_files(lab.sessions, need) == 0
    lab.finished(second)


def test_build_that_a_submission_is_about_to_use_stays(lab: LabUnderTest, store: ArtifactStore) -> None:
    """The submission has found the build and has not committed yet."""
    measured(lab)
    age(lab, 400)
    need = need_of_build(lab)
    with transaction(lab.sessions) as session:
        session.scalars(select(Build).where(Build.id == need.id).with_for_update(read=True)).one()
        assert delete_files(lab.sessions, need) == 0
    assert delete_files(lab.sessions, need) > 0


def test_content_uploaded_again_before_its_bytes_are_removed_stays(lab: LabUnderTest, store: ArtifactStore) -> None:
    old = measured(lab)
    age(lab, 400)
    delete_files(lab.sessions, need_of_build(lab))
    lab.sql("UPDATE artifacts SET deleted_at = now()")
    lab.worker.on_run = run_and_upload(b"output %d" % lab.runs(old)[0].id)
    lab.sql("UPDATE jobs SET files_deleted_at = now() WHERE kind = 'build'")
    measured(lab)
    kept = hashlib.sha256(b"output %d" % lab.runs(old)[0].id).hexdigest()
    remove_bytes(lab.sessions, store)
    assert store.has(kept)


def run_and_upload(content: bytes) -> Any:
    def on_run(run: RunSession) -> Any:
        result = passing_run(run)
        run.worker._fence = (run.job.run_id, run.fence)
        run.worker.upload(ArtifactKind.RAW_OUTPUT, "output.txt", content)
        return result

    return on_run


def test_upload_whose_bytes_are_removed_before_its_row_is_refused(
    lab: LabUnderTest, run: RunSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention removes equal content between the last byte and the row; the worker sends it again."""
    content = b"the same content"
    store: ArtifactStore = lab.app.state.store
    sha256, size = store.put_bytes(content)
    lab.sql(
        "INSERT INTO artifacts (sha256, size, deleted_at, stored) VALUES (:sha256, :size, now(), true)",
        sha256=sha256, size=size,
    )  # fmt: skip
    received = threading.Event()
    put = type(store).writer

    def writer(self: ArtifactStore, sha256: str) -> Any:
        found = put(self, sha256)
        commit = found.commit

        def commit_and_remove() -> int:
            size = commit()
            if not received.is_set():
                received.set()
                assert remove_bytes(lab.sessions, store) == 1
            return size

        found.commit = commit_and_remove  # type: ignore[method-assign]
        return found

    monkeypatch.setattr(type(store), "writer", writer)
    lab.worker._fence = (run.job.run_id, run.fence)
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "output.txt", content, expect=503)
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "output.txt", content)
    assert store.read(sha256) == content
    with lab.transaction() as session:
        row = session.scalars(select(Artifact).where(Artifact.sha256 == sha256)).one()
        assert (row.deleted_at, row.stored) == (None, True)


def test_stored_file_without_row_is_removed_after_a_day(lab: LabUnderTest, run: RunSession) -> None:
    store: ArtifactStore = lab.app.state.store
    sha256, _ = store.put_bytes(b"its upload was never recorded")
    partial = lab.settings.artifact_dir / sha256[:2] / ".partial-of-a-killed-server"
    partial.touch()
    assert adopt_orphans(lab.sessions, store, 3600) == 0
    assert adopt_orphans(lab.sessions, store, -1) == 1
    assert remove_bytes(lab.sessions, store) == 1
    assert not store.has(sha256)
    assert not partial.exists()
    with lab.transaction() as session:
        assert all(store.has(link) for link in session.scalars(select(ArtifactLink.sha256))), "the others stay"


def test_consoles_have_their_own_limit(lab: LabUnderTest, store: ArtifactStore) -> None:
    submission_id = measured(lab)
    age(lab, 2)
    retain(lab, console_total_bytes=10)
    found = downloads(lab, submission_id)
    assert "deleted by retention" in found.pop("console")
    assert set(found.values()) == {"there"}
    with lab.transaction() as session:
        assert session.scalars(select(Run.files_deleted_at).where(Run.submission_id == submission_id)).one() is None


def test_tick_reports_the_servers_storage(lab: LabUnderTest, store: ArtifactStore) -> None:
    measured(lab)
    lab.tick()
    [server] = get(lab, "/api/v1/lab/storage").json()["machines"]
    areas = {area["name"]: area for area in server["areas"]}
    assert set(areas) == {"artifacts", "consoles", "database"}
    assert areas["artifacts"]["bytes"] >= 0
    assert areas["artifacts"]["free_bytes"] > 0
    assert areas["database"]["bytes"] > 1 << 20


def test_worker_reports_its_machine(lab: LabUnderTest) -> None:
    body = {"machine": "builder-1", "areas": [{"name": "sources", "bytes": 7, "entries": 1}]}
    lab.worker.post("storage", body, 204)
    lab.worker.post("storage", body | {"areas": []}, 204)
    lab.worker.post("storage", body | {"machine": "no/name"}, 422)
    assert [(m["machine"], m["areas"]) for m in get(lab, "/api/v1/lab/storage").json()["machines"]] == [
        ("builder-1", [])
    ]
    for number in range(service.MAX_MACHINES_PER_LAB - 1):
        lab.worker.post("storage", body | {"machine": f"m{number}"}, 204)
    lab.worker.post("storage", body | {"machine": "one-more"}, 403)
