from __future__ import annotations

import pytest
from example_views import SERIES_REQUEST, submission
from fakelab import DROP, FakeLab, Reply, problem

from wqlab_client import Client, LabUnavailable, ReportFormat, RequestRefused, Retry
from wqlab_client.errors import UsageError
from wqlab_contracts.enums import SubmissionState

VIEW = submission(SubmissionState.APPLYING)
PATH = "/api/v1/submissions"


def test_busy_server_is_retried_with_growing_waits(lab: FakeLab, client: Client, waits: list[float]) -> None:
    lab.serve("/submissions/12", VIEW)
    lab.faults[f"{PATH}/12"] = [problem(503, "starting"), problem(502, "bad gateway"), DROP]
    assert client.submission(12) == VIEW
    assert len(waits) == 3
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0 <= waits[2] <= 2.0


def test_retry_after_sets_the_wait(lab: FakeLab, client: Client, waits: list[float]) -> None:
    lab.serve("/submissions/12", VIEW)
    lab.faults[f"{PATH}/12"] = [problem(429, "slow down", Retry_After="7"), problem(503, "x", Retry_After="99999")]
    client.submission(12)
    assert waits == [7.0, 60.0]


def test_last_failure_is_raised_after_all_attempts(lab: FakeLab, client: Client, waits: list[float]) -> None:
    lab.faults[f"{PATH}/12"] = [problem(503, "down for maintenance")] * 9
    with pytest.raises(LabUnavailable, match=r"submission 12: .* answered 503 .*down for maintenance"):
        client.submission(12)
    assert len(waits) == 3
    assert len(lab.requests) == 4


def test_request_that_is_not_idempotent_is_retried_only_if_unprocessed(lab: FakeLab, client: Client) -> None:
    lab.serve("/submissions/12/retry", VIEW, "POST")
    lab.faults[f"{PATH}/12/retry"] = [problem(503, "not now")]
    client.retry(12)
    assert len(lab.requests) == 2
    lab.faults[f"{PATH}/12/retry"] = [DROP]
    with pytest.raises(LabUnavailable):
        client.retry(12)
    assert len(lab.requests) == 3


def test_refused_connection_is_lab_unavailable(waits: list[float]) -> None:
    with (
        Client("http://127.0.0.1:9", "t", retry=Retry(attempts=3), sleep=waits.append) as client,
        pytest.raises(LabUnavailable, match=r"cannot reach http://127\.0\.0\.1:9 .*check the URL and the network"),
    ):
        client.submission(12)
    assert len(waits) == 2


def test_slow_answer_is_lab_unavailable(lab: FakeLab) -> None:
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


def test_refusal_has_every_mistake_and_is_not_retried(lab: FakeLab, client: Client) -> None:
    errors = [
        {"pointer": "/targets/0/plan", "detail": "no plan 'xfs'; there is xfs-fsync"},
        {"parameter": "limit", "detail": "at most 200"},
    ]
    lab.faults[PATH] = [problem(422, "2 mistakes", errors)]
    with pytest.raises(RequestRefused) as refused:
        client.submit(SERIES_REQUEST)
    assert refused.value.status == 422
    assert refused.value.mistakes == ["/targets/0/plan: no plan 'xfs'; there is xfs-fsync", "limit: at most 200"]
    assert len(lab.requests) == 1


@pytest.mark.parametrize(("status", "advice"), [(401, "wqlab login"), (403, "scope"), (404, "check the id")])
def test_refusals_name_a_fix(lab: FakeLab, client: Client, status: int, advice: str) -> None:
    lab.faults[f"{PATH}/12"] = [Reply(status, b"<html>no problem document</html>", content_type="text/html")]
    with pytest.raises(RequestRefused, match=advice):
        client.submission(12)


def test_redirect_is_not_followed(lab: FakeLab, client: Client) -> None:
    with FakeLab() as other:
        lab.faults[f"{PATH}/12"] = [Reply(302, b"", {"Location": other.url + f"{PATH}/12"})]
        with pytest.raises(RequestRefused, match="redirects to"):
            client.submission(12)
        assert other.requests == []


def test_unknown_fields_are_ignored_and_invalid_answers_are_errors(lab: FakeLab, client: Client) -> None:
    newer = VIEW.model_dump(mode="json") | {"mood": "good"}
    newer["eta"]["confidence"] = 0.5
    lab.serve("/submissions/12", newer)
    assert client.submission(12) == VIEW
    lab.serve("/submissions/12", b"<html>a captive portal</html>", content_type="text/html")
    with pytest.raises(LabUnavailable, match="not what this client expects"):
        client.submission(12)


def test_token_is_sent_and_must_be_one_line(lab: FakeLab, client: Client) -> None:
    lab.serve("/submissions/12/report", b"report\n", content_type="text/plain")
    assert client.report_text(12, ReportFormat.MARKDOWN) == "report\n"
    assert lab.requests[0].headers["authorization"].startswith("Bearer wql_")
    assert lab.requests[0].query == {"format": "markdown"}
    with pytest.raises(UsageError, match="token"):
        Client(lab.url, "abc\r\nX-Evil: 1")
