"""Targets that the lab proposes for a series, over HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from wqlab_contracts.api.quotes import QuoteBasis
from wqlab_contracts.api.touches import TouchedFile, Touches
from wqlab_contracts.enums import DeviceHealth, JobState, Outcome
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.messages import Artifact, ThreadSeries
from wqlab_contracts.messages.thread_lookups import ThreadLookupJob, ThreadLookupResult
from wqlab_server.models import Device, Submission, ThreadLookup
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.scene import Scene
from ..support.threads import taken_thread

pytestmark = pytest.mark.integration
URL = "/api/v1/touches"
SERIES = (Path(__file__).parents[3] / "kernels/examples/flush-lock-runs.mbox").read_text()
TABLE = """\
touches:
  - name: flush
    paths: [kernel/workqueue.c]
    symbols: [flush_*]
    plans:
      - {plan: flush, settings: [scope=cache, scope=system], asks: Does a flush take fewer locks?}
      - {plan: to-come, asks: Does anything else differ?}
      - {plan: flush, devices: [multi_node], asks: Does a flush take fewer locks on two nodes?}
"""
THREAD = {"thread": {"message_id": "less-v1-1@x"}}


@pytest.fixture(autouse=True)
def table(scene_data_dir: Path, scene: Scene) -> None:
    (scene_data_dir / "testplans/touches.yaml").write_text(TABLE)
    scene.devices()


def propose(client: httpx.Client, series: object) -> Touches:
    answer = client.post(URL, json={"series": series})
    assert answer.status_code == 200, answer.text
    return Touches.model_validate_json(answer.content)


def refusals(client: httpx.Client, body: object) -> list[tuple[str, str]]:
    answer = client.post(URL, json=body)
    assert answer.status_code == 422, answer.text
    return [(error["pointer"], error["detail"]) for error in answer.json()["errors"]]


def test_series_gets_proposals_with_reasons_and_cost(client: httpx.Client, sessions: SessionFactory) -> None:
    found = propose(client, {"mbox": {"text": SERIES}})
    (proposal,) = found.proposals
    assert proposal.target.model_dump(include={"plan", "device_type", "settings"}) == {
        "plan": "flush", "device_type": "tiny", "settings": ["scope=cache", "scope=system"],
    }  # fmt: skip
    assert proposal.asks == ["Does a flush take fewer locks?"]
    assert proposal.because == [TouchedFile(path="kernel/workqueue.c", symbols=["flush_workqueue_prep_pwqs"])]
    assert proposal.quote is not None
    assert (proposal.quote.boots, proposal.quote.settings, proposal.quote.basis) == (4, 2, QuoteBasis.PLANNED)
    assert found.device_s == proposal.quote.device_s and (found.device_s or 0) > 0
    assert [(each.plan, each.why) for each in found.left_out] == [
        ("to-come", "this lab has no plan to-come"),
        ("flush", "this lab has no device type with several NUMA nodes"),
    ]
    with sessions() as session:
        assert session.scalar(select(func.count()).select_from(Submission)) == 0


def test_proposed_targets_can_be_submitted(client: httpx.Client) -> None:
    series = {"mbox": {"text": SERIES}}
    targets = [each.target.model_dump() for each in propose(client, series).proposals]
    made = client.post("/api/v1/submissions", json={"series": series, "tree": "t", "targets": targets})
    assert made.status_code == 201, made.text


def test_series_that_touches_nothing_known(client: httpx.Client) -> None:
    other = SERIES.replace("kernel/workqueue.c", "mm/slub.c")
    found = propose(client, {"mbox": {"text": other}})
    assert found.proposals == [] and found.uncovered == ["mm/slub.c"] and found.device_s is None


def test_type_without_usable_device_is_not_proposed(client: httpx.Client, sessions: SessionFactory) -> None:
    with transaction(sessions) as session:
        for device in session.scalars(select(Device)):
            device.health = DeviceHealth.QUARANTINED
    found = propose(client, {"mbox": {"text": SERIES}})
    assert found.proposals == []
    assert "can measure now (device types: tiny)" in found.left_out[0].why


def test_mailed_series_is_taken_from_the_last_lookup(client: httpx.Client, sessions: SessionFactory) -> None:
    ((pointer, detail),) = refusals(client, {"series": THREAD})
    assert pointer == "/series/thread" and "request GET /api/v1/archives/thread" in detail
    mails = Artifact(sha256="a" * 64, size=1, kind="series", name="thread.mbox")
    result = ThreadLookupResult(outcome=Outcome.PASSED, thread=taken_thread(mails), inspection=inspect(SERIES))
    with transaction(sessions) as session:
        session.add(
            ThreadLookup(
                payload=ThreadLookupJob(series=ThreadSeries(message_id="less-v1-1@x"), archives=[]),
                owner="ada",
                state=JobState.FINISHED,
                outcome=Outcome.PASSED,
                result=result,
                finished_at=func.now(),
            )
        )
    assert [each.target.plan for each in propose(client, THREAD).proposals] == ["flush"]
    assert refusals(client, {"series": {"thread": {"message_id": "less-v1-1@x", "revision": 2}}})


@pytest.mark.parametrize(
    ("series", "pointer", "detail"),
    [
        ({"git": {"url": "https://example.org/t.git", "ref": "b"}}, "/series/git", "git/branches/inspection with"),
        ({"commits": {"baseline": "a" * 40, "candidate": "b" * 40, "ref": "b"}}, "/series", "of a pair of commits"),
        ({"mbox": {"text": "hello"}}, "/series/mbox/text", "the mbox contains no mail"),
        ({"mbox": {"text": "From: a@b\nSubject: hello\n\nwords\n"}}, "/series/mbox/text", "contains a diff"),
        ({"mbox": {"text": SERIES}} | THREAD, "/series", "give exactly one series: an mbox"),
        ({}, "/series", "give exactly one series: an mbox"),
    ],
)
def test_series_that_cannot_be_read_is_refused_with_the_fix(
    client: httpx.Client, series: object, pointer: str, detail: str
) -> None:
    ((found, words),) = refusals(client, {"series": series})
    assert found == pointer and detail in words


def test_unknown_tree_is_refused(client: httpx.Client) -> None:
    ((pointer, detail),) = refusals(client, {"series": {"mbox": {"text": SERIES}}, "tree": "nowhere"})
    assert pointer == "/tree" and "no tree 'nowhere'" in detail


def test_mbox_above_the_size_limit_is_refused(client: httpx.Client) -> None:
    assert client.post(URL, json={"series": {"mbox": {"text": "x" * 20_000_001}}}).status_code == 422
