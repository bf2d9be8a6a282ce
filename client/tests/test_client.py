from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest
from example_views import SERIES_REQUEST, START, submission
from fakelab import DROP, FakeLab, Reply, problem

from wqlab_client import Client, LabUnavailable, RequestRefused
from wqlab_contracts.enums import ArtifactKind, EventKind, SubmissionState
from wqlab_contracts.messages import Artifact

VIEW = submission(SubmissionState.APPLYING)
PATH = "/api/v1/submissions"
EVENTS = "/api/v1/submissions/12/events"
RUNNING = submission(SubmissionState.RUNNING)
FINISHED = submission(SubmissionState.FINISHED)


def test_lost_submit_is_retried_with_the_same_idempotency_key(lab: FakeLab, client: Client) -> None:
    made: dict[str, int] = {}

    def create(request: object) -> Reply:
        made.setdefault(request.headers["idempotency-key"], 12 + len(made))  # type: ignore[attr-defined]
        return Reply(201, VIEW)

    lab.answers[("POST", PATH)] = create
    lab.faults[PATH] = [DROP, problem(502, "lost behind the proxy")]
    assert client.submit(SERIES_REQUEST) == VIEW
    keys = [request.headers["idempotency-key"] for request in lab.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert list(made.values()) == [12]
    client.submit(SERIES_REQUEST)
    assert len(made) == 2, "another submit is another submission"
    client.submit(SERIES_REQUEST, idempotency_key="ci-job-4711")
    assert lab.requests[-1].headers["idempotency-key"] == "ci-job-4711"
    assert lab.requests[-1].headers["content-type"] == "application/json"


def test_every_page_is_fetched_once(lab: FakeLab, client: Client) -> None:
    names = list(type(VIEW).__mro__[1].model_fields)  # SubmissionSummary
    rows = [VIEW.model_copy(update={"id": n}).model_dump(mode="json", include=set(names)) for n in range(5)]

    def page(request: object) -> Reply:
        start = int(request.query.get("cursor", "0"))  # type: ignore[attr-defined]
        following = str(start + 2) if start + 2 < len(rows) else None
        return Reply(200, {"items": rows[start : start + 2], "total": 5, "next": following})

    lab.answers[("GET", PATH)] = page
    found = client.submissions(state=SubmissionState.APPLYING, tree="linux-6.12", page_size=2)
    assert next(found).id == 0
    assert len(lab.requests) == 1, "the next page is not fetched before it is needed"
    assert [each.id for each in found] == [1, 2, 3, 4]
    assert [request.query for request in lab.requests] == [
        {"state": "applying", "tree": "linux-6.12", "limit": "2"} | ({"cursor": c} if c else {}) for c in ("", "2", "4")
    ]
    assert VIEW.created_at == START


def test_artifact_is_saved_only_if_size_and_hash_match(lab: FakeLab, client: Client, tmp_path: Path) -> None:
    data = b"kernel" * 1000
    artifact = Artifact(
        sha256=hashlib.sha256(data).hexdigest(), size=len(data), kind=ArtifactKind.KERNEL, name="bzImage"
    )
    path = f"/builds/3/artifacts/{artifact.sha256}"
    target = tmp_path / "bzImage"
    for wrong in (data[:-1] + b"x", data + b"x", data[:-1]):
        lab.serve(path, wrong, content_type="application/octet-stream")
        with pytest.raises(LabUnavailable, match="does not match the announced size"):
            client.download(3, artifact, target)
        assert list(tmp_path.iterdir()) == []
    lab.serve(path, data, content_type="application/octet-stream")
    client.download(3, artifact, target)
    assert target.read_bytes() == data


def test_run_artifacts_and_series_are_fetched(lab: FakeLab, client: Client) -> None:
    raw = Artifact(sha256=hashlib.sha256(b"raw").hexdigest(), size=3, kind=ArtifactKind.RAW_OUTPUT, name="raw.txt")
    lab.serve("/runs/7/artifacts", [raw])
    lab.serve("/submissions/12/series", b"From 0\n", content_type="text/plain")
    assert client.run_artifacts(7) == [raw]
    assert client.series(12) == "From 0\n"
    lab.serve(f"/runs/7/artifacts/{raw.sha256}", b"raw", content_type="application/octet-stream")
    assert client.run_artifact(7, raw) == b"raw"
    lab.serve(f"/runs/7/artifacts/{raw.sha256}", b"war", content_type="application/octet-stream")
    with pytest.raises(LabUnavailable, match="does not match the announced size"):
        client.run_artifact(7, raw)


def test_console_resumes_at_the_offset_of_a_lost_connection(lab: FakeLab, client: Client) -> None:
    text = bytes(range(256)) * 40

    def console(request: object) -> Reply:
        offset = int(request.query["offset"])  # type: ignore[attr-defined]
        return Reply(200, text[offset:], content_type="text/plain", stop_after=4000 if offset < 8000 else None)

    lab.answers[("GET", "/api/v1/runs/7/console")] = console
    assert b"".join(client.console(7, 3, follow=True)) == text
    assert [request.query["offset"] for request in lab.requests] == ["0", "4000", "8000"]
    assert {request.query["boot"] for request in lab.requests} == {"3"}


def test_interrupted_stream_yields_every_event_once(lab: FakeLab, client: Client) -> None:
    serve_finished(lab, 10)
    lab.cuts = [3, 0, 0, 4]
    assert [event.seq for event in client.events(12)] == list(range(1, 11))
    assert lab.streams == ["0", "3", "3", "3", "7"]


def test_events_begin_after_the_given_number(lab: FakeLab, client: Client) -> None:
    serve_finished(lab, 5)
    assert [event.seq for event in client.events(12, after=3)] == [4, 5]


def test_stream_that_ends_before_the_submission_is_resumed(lab: FakeLab, client: Client) -> None:
    lab.show(RUNNING)
    lab.ended = True
    found = client.events(12)
    assert next(found).seq == 1

    lab.answers[("GET", "/api/v1/submissions/12")] = lambda _: _fail_then_finish(lab)
    assert [event.seq for event in found] == [2]


def _fail_then_finish(lab: FakeLab) -> Reply:
    """Answer once with 503; the submission finishes right after."""
    answer = problem(503, "restarting")
    lab.show(FINISHED)
    return answer


def test_stream_is_retried_after_busy_answers(lab: FakeLab, client: Client, waits: list[float]) -> None:
    serve_finished(lab, 2)
    lab.faults[EVENTS] = [problem(503, "starting"), problem(502, "bad gateway")]
    assert len(list(client.events(12))) == 2
    assert len(waits) == 2


def test_refused_stream_is_not_retried(lab: FakeLab, client: Client) -> None:
    lab.faults[EVENTS] = [problem(401, "the token was revoked")]
    with pytest.raises(RequestRefused, match="the token was revoked"):
        list(client.events(12))


def test_lost_contact_error_says_how_to_resume(waits: list[float]) -> None:
    with (
        Client("http://127.0.0.1:9", sleep=waits.append) as client,
        pytest.raises(LabUnavailable, match=r"no contact .* resume with `wqlab watch 12`"),
    ):
        list(client.events(12, give_up_s=1.0))
    assert len(waits) > 2
    assert waits[0] <= 0.5
    assert max(waits) <= 15


def serve_finished(lab: FakeLab, events: int) -> None:
    lab.serve("/submissions/12", FINISHED)
    for number in range(events):
        lab.emit(EventKind.RUN_PROGRESS, text=f"step {number}")
    lab.ended = True


def test_wait_returns_the_finished_submission_or_times_out(lab: FakeLab, client: Client) -> None:
    lab.show(RUNNING)
    with pytest.raises(TimeoutError, match="submission 12 is not finished after 0 s"):
        client.wait(12, timeout_s=0.0)
    lab.show(FINISHED)
    assert client.wait(12) == FINISHED


def test_bundle_that_ends_early_is_not_saved(client: Client, lab: FakeLab, tmp_path: Path) -> None:
    """The server ends the stream of a revoked token as if it were complete."""
    target = tmp_path / "evidence.zip"
    manifest = {"format": 1, "submission": 12, "lab_url": "", "versions": {}, "kernels": False, "files": {}}
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("manifest.json.sig", b"")
    lab.serve("/submissions/12/bundle", whole.getvalue()[:-30], content_type="application/zip")
    with pytest.raises(LabUnavailable, match="bundle of submission 12: the download is incomplete"):
        client.bundle(12, target)
    assert list(tmp_path.iterdir()) == []
    lab.serve("/submissions/12/bundle", whole.getvalue(), content_type="application/zip")
    assert client.bundle(12, target) == len(whole.getvalue())
    assert target.read_bytes() == whole.getvalue()


def test_key_of_the_lab_is_bounded(client: Client, lab: FakeLab) -> None:
    lab.serve("/lab-key", b"ssh-ed25519 AAAA wqlab\n", content_type="text/plain")
    assert client.lab_key() == "ssh-ed25519 AAAA wqlab\n"
    lab.serve("/lab-key", b"x" * 1_000_000, content_type="text/plain")
    assert len(client.lab_key()) == 10_000
