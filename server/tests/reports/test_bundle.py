"""The bundle of a finished submission: its files, signature and bytes."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from wqlab_contracts.bundle import Manifest, RunRecord
from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import ApplyResult, BuildResult, RunResult
from wqlab_server.reports.bundle import BundleWriter
from wqlab_server.storage.signing import SigningKey

from ..support.lab import LabUnderTest, RunSession, ScriptedWorker, failed, passing_apply, passing_build

pytestmark = pytest.mark.integration
MBOX = b"From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] workqueue: take fewer locks\n"


def fetch(lab: LabUnderTest, submission_id: int, query: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {lab.token}"}
    answer: httpx.Response = lab.client.get(f"/api/v1/submissions/{submission_id}/bundle{query}", headers=headers)
    return answer


def unpack(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def apply_with_series(job: Any, worker: ScriptedWorker) -> ApplyResult:
    result = passing_apply(job, worker)
    if job.series is None:
        return result
    return result.model_copy(update={"series_mbox": worker.upload(ArtifactKind.SERIES, "series.mbox", MBOX)})


def build_with_config(job: Any, worker: ScriptedWorker) -> BuildResult:
    result = passing_build(job, worker)
    config = worker.upload(ArtifactKind.CONFIG, "config", b"CONFIG_SMP=y\n")
    return result.model_copy(update={"artifacts": [*result.artifacts, config], "reproducer": "tuxmake"})


def discard_once(run: RunSession) -> RunResult:
    """Discard the first block after a failed boot of the candidate, then measure every block, with a console each."""
    first = run.remaining[0]
    broken = failed(ErrorKind.INFRASTRUCTURE, "the connection broke").model_copy(update={"of_variant": True})
    run.send_failed_boot(first, Arm.CANDIDATE, broken)
    run.console(run.first_key.model_copy(update={"arm": Arm.CANDIDATE, "position": first.arms.index(Arm.CANDIDATE)}),
                0, b"Linux version 6.12\r\n\x1b[0mrest")  # fmt: skip
    for plan in run.remaining:
        run.send_block(plan.model_copy(update={"first_attempt": 1}) if plan.block == first.block else plan)
    return RunResult(outcome=Outcome.PASSED)


@pytest.fixture
def finished(lab: LabUnderTest) -> int:
    """A finished submission with a discarded block, a console and every kind of file."""
    lab.mark_all_good()
    lab.worker.on_apply, lab.worker.on_build, lab.worker.on_run = apply_with_series, build_with_config, discard_once
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    return submission_id


def test_bundle_contains_what_the_verdicts_depend_on(lab: LabUnderTest, finished: int) -> None:
    answer = fetch(lab, finished)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == 'attachment; filename="wqlab-1.bundle.zip"'
    files = unpack(answer.content)
    run_id = lab.runs(finished)[0].id
    assert {
        "README.txt",
        "report.json",
        "report.txt",
        "series.mbox",
        "builds/baseline-measure-x86_64-emulated/config",
        "builds/candidate-measure-x86_64-emulated/build.json",
        f"runs/{run_id}/run.json",
        f"runs/{run_id}/samples.csv",
        f"runs/{run_id}/discarded.csv",
        f"runs/{run_id}/scripts/run.sh",
    } <= files.keys()
    assert files["series.mbox"] == MBOX
    assert b'"\\(.value.sha256)  \\(.key)"\' manifest.json | sha256sum' in files["README.txt"]
    assert json.loads(files["builds/candidate-measure-x86_64-emulated/build.json"])["reproducer"] == "tuxmake"
    assert files[f"runs/{run_id}/scripts/run.sh"] == b"#!/bin/sh\n"
    consoles = {name: content for name, content in files.items() if "/consoles/" in name}
    assert len(consoles) == 5
    assert b"Linux version 6.12\r\n\x1b[0mrest" in consoles.values()
    record = RunRecord.model_validate_json(files[f"runs/{run_id}/run.json"])
    assert [(each.finished, each.arm) for each in record.attempts if not each.finished] == [(False, Arm.CANDIDATE)]
    assert [boot.valid for boot in record.boots].count(True) == 4
    headers = {"Authorization": f"Bearer {lab.token}"}
    samples = lab.client.get(f"/api/v1/runs/{run_id}/samples?format=csv", headers=headers).content
    assert files[f"runs/{run_id}/samples.csv"] == samples
    assert files[f"runs/{run_id}/discarded.csv"].count(b"\n") == 1  # the failed boot gave no samples
    assert json.loads(files["report.json"])["targets"][0]["discarded"] == {"candidate": 1}


def test_manifest_has_every_hash_and_stock_ssh_verifies_it(lab: LabUnderTest, finished: int, tmp_path: Path) -> None:
    files = unpack(fetch(lab, finished).content)
    manifest = Manifest.model_validate_json(files["manifest.json"])
    assert manifest.submission == finished
    assert manifest.absent == {}
    listed = {name: (file.sha256, file.size) for name, file in manifest.files.items()}
    assert listed == {
        name: (hashlib.sha256(content).hexdigest(), len(content))
        for name, content in files.items()
        if not name.startswith("manifest.json")
    }
    key = lab.client.get("/api/v1/lab-key").raise_for_status().text
    (tmp_path / "signers").write_text(f"lab {key}")
    (tmp_path / "signature").write_bytes(files["manifest.json.sig"])
    verify = ["ssh-keygen", "-Y", "verify", "-f", tmp_path / "signers", "-I", "lab", "-n", "wqlab-bundle",
              "-s", tmp_path / "signature"]  # fmt: skip
    assert subprocess.run(verify, input=files["manifest.json"], check=False, capture_output=True).returncode == 0
    assert subprocess.run(verify, input=files["manifest.json"] + b" ", check=False, capture_output=True).returncode


def test_equal_content_gives_equal_bytes(lab: LabUnderTest, finished: int) -> None:
    assert fetch(lab, finished).content == fetch(lab, finished).content


def test_kernels_are_included_on_request(lab: LabUnderTest, finished: int) -> None:
    kernel = "builds/candidate-measure-x86_64-emulated/bzImage"
    assert kernel not in unpack(fetch(lab, finished).content)
    assert unpack(fetch(lab, finished, "?kernels=true").content)[kernel].startswith(b"kernel ")


def test_artifact_that_is_no_longer_stored_is_listed_as_absent(lab: LabUnderTest, finished: int) -> None:
    sha256 = hashlib.sha256(MBOX).hexdigest()
    (lab.settings.artifact_dir / sha256[:2] / sha256).unlink()
    files = unpack(fetch(lab, finished).content)
    assert "series.mbox" not in files
    assert sha256 in Manifest.model_validate_json(files["manifest.json"]).absent["series.mbox"]


def test_console_that_is_no_longer_stored_is_listed_as_absent(lab: LabUnderTest, finished: int) -> None:
    lab.sql("DELETE FROM console_chunks")
    manifest = Manifest.model_validate_json(unpack(fetch(lab, finished).content)["manifest.json"])
    ((name, reason),) = manifest.absent.items()
    assert name.startswith("runs/2/consoles/block000-boot")
    assert "no longer has all of its" in reason


def test_only_finished_submissions_have_a_bundle(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    answer = fetch(lab, submission_id)
    assert answer.status_code == 409
    assert "exists once it is finished" in answer.json()["detail"]
    assert fetch(lab, 99).status_code == 404
    assert lab.client.get(f"/api/v1/submissions/{submission_id}/bundle").status_code == 401


def test_bundle_of_a_series_that_does_not_apply_has_no_samples(lab: LabUnderTest) -> None:
    lab.worker.on_apply = lambda job, worker: ApplyResult(
        outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "the series does not apply"), toolchain="gcc 12.2.0"
    )
    submission_id = lab.submit("locks@device")
    lab.until_idle()
    files = unpack(fetch(lab, submission_id).content)
    assert files["runs/2/samples.csv"].count(b"\n") == 1
    record = RunRecord.model_validate_json(files["runs/2/run.json"])
    assert (record.compared, record.boots) == (False, [])


def test_lab_without_a_key_serves_no_bundle(lab: LabUnderTest, finished: int, tmp_path: Path) -> None:
    for key, text in ((None, "no signing key"), (tmp_path / "none", "cannot read its public key")):
        lab.app.state.settings = lab.settings.model_copy(update={"signing_key_file": key})
        for answer in (fetch(lab, finished), lab.client.get("/api/v1/lab-key")):
            assert answer.status_code == 503
            assert text in answer.json()["detail"]


def test_key_that_cannot_sign_is_reported_before_the_stream(lab: LabUnderTest, finished: int, tmp_path: Path) -> None:
    key = lab.settings.signing_key_file
    assert key is not None
    (tmp_path / "key.pub").write_bytes(key.with_name(f"{key.name}.pub").read_bytes())
    (tmp_path / "key").write_text("not a key\n")
    lab.app.state.settings = lab.settings.model_copy(update={"signing_key_file": tmp_path / "key"})
    answer = fetch(lab, finished)
    assert (answer.status_code, "ssh-keygen cannot sign" in answer.json()["detail"]) == (503, True)


def test_number_of_bundles_at_once_is_limited(lab: LabUnderTest, finished: int) -> None:
    """Each takes a thread that compresses; without a limit, one visitor could take all threads of the server."""
    slots = lab.app.state.slow_responses.bundles
    assert slots.per_client < slots.total < 10
    slots.per_client = 0
    answer = fetch(lab, finished)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")


def test_large_console_is_streamed_in_pieces(lab: LabUnderTest, finished: int) -> None:
    """No chunk is larger than a few stored pieces, and all chunks together are the file."""
    lab.sql(
        "INSERT INTO console_chunks SELECT (SELECT max(id) FROM boots), 65536 * n, "
        "decode(string_agg(md5(n::text || i::text), ''), 'hex') FROM generate_series(0, 99) n, "
        "generate_series(1, 4096) i GROUP BY n"
    )
    writer = BundleWriter(
        lab.sessions, lab.app.state.store, SigningKey.read(lab.settings.signing_key_file), "http://lab.test", finished
    )
    pieces = list(writer.chunks())
    assert max(map(len, pieces)) < 300_000
    largest = max(unpack(b"".join(pieces)).values(), key=len)
    assert len(largest) == 100 * 65536
