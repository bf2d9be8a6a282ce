"""The report assembled from rows, in all formats over HTTP."""

from __future__ import annotations

import json

import httpx
import pytest

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import PAIR, Arm, Outcome, SubmissionState, Verdict
from wqlab_server.models import Submission
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import expect
from ..support.scene import Scene

LOCKS = {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0}


def report(client: httpx.Client, number: int) -> Report:
    return Report.model_validate_json(expect(client.get(f"/api/v1/submissions/{number}/report")).content)


@pytest.mark.integration
def test_report_contains_all_results(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    builds = scene.builds(number)
    run_id = scene.measured(number, LOCKS)
    scene.finish(number)
    found = report(client, number)
    assert (found.submission.state, found.lab_url) == (SubmissionState.FINISHED, "http://lab.test")
    assert found.submission.verdicts == {Verdict.IMPROVEMENT: 1}
    [target] = found.targets
    assert (target.run_id, target.device_type, target.emulated, target.outcome) == (
        run_id,
        "tiny",
        True,
        Outcome.PASSED,
    )
    assert target.comparisons[0].candidate is not None
    assert target.comparisons[0].candidate.mean == 5.0
    # The candidate panicked in a boot that was repeated; this takes precedence over any figure.
    assert target.verdict is Verdict.FAILED
    assert "panic" in target.headline
    assert found.summary == "Fails on tiny (emulated). Speed was not measured."
    assert target.reasons == ["locks: improvement: exactly 33 and 5"]
    assert {(value.arm, value.block, value.value) for value in target.values} == {
        (arm, block, LOCKS[arm]) for arm in PAIR for block in range(2)
    }
    assert (target.blocks_planned, target.blocks_completed, target.discarded) == (2, 2, {Arm.CANDIDATE: 1})
    assert [(each.metric, each.reason) for each in target.unsupported] == [("bw", "no counter (in 1 of 3 boots)")]
    assert target.overhead_s == 1.5
    assert target.environment is not None
    assert target.environment.device == "tiny-1"
    assert target.environment.commands == {"fsync": "fio --fsync=1"}
    assert target.environment.build_id_gnu == {arm: f"{arm.value}-id" for arm in PAIR}
    # The same failure of boot and block is listed once.
    assert [(each.block, each.arm, each.attempt, each.failure.summary) for each in found.attempts] == [
        (0, Arm.CANDIDATE, 0, "panic in flush")
    ]
    assert found.config_diff == ["CONFIG_NEW absent -> y"]
    config = client.get(f"/api/v1/builds/{builds[Arm.BASELINE]}").json()["artifacts"][1]["sha256"]
    assert found.config_sha256 == config


@pytest.mark.integration
def test_report_of_unfinished_submission_is_marked(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    found = report(client, number)
    assert found.submission.state is SubmissionState.APPLYING
    assert [target.comparisons for target in found.targets] == [[]]
    text = expect(client.get(f"/api/v1/submissions/{number}/report", params={"format": "text"}))
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert "NOT FINISHED (applying)" in text.text
    assert "not compared: figures are compared once" in " ".join(text.text.split())


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "media", "words"),
    [
        ("json", "application/json", '"headline"'),
        ("text", "text/plain; charset=utf-8", "panic in flush"),
        ("html", "text/html; charset=utf-8", "<html"),
        ("markdown", "text/markdown; charset=utf-8", "|"),
        ("junit", "application/xml; charset=utf-8", "<testsuite"),
        ("mmtests", "text/plain; charset=utf-8", "Amean"),
        ("kcidb", "application/vnd.kcidb+json", '"id": "wqlab:1.candidate"'),
    ],
)
def test_report_is_sent_in_every_format(client: httpx.Client, scene: Scene, name: str, media: str, words: str) -> None:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    scene.measured(number, LOCKS)
    scene.finish(number)
    answer = expect(client.get(f"/api/v1/submissions/{number}/report", params={"format": name}))
    assert answer.headers["content-type"] == media
    assert words in answer.text
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.integration
def test_kcidb_document_of_an_unfinished_submission_is_refused(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    refused = expect(client.get(f"/api/v1/submissions/{number}/report", params={"format": "kcidb"}), 409)
    assert refused.json()["detail"] == (
        f"submission {number} is applying: KCIDB takes final results; wait until it is finished"
    )


@pytest.mark.integration
def test_unknown_submission_and_format_are_refused(client: httpx.Client) -> None:
    assert expect(client.get("/api/v1/submissions/7/report"), 404).json()["detail"] == "no submission 7"
    assert client.get("/api/v1/submissions/7/report", params={"format": "pdf"}).status_code == 422


pytestmark = pytest.mark.integration


URL = "/api/v1/submissions"


def test_lists_and_steps_show_the_reports_verdict(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    """Lists and steps show the verdict and headline of the report."""
    from wqlab_contracts.enums import SubmissionState
    from wqlab_server.pipeline import advance as pipeline

    scene.devices()
    number = scene.submission()
    scene.builds(number)
    scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    with transaction(sessions) as session:
        session.get_one(Submission, number).state = SubmissionState.COMPARING
    pipeline.advance(sessions, scene.settings, number)
    (target,) = client.get(f"{URL}/{number}/report").json()["targets"]
    (summary,) = client.get(f"{URL}/{number}").json()["targets"]
    assert (summary["verdict"], summary["headline"]) == (target["verdict"], target["headline"])
    assert [row["id"] for row in client.get(URL, params={"verdict": summary["verdict"]}).json()["items"]] == [number]
    others = [verdict for verdict in Verdict if verdict.value != summary["verdict"]]
    assert all(client.get(URL, params={"verdict": verdict.value}).json()["items"] == [] for verdict in others)
    assert json.loads(client.get(f"{URL}/{number}/steps").text)["submission"]["targets"] == [summary]
