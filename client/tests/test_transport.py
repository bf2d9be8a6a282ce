from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from fakelab import DROP, SERIES_REQUEST, START, FakeLab, Reply, problem, submission

from wqlab_client import Client, LabUnavailable, ReportFormat, RequestRefused, Retry
from wqlab_client.errors import UsageError
from wqlab_contracts.enums import ArtifactKind, SubmissionState
from wqlab_contracts.messages import Artifact

VIEW = submission(SubmissionState.APPLYING)
PATH = "/api/v1/submissions"


def test_a_busy_server_is_asked_again_with_growing_waits(lab: FakeLab, client: Client, waits: list[float]) -> None:
    lab.serve("/submissions/12", VIEW)
    lab.faults[f"{PATH}/12"] = [problem(503, "starting"), problem(502, "bad gateway"), DROP]
    assert client.submission(12) == VIEW
    assert len(waits) == 3
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0 <= waits[2] <= 2.0


def test_the_server_may_say_how_long_to_wait(lab: FakeLab, client: Client, waits: list[float]) -> None:
    lab.serve("/submissions/12", VIEW)
    lab.faults[f"{PATH}/12"] = [problem(429, "slow down", Retry_After="7"), problem(503, "x", Retry_After="99999")]
    client.submission(12)
    assert waits == [7.0, 60.0]


def test_it_gives_up_and_says_why(lab: FakeLab, client: Client, waits: list[float]) -> None:
    lab.faults[f"{PATH}/12"] = [problem(503, "down for maintenance")] * 9
    with pytest.raises(LabUnavailable, match=r"submission 12: .* answered 503 .*down for maintenance"):
        client.submission(12)
    assert len(waits) == 3
    assert len(lab.seen) == 4


def test_a_submit_whose_answer_was_lost_is_sent_again_under_the_same_key(lab: FakeLab, client: Client) -> None:
    made: dict[str, int] = {}

    def create(seen: object) -> Reply:
        made.setdefault(seen.headers["idempotency-key"], 12 + len(made))  # type: ignore[attr-defined]
        return Reply(201, VIEW)

    lab.answers[("POST", PATH)] = create
    lab.faults[PATH] = [DROP, problem(502, "lost behind the proxy")]
    assert client.submit(SERIES_REQUEST) == VIEW
    keys = [seen.headers["idempotency-key"] for seen in lab.seen]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert list(made.values()) == [12]
    client.submit(SERIES_REQUEST)
    assert len(made) == 2, "another submit is another submission"
    client.submit(SERIES_REQUEST, idempotency_key="ci-job-4711")
    assert lab.seen[-1].headers["idempotency-key"] == "ci-job-4711"
    assert lab.seen[-1].headers["content-type"] == "application/json"


def test_what_may_not_be_doubled_is_repeated_only_when_it_was_not_acted_upon(lab: FakeLab, client: Client) -> None:
    lab.serve("/submissions/12/retry", VIEW, "POST")
    lab.faults[f"{PATH}/12/retry"] = [problem(503, "not now")]
    client.retry(12)
    assert len(lab.seen) == 2
    lab.faults[f"{PATH}/12/retry"] = [DROP]
    with pytest.raises(LabUnavailable):
        client.retry(12)
    assert len(lab.seen) == 3


def test_nobody_listens(waits: list[float]) -> None:
    with (
        Client("http://127.0.0.1:9", "t", retry=Retry(attempts=3), sleep=waits.append) as client,
        pytest.raises(LabUnavailable, match=r"cannot reach http://127\.0\.0\.1:9 .*check the URL and the network"),
    ):
        client.submission(12)
    assert len(waits) == 2


def test_a_slow_answer_is_a_failure_of_the_lab(lab: FakeLab) -> None:
    lab.answers[("GET", f"{PATH}/12")] = lambda _: (lab.wait_for(lambda: released), Reply(200, VIEW))[1]
    released = False
    with (
        Client(lab.url, timeout_s=0.2, retry=Retry(attempts=1)) as client,
        pytest.raises(LabUnavailable, match="no answer in time"),
    ):
        client.submission(12)
    with lab.changed:
        released = True
        lab.changed.notify_all()


def test_a_refusal_carries_every_mistake_and_is_not_repeated(lab: FakeLab, client: Client) -> None:
    errors = [
        {"pointer": "/targets/0/plan", "detail": "no plan 'xfs'; there is xfs-fsync"},
        {"parameter": "limit", "detail": "at most 200"},
    ]
    lab.faults[PATH] = [problem(422, "2 mistakes", errors)]
    with pytest.raises(RequestRefused) as refused:
        client.submit(SERIES_REQUEST)
    assert refused.value.status == 422
    assert refused.value.mistakes == ["/targets/0/plan: no plan 'xfs'; there is xfs-fsync", "limit: at most 200"]
    assert len(lab.seen) == 1


@pytest.mark.parametrize(("status", "advice"), [(401, "wqlab login"), (403, "scope"), (404, "check the id")])
def test_refusals_say_what_to_do(lab: FakeLab, client: Client, status: int, advice: str) -> None:
    lab.faults[f"{PATH}/12"] = [Reply(status, b"<html>no problem document</html>", content_type="text/html")]
    with pytest.raises(RequestRefused, match=advice):
        client.submission(12)


def test_a_redirect_is_not_followed_with_the_token(lab: FakeLab, client: Client) -> None:
    with FakeLab() as other:
        lab.faults[f"{PATH}/12"] = [Reply(302, b"", {"Location": other.url + f"{PATH}/12"})]
        with pytest.raises(RequestRefused, match="redirects to"):
            client.submission(12)
        assert other.seen == []


def test_fields_of_a_newer_server_are_ignored_and_something_else_is_not_believed(lab: FakeLab, client: Client) -> None:
    newer = VIEW.model_dump(mode="json") | {"mood": "good"}
    newer["eta"]["confidence"] = 0.5
    lab.serve("/submissions/12", newer)
    assert client.submission(12) == VIEW
    lab.serve("/submissions/12", b"<html>a captive portal</html>", content_type="text/html")
    with pytest.raises(LabUnavailable, match="not what this client expects"):
        client.submission(12)


def test_every_page_is_fetched_once(lab: FakeLab, client: Client) -> None:
    names = list(type(VIEW).__mro__[1].model_fields)  # SubmissionSummary
    rows = [VIEW.model_copy(update={"id": n}).model_dump(mode="json", include=set(names)) for n in range(5)]

    def page(seen: object) -> Reply:
        start = int(seen.query.get("cursor", "0"))  # type: ignore[attr-defined]
        following = str(start + 2) if start + 2 < len(rows) else None
        return Reply(200, {"items": rows[start : start + 2], "total": 5, "next": following})

    lab.answers[("GET", PATH)] = page
    found = client.submissions(state=SubmissionState.APPLYING, tree="linux-6.12", page_size=2)
    assert next(found).id == 0
    assert len(lab.seen) == 1, "the next page is not fetched before it is needed"
    assert [each.id for each in found] == [1, 2, 3, 4]
    assert [seen.query for seen in lab.seen] == [
        {"state": "applying", "tree": "linux-6.12", "limit": "2"} | ({"cursor": c} if c else {}) for c in ("", "2", "4")
    ]
    assert VIEW.created_at == START


def test_the_token_is_sent_and_must_be_one_line(lab: FakeLab, client: Client) -> None:
    lab.serve("/submissions/12/report", b"report\n", content_type="text/plain")
    assert client.report_text(12, ReportFormat.MARKDOWN) == "report\n"
    assert lab.seen[0].headers["authorization"].startswith("Bearer wql_")
    assert lab.seen[0].query == {"format": "markdown"}
    with pytest.raises(UsageError, match="token"):
        Client(lab.url, "abc\r\nX-Evil: 1")


def test_an_artifact_appears_only_when_it_is_the_right_one(lab: FakeLab, client: Client, tmp_path: Path) -> None:
    data = b"kernel" * 1000
    artifact = Artifact(
        sha256=hashlib.sha256(data).hexdigest(), size=len(data), kind=ArtifactKind.KERNEL, name="bzImage"
    )
    path = f"/builds/3/artifacts/{artifact.sha256}"
    target = tmp_path / "bzImage"
    for wrong in (data[:-1] + b"x", data + b"x", data[:-1]):
        lab.serve(path, wrong, content_type="application/octet-stream")
        with pytest.raises(LabUnavailable, match="not what the server announced"):
            client.download(3, artifact, target)
        assert list(tmp_path.iterdir()) == []
    lab.serve(path, data, content_type="application/octet-stream")
    client.download(3, artifact, target)
    assert target.read_bytes() == data


def test_a_runs_artifacts_and_the_series_can_be_fetched(lab: FakeLab, client: Client) -> None:
    raw = Artifact(sha256=hashlib.sha256(b"raw").hexdigest(), size=3, kind=ArtifactKind.RAW_OUTPUT, name="raw.txt")
    lab.serve("/runs/7/artifacts", [raw])
    lab.serve("/submissions/12/series", b"From 0\n", content_type="text/plain")
    assert client.run_artifacts(7) == [raw]
    assert client.series(12) == "From 0\n"
    lab.serve(f"/runs/7/artifacts/{raw.sha256}", b"raw", content_type="application/octet-stream")
    assert client.run_artifact(7, raw) == b"raw"
    lab.serve(f"/runs/7/artifacts/{raw.sha256}", b"war", content_type="application/octet-stream")
    with pytest.raises(LabUnavailable, match="not what the server announced"):
        client.run_artifact(7, raw)


def test_a_console_goes_on_where_the_connection_broke(lab: FakeLab, client: Client) -> None:
    text = bytes(range(256)) * 40

    def console(seen: object) -> Reply:
        offset = int(seen.query["offset"])  # type: ignore[attr-defined]
        return Reply(200, text[offset:], content_type="text/plain", stop_after=4000 if offset < 8000 else None)

    lab.answers[("GET", "/api/v1/runs/7/console")] = console
    assert b"".join(client.console(7, 3, follow=True)) == text
    assert [seen.query["offset"] for seen in lab.seen] == ["0", "4000", "8000"]
    assert {seen.query["boot"] for seen in lab.seen} == {"3"}
