"""Quotes over HTTP."""

from __future__ import annotations

import httpx
import pytest
from sqlalchemy import func, select

from wqlab_contracts.api.quotes import Quote, QuoteBasis
from wqlab_contracts.enums import Arm, DeviceHealth, Scope
from wqlab_server.models import Apply, BootValue, Run, Submission
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live
from ..support.scene import MBOX, REQUEST, Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/quotes"


def request_quote(client: httpx.Client, **changes: object) -> Quote:
    answer = client.post(URL, json=REQUEST | changes)
    assert answer.status_code == 200, answer.text
    return Quote.model_validate_json(answer.content)


def test_quote_creates_nothing(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    quote = request_quote(client)
    assert quote.errors == []
    (target,) = quote.targets
    assert (target.plan, target.device_type, target.blocks, target.boots) == ("flush", "tiny", 2, 4)
    assert target.basis is QuoteBasis.PLANNED
    assert (target.device_counts.good, target.queue_position) == (2, 1)
    assert target.detectable is not None
    assert (target.detectable.metric, target.detectable.effect) == ("locks", None)
    with sessions() as session:
        assert session.scalar(select(func.count()).select_from(Submission)) == 0


def test_quote_uses_measured_times(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    run_id = scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    scene.finish(number)
    with transaction(sessions) as session:
        session.get_one(Run, run_id).compared_at = func.now()
        assert session.scalar(select(func.count()).select_from(BootValue)) == 4
    quote = request_quote(client)
    (target,) = quote.targets
    assert (target.basis, target.measured_boots) == (QuoteBasis.MEASURED, 4)
    assert target.boot_s == pytest.approx(30.0, abs=2.0)
    assert target.device_s == pytest.approx(4 * (target.boot_s or 0), abs=1.0)
    assert target.detectable is not None
    assert (target.detectable.blocks_measured, target.detectable.exact) == (2, True)
    assert (quote.build_s, quote.basis) == (120.0, QuoteBasis.MEASURED)
    assert quote.starts_at is not None
    assert quote.ends_at is not None
    assert (quote.starts_at - quote.at).total_seconds() == pytest.approx(120.0)


def test_settings_study_boots_only_the_baseline(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    (target,) = request_quote(client, series=None).targets
    assert (target.blocks, target.boots, target.settings) == (2, 2, 2)


def test_quote_lists_all_mistakes_and_quotes_valid_targets(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    targets = [{"plan": "flush", "device_type": "tiny"}, {"plan": "flash", "device_type": "huge"}]
    wrong = {"tree": "nowhere", "recipe": "mesure", "targets": targets}
    quote = request_quote(client, **wrong)
    refused = client.post("/api/v1/submissions", json=REQUEST | wrong)
    assert refused.status_code == 422
    assert [error.model_dump() for error in quote.errors] == refused.json()["errors"]
    assert {error.pointer for error in quote.errors} == {
        "/tree",
        "/recipe",
        "/targets/1/plan",
        "/targets/1/device_type",
    }
    assert [target.index for target in quote.targets] == [0]


def test_body_that_does_not_fit_the_schema_is_refused(client: httpx.Client) -> None:
    assert client.post(URL, json={"tree": "t"}).status_code == 422
    assert client.post(URL, content=b"{", headers={"Content-Type": "application/json"}).status_code == 400


def test_quarantined_devices_cannot_start(client: httpx.Client, scene: Scene) -> None:
    scene.devices(DeviceHealth.QUARANTINED)
    (target,) = request_quote(client).targets
    assert target.device_counts.quarantined == 2
    assert (target.starts_at, target.ends_at) == (None, None)
    assert "no run can start" in target.notes[0]


def test_quote_needs_scope_read(live: Live, scene: Scene) -> None:
    scene.devices()
    with live.client(Scope.READ) as reader:
        assert reader.post(URL, json=REQUEST).status_code == 200
    with live.client(None) as nobody:
        assert nobody.post(URL, json=REQUEST).status_code == 401


def test_existing_baseline_is_reused(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    number = scene.submission(request=REQUEST | {"series": None})
    scene.builds(number)
    with transaction(sessions) as session:
        apply = session.scalars(select(Apply).where(Apply.submission_id == number)).one()
        assert apply.result is not None
        apply.result = apply.result.model_copy(
            update={"candidate": None}
        )  # the tree's head: commit aaa..., tree object bbb...
    (build,) = request_quote(client, series=None).builds
    assert (build.kernels, build.reused, build.build_s) == (1, 1, 0.0)
    (build,) = request_quote(client).builds
    assert (build.kernels, build.reused, build.build_s) == (2, 1, 60.0)
    for commit, reused in (("a" * 40, 1), ("f" * 40, 0)):
        text = f"{MBOX}\nbase-commit: {commit}\n"
        (build,) = request_quote(client, series={"mbox": {"text": text}}).builds
        assert build.reused == reused
