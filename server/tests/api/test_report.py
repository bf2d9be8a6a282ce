"""The report assembled from rows, and its formats over HTTP."""

from __future__ import annotations

import httpx
import pytest

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Arm, Outcome, SubmissionState, Verdict
from wqlab_server.reports.configdiff import config_difference

from .scene import Scene
from .test_submissions import ok

LOCKS = {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0}


def report(client: httpx.Client, number: int) -> Report:
    return Report.model_validate_json(ok(client.get(f"/api/v1/submissions/{number}/report")).content)


@pytest.mark.integration
def test_the_report_says_everything_that_was_measured(client: httpx.Client, scene: Scene) -> None:
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
    # The candidate panicked in a boot that was repeated: that comes before any figure.
    assert target.verdict is Verdict.FAILED
    assert "panic" in target.headline
    assert found.summary == "fails on tiny (emulated)"
    assert target.reasons == ["locks: improvement: exactly 33 and 5"]
    assert {(value.arm, value.block, value.value) for value in target.values} == {
        (arm, block, LOCKS[arm]) for arm in Arm for block in range(2)
    }
    assert (target.blocks_planned, target.blocks_completed, target.discarded) == (2, 2, {Arm.CANDIDATE: 1})
    assert [(each.metric, each.reason) for each in target.unsupported] == [("bw", "no counter (in 1 of 3 boots)")]
    assert target.overhead_s == 1.5
    assert target.environment is not None
    assert target.environment.device == "tiny-1"
    assert target.environment.commands == {"fsync": "fio --fsync=1"}
    assert target.environment.build_id_gnu == {arm: f"{arm.value}-id" for arm in Arm}
    # The same failure of boot and block is told once.
    assert [(each.block, each.arm, each.attempt, each.failure.summary) for each in found.attempts] == [
        (0, Arm.CANDIDATE, 0, "panic in flush")
    ]
    assert found.config_diff == ["CONFIG_NEW absent -> y"]
    config = client.get(f"/api/v1/builds/{builds[Arm.BASELINE]}").json()["artifacts"][1]["sha256"]
    assert found.config_sha256 == config


@pytest.mark.integration
def test_an_unfinished_submission_has_a_report_that_says_so(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    found = report(client, number)
    assert found.submission.state is SubmissionState.APPLYING
    assert [target.comparisons for target in found.targets] == [[]]
    text = ok(client.get(f"/api/v1/submissions/{number}/report", params={"format": "text"}))
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert "NOT FINISHED (applying)" in text.text
    assert "not compared: that is done once" in " ".join(text.text.split())


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
    ],
)
def test_every_format_is_sent(client: httpx.Client, scene: Scene, name: str, media: str, words: str) -> None:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    scene.measured(number, LOCKS)
    scene.finish(number)
    answer = ok(client.get(f"/api/v1/submissions/{number}/report", params={"format": name}))
    assert answer.headers["content-type"] == media
    assert words in answer.text
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.integration
def test_reports_that_are_not_there(client: httpx.Client) -> None:
    assert ok(client.get("/api/v1/submissions/7/report"), 404).json()["detail"] == "no submission 7"
    assert client.get("/api/v1/submissions/7/report", params={"format": "pdf"}).status_code == 422


def test_configurations_are_compared_by_option() -> None:
    before = '# made by make\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C="x"\nCONFIG_D=5\n'
    after = 'CONFIG_C="x"\nCONFIG_B=m\nCONFIG_D=6\n# CONFIG_A is not set\nCONFIG_E=y\n'
    assert config_difference(before, after) == [
        "CONFIG_A y -> n",
        "CONFIG_B n -> m",
        "CONFIG_D 5 -> 6",
        "CONFIG_E absent -> y",
    ]
    assert config_difference(before, "\n".join(reversed(before.splitlines()))) == []
