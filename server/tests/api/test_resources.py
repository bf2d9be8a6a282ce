"""Builds, runs, consoles, samples, devices, plans, health: what each resource shows and refuses."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from wqlab_comparison.csvfile import read_csv
from wqlab_contracts.api.submissions import (
    BootView,
    BuildView,
    DeviceTypeView,
    DeviceView,
    PlanView,
    RunView,
    SampleRow,
    TreeView,
)
from wqlab_contracts.enums import Arm, ArtifactKind, DeviceHealth, FindingKind, Outcome, Scope
from wqlab_contracts.messages import ApplyResult, Artifact
from wqlab_server.models import Apply, ArtifactLink
from wqlab_server.models import Artifact as StoredArtifact
from wqlab_server.storage.db import transaction

from .conftest import Live
from .scene import MBOX, REQUEST, TINY, Scene
from .test_submissions import ok

pytestmark = pytest.mark.integration
LOCKS = {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0}


# --- builds -----------------------------------------------------------------------------------------------------


def test_a_build_shows_its_own_warnings_and_sends_its_files(client: httpx.Client, scene: Scene) -> None:
    ids = scene.builds(scene.submission())
    url = f"/api/v1/builds/{ids[Arm.CANDIDATE]}"
    build = BuildView.model_validate_json(ok(client.get(url)).content)
    assert [warning.text for warning in build.new_warnings] == ["no return"]
    assert build.tree_oid == "c" * 40
    log = ok(client.get(f"{url}/log"))
    assert log.text == "log of candidate\n"
    assert log.headers["content-type"].startswith("text/plain")
    assert ok(client.get(f"{url}/config")).text == "CONFIG_SMP=y\nCONFIG_NEW=y\n"
    part = ok(client.get(f"{url}/log", headers={"Range": "bytes=7-15"}), 206)
    assert (part.text, part.headers["content-range"]) == ("candidate", "bytes 7-15/17")
    assert client.get(f"{url}/log", headers={"Range": "bytes=90-99"}).status_code == 416
    again = client.get(f"{url}/log", headers={"Range": "bytes=0-2", "If-Range": '"another"'})
    assert (again.status_code, again.text) == (200, log.text)


def test_only_artifacts_of_the_build_are_sent(client: httpx.Client, scene: Scene) -> None:
    ids = scene.builds(scene.submission())
    own = client.get(f"/api/v1/builds/{ids[Arm.BASELINE]}").json()["artifacts"][0]["sha256"]
    assert ok(client.get(f"/api/v1/builds/{ids[Arm.BASELINE]}/artifacts/{own}")).text == "log of baseline\n"
    assert client.get(f"/api/v1/builds/{ids[Arm.CANDIDATE]}/artifacts/{own}").status_code == 404
    assert client.get(f"/api/v1/builds/{ids[Arm.BASELINE]}/artifacts/../../etc").status_code in {404, 422}
    (scene.settings.artifact_dir / own[:2] / own).unlink()
    gone = ok(client.get(f"/api/v1/builds/{ids[Arm.BASELINE]}/artifacts/{own}"), 404)
    assert "no longer in the artifact store" in gone.json()["detail"]


def test_a_series_is_sent_as_it_was_applied(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    url = f"/api/v1/submissions/{number}/series"
    assert "not been applied yet" in ok(client.get(url), 404).json()["detail"]
    mbox = scene.artifact(ArtifactKind.SERIES, "series.mbox", MBOX)
    with transaction(scene.sessions) as session:
        apply = session.scalars(select(Apply).where(Apply.submission_id == number)).one()
        apply.result = ApplyResult(outcome=Outcome.PASSED, series_mbox=mbox)
    sent = ok(client.get(url))
    assert sent.text == MBOX
    assert sent.headers["content-type"].startswith("text/plain")


# --- runs -------------------------------------------------------------------------------------------------------


def test_only_artifacts_of_the_run_are_listed_and_sent(client: httpx.Client, scene: Scene, run_id: int) -> None:
    url = f"/api/v1/runs/{run_id}/artifacts"
    assert ok(client.get(url)).json() == []
    raw = scene.artifact(ArtifactKind.RAW_OUTPUT, "block-1-baseline.txt", "what fio said\n")
    other = scene.artifact(ArtifactKind.RAW_OUTPUT, "other.txt", "of nobody\n")
    with transaction(scene.sessions) as session:
        for one in (raw, other):
            session.merge(StoredArtifact(sha256=one.sha256, size=one.size))
        session.flush()
        session.add(ArtifactLink(sha256=raw.sha256, run_id=run_id, kind=raw.kind, name=raw.name))
    assert [Artifact.model_validate(each) for each in ok(client.get(url)).json()] == [raw]
    sent = ok(client.get(f"{url}/{raw.sha256}"))
    assert sent.content == b"what fio said\n"
    assert sent.headers["content-disposition"].startswith("attachment")
    assert ok(client.get(f"{url}/{other.sha256}"), 404).json()["detail"]


@pytest.fixture
def run_id(scene: Scene) -> int:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    return scene.measured(number, LOCKS)


def test_a_run_shows_boots_and_findings(client: httpx.Client, run_id: int) -> None:
    run = RunView.model_validate_json(ok(client.get(f"/api/v1/runs/{run_id}")).content)
    assert (run.blocks_planned, run.blocks_completed, run.device) == (2, 2, "tiny-1")
    assert [boot.valid for boot in run.boots] == [False, True, True, True, True]
    assert [(finding.kind, finding.arm) for finding in run.findings] == [(FindingKind.PANIC, Arm.CANDIDATE)]
    listed = ok(client.get(f"/api/v1/runs/{run_id}/boots")).json()
    assert [BootView.model_validate(each) for each in listed] == run.boots


def test_samples_as_json_are_of_valid_boots_unless_asked_for(client: httpx.Client, scene: Scene, run_id: int) -> None:
    lost = scene.boot(run_id, block=1, attempt=9, valid=False, values={"locks": 1.0})
    url = f"/api/v1/runs/{run_id}/samples"
    rows = [SampleRow.model_validate(each) for each in ok(client.get(url)).json()]
    assert len(rows) == 4 * 2 * 2 * 3
    assert lost not in {row.boot_id for row in rows}
    everything = ok(client.get(url, params={"discarded": True})).json()
    assert lost in {row["boot_id"] for row in everything}
    assert client.get(url, params={"format": "csv", "discarded": True}).status_code == 422


def test_samples_as_csv_are_what_compare_reads(client: httpx.Client, run_id: int, tmp_path: Path) -> None:
    answer = ok(client.get(f"/api/v1/runs/{run_id}/samples", params={"format": "csv"}))
    assert answer.headers["content-type"].startswith("text/csv")
    file = tmp_path / "run.csv"
    file.write_text(answer.text)
    samples = read_csv(file)
    assert len(samples) == 48
    assert set(samples.role.words) == {"primary", "explanatory"}
    assert set(samples.evidence.words) == {"mechanism", "none"}
    assert samples.value.max() == 101.0
    assert int(samples.warmup.sum()) == 16


def test_samples_as_csv_before_the_first_boot_are_a_header(client: httpx.Client, scene: Scene) -> None:
    run_id = scene.run_id(scene.submission())
    text = ok(client.get(f"/api/v1/runs/{run_id}/samples", params={"format": "csv"})).text
    assert text.startswith("device_type,device,plan,")
    assert text.count("\n") == 1


def test_a_console_is_sent_byte_for_byte_from_any_offset(client: httpx.Client, scene: Scene, run_id: int) -> None:
    boot = scene.boot(run_id, block=7)
    for offset in range(0, 400, 4):
        scene.console(boot, offset, b"a\xff\0\n")
    url = f"/api/v1/runs/{run_id}/console"
    whole = ok(client.get(url, params={"boot": boot}))
    assert whole.content == b"a\xff\0\n" * 100
    assert whole.headers["content-type"].startswith("text/plain")
    assert ok(client.get(url, params={"boot": boot, "offset": 398})).content == b"\0\n"
    assert ok(client.get(url, params={"boot": boot, "offset": 400})).content == b""
    newest = ok(client.get(url))
    assert (newest.headers["x-wqlab-boot"], newest.content) == (str(boot), whole.content)


def test_a_console_of_a_run_that_is_over_ends_whatever_its_boot_says(live: Live, scene: Scene, run_id: int) -> None:
    boot = scene.boot(run_id, block=7, finished=False)
    scene.console(boot, 0, b"one ")
    with (
        live.client(Scope.READ) as client,
        client.stream("GET", f"/api/v1/runs/{run_id}/console", params={"boot": boot, "follow": True}) as answer,
    ):
        pieces = answer.iter_raw()
        assert next(pieces) == b"one "
        assert list(pieces) == []


def test_a_console_is_followed_while_it_grows(live: Live, scene: Scene) -> None:
    scene.devices()
    run_id = scene.run_id(scene.submission())
    boot = scene.boot(run_id, finished=False)
    scene.console(boot, 0, b"one ")
    with (
        live.client(Scope.READ) as client,
        client.stream("GET", f"/api/v1/runs/{run_id}/console", params={"boot": boot, "follow": True}) as answer,
    ):
        pieces = answer.iter_raw()
        assert next(pieces) == b"one "
        threading.Thread(target=scene.console, args=(boot, 4, b"two")).start()
        assert next(pieces) == b"two"
        scene.end_boot(boot)
        assert list(pieces) == []


def test_consoles_that_are_not_there(client: httpx.Client, scene: Scene, run_id: int) -> None:
    waiting = scene.run_id(scene.submission())
    assert "no boot yet" in ok(client.get(f"/api/v1/runs/{waiting}/console"), 404).json()["detail"]
    other = client.get(f"/api/v1/runs/{run_id}").json()["boots"][0]["id"]
    assert client.get(f"/api/v1/runs/{waiting}/console", params={"boot": other}).status_code == 404


# --- the lab ----------------------------------------------------------------------------------------------------


def test_devices_show_health_lease_and_type(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    run_id = scene.run_id(scene.submission())
    scene.lease(run_id, "tiny-2")
    devices = [DeviceView.model_validate(each) for each in ok(client.get("/api/v1/devices")).json()]
    assert [(each.name, each.lease.run_id if each.lease else None) for each in devices] == [
        ("tiny-1", None),
        ("tiny-2", run_id),
    ]
    kind = DeviceTypeView.model_validate(ok(client.get("/api/v1/device-types")).json()[0])
    assert (kind.free, kind.devices, kind.problems) == (1, ["tiny-1", "tiny-2"], [])
    assert "did you mean tiny-1?" in ok(client.get("/api/v1/devices/tny-1"), 404).json()["detail"]
    assert ok(client.get("/api/v1/device-types/tiny")).json()["topology"]["cores_per_l3"] == 2
    assert client.get("/api/v1/devices", params={"device_type": "other"}).json() == []


def test_a_device_is_quarantined_with_a_reason_and_released(live: Live, scene: Scene) -> None:
    scene.devices()
    url = "/api/v1/devices/tiny-1"
    with live.client(Scope.SUBMIT) as client:
        assert client.post(f"{url}/quarantine", json={"reason": "noise"}).status_code == 403
    with live.client(Scope.MAINTAIN) as client:
        assert client.post(f"{url}/quarantine", json={"reason": ""}).status_code == 422
        odd = ok(client.post(f"{url}/quarantine", json={"reason": "fan\0noise"})).json()
        assert odd["health_reason"] == "fan\ufffdnoise (maintain)", "the database takes no NUL"
        out = DeviceView.model_validate(ok(client.post(f"{url}/quarantine", json={"reason": "fan noise"})).json())
        assert (out.health, out.health_reason) == (DeviceHealth.QUARANTINED, "fan noise (maintain)")
        assert client.get("/api/v1/device-types/tiny").json()["free"] == 1
        back = DeviceView.model_validate(ok(client.post(f"{url}/release")).json())
        assert back.health is DeviceHealth.UNKNOWN
        assert ok(client.post(f"{url}/release")).json()["health"] == "unknown"
        assert client.post("/api/v1/devices/none/release").status_code == 404


def test_plans_come_with_their_script_and_trees_with_their_head(client: httpx.Client, scene: Scene) -> None:
    plan = PlanView.model_validate(ok(client.get("/api/v1/plans/flush")).json())
    assert plan.script == "echo measuring\n"
    assert [each["plan"]["name"] for each in ok(client.get("/api/v1/plans")).json()] == ["flush", "health-check"]
    assert "did you mean flush?" in ok(client.get("/api/v1/plans/flash"), 404).json()["detail"]
    trees = [TreeView.model_validate(each) for each in ok(client.get("/api/v1/trees")).json()]
    assert [(each.tree.name, each.base_commit) for each in trees] == [("t", None)]
    scene.builds(scene.submission())
    assert client.get("/api/v1/trees").json()[0]["base_commit"] is None, "a series can stand on a base of its own"


# --- health, limits, schema -------------------------------------------------------------------------------------


def test_readiness_names_what_is_missing(live: Live, data_dir: Path) -> None:
    with live.client(None) as client:
        assert ok(client.get("/healthz")).json() == {"status": "ok"}
        checks = ok(client.get("/readyz"), 503).json()["checks"]
        assert [name for name, check in checks.items() if not check["ok"]] == ["broker"]
        (data_dir / "device-types" / "new.yaml").write_text(TINY.replace("summary", "sumary"))
        live.app.state.data._checked_at = float("-inf")
        folder = client.get("/readyz").json()["checks"]["data_folder"]
        assert folder["ok"]
        assert any("device-types/new.yaml:2" in problem for problem in folder["problems"])
    with live.client() as client:
        types = client.get("/api/v1/device-types").json()
        assert [each["name"] for each in types] == ["tiny"]
        assert types[0]["problems"] == folder["problems"]


def test_a_type_added_by_hand_can_be_asked_for_without_a_restart(live: Live, scene: Scene, data_dir: Path) -> None:
    wanted = REQUEST | {"targets": [{"plan": "flush", "device_type": "other"}]}
    with live.client() as client:
        assert client.post("/api/v1/submissions", json=wanted).status_code == 422
        (data_dir / "device-types" / "other.yaml").write_text(TINY.replace("tiny", "other"))
        live.app.state.data._checked_at = float("-inf")
        assert client.post("/api/v1/submissions", json=wanted).status_code == 201


def test_metrics_count_the_lab_and_the_requests(client: httpx.Client, scene: Scene) -> None:
    scene.devices(DeviceHealth.SUSPECT)
    number = scene.submission()
    client.get(f"/api/v1/submissions/{number}")
    text = ok(client.get("/metrics")).text
    assert 'wqlab_jobs{kind="apply",state="queued"} 1.0' in text
    assert 'wqlab_submissions{state="applying"} 1.0' in text
    assert 'wqlab_devices{device_type="tiny",health="suspect"} 2.0' in text
    assert "wqlab_database_up 1.0" in text
    assert 'wqlab_http_request_seconds_count{operation="get_submission",status="200"} 1.0' in text


def test_a_body_that_is_too_large_is_refused(client: httpx.Client) -> None:
    huge = REQUEST | {"series": {"mbox": {"text": MBOX + "x" * 25_000_000}}}
    answer = ok(client.post("/api/v1/submissions", json=huge), 413)
    assert "git URL" in answer.json()["detail"]


def test_unknown_paths_and_methods_are_problems(client: httpx.Client) -> None:
    assert ok(client.get("/api/v1/nothing"), 404).headers["content-type"] == "application/problem+json"
    assert ok(client.delete("/api/v1/submissions"), 405).headers["content-type"] == "application/problem+json"
