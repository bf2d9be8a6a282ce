"""The commit that a bisection has found is told to webhooks, as a sequel to the regression."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.api.webhooks import WebhookFilter
from wqlab_contracts.enums import BisectionState as State
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import DeliveryKind, OutboxEvent, UserRole
from wqlab_server.models import Delivery, Webhook
from wqlab_server.outbox.webhooks import new_secret

from ..support.bisecting import Planted, begin, grow, steps, to_end
from ..support.people import add_user
from ..support.watching import Upstream, WatchingLab

pytestmark = pytest.mark.integration


def add_webhooks(watching: WatchingLab) -> None:
    """Add webhooks: of this plan, and of another device type."""
    with watching.transaction() as session:
        add_user(session, "ann", UserRole.ADMIN)
        filters = {
            "plan": WebhookFilter(plans=["locks"]),
            "other": WebhookFilter(device_types=["other"]),
        }
        for name, wanted in filters.items():
            session.add(
                Webhook(
                    owner="ann", url=f"https://{name}.example/", filter=wanted, secret=new_secret(),
                    events=[OutboxEvent.CULPRIT_FOUND.value],
                )
            )  # fmt: skip


def told(watching: WatchingLab) -> dict[str, dict[str, Any]]:
    """Return destination -> body of each delivery about a culprit."""
    watching.tick()
    with watching.transaction() as session:
        rows = session.scalars(
            select(Delivery).where(Delivery.event == OutboxEvent.CULPRIT_FOUND.value).order_by(Delivery.id)
        ).all()
        assert len({row.destination for row in rows}) == len(rows), "each gets it once"
        return {row.destination: json.loads(row.body or "") for row in rows}


def test_the_commit_is_named_once_it_is_found(watching: WatchingLab, upstream: Upstream) -> None:
    add_webhooks(watching)
    mail = {"smtp_host": "127.0.0.1", "smtp_tls": "none", "mail_from": "l@lab.test", "mail_operator": "a@lab.test"}
    watching.settings = watching.settings.model_copy(update=mail)
    commits = grow(upstream, 9)
    late = set(commits[4:])
    Planted(watching, lambda commit: 6 / 34 if commit in late else 0.0)
    found = to_end(watching, begin(watching, commits[0], "for-next"))
    assert found.state is State.FOUND, found.reason
    bodies = told(watching)
    assert set(bodies) == {"https://plan.example/"}
    body = bodies["https://plan.example/"]
    data = body["data"]
    first, *_, confirmed = steps(watching, found.id)
    assert (first.kind, confirmed.kind) == (Kind.ENDS, Kind.CONFIRM)
    assert (body["type"], data["bisection"], data["url"]) == (
        "culprit.found", found.id, f"http://lab.test/bisections/{found.id}",
    )  # fmt: skip
    assert (data["submission"], data["confirmed_by"]) == (first.submission_id, confirmed.submission_id)
    assert (data["culprit"], data["first"], data["state"]) == (commits[4], commits[4], "found")
    assert (data["verdict"], data["effect"], data["shift"], data["watch"]) == ("regression", 6, None, None)
    assert data["headline"] == (
        f'{data["plan"]} on {data["device_type"]}: {commits[4][:12]} ("workqueue: raise max_active to 516") '
        f'changes {data["metric"]} by +6 {data["effect_unit"]}'
    )  # fmt: skip
    assert told(watching).keys() == bodies.keys()
    with watching.transaction() as session:
        mails = session.scalars(select(Delivery).where(Delivery.kind == DeliveryKind.MAIL)).all()
        assert [each for each in mails if each.event == "culprit"] == [], "it is a count of an emulated device"


@pytest.mark.nightly
def test_a_commit_that_makes_it_better_is_told(watching: WatchingLab, upstream: Upstream) -> None:
    add_webhooks(watching)
    commits = grow(upstream, 2)
    Planted(watching, lambda commit: -6 / 34 if commit == commits[2] else 0.0)
    found = to_end(watching, begin(watching, commits[0], "for-next"))
    assert (found.state, found.culprit) == (State.FOUND, commits[2]), found.reason
    bodies = told(watching)
    assert set(bodies) == {"https://plan.example/"}
    assert bodies["https://plan.example/"]["data"]["verdict"] == "improvement"


@pytest.mark.nightly
def test_a_range_and_a_failure_are_told_too(watching: WatchingLab, upstream: Upstream) -> None:
    add_webhooks(watching)
    commits = grow(upstream, 4)
    late = set(commits[2:])
    planted = Planted(watching, oops=lambda commit, _boot: "BUG: list corruption" if commit in late else "")
    planted.broken = {commits[2]}
    found = to_end(watching, begin(watching, commits[0], "for-next", metric=None, failure=True))
    assert found.state is State.RANGE, found.reason
    bodies = told(watching)
    assert set(bodies) == {"https://plan.example/"}
    data = bodies["https://plan.example/"]["data"]
    assert (data["state"], data["first"], data["culprit"]) == ("range", commits[2], commits[3])
    assert (data["metric"], data["effect"], data["effect_unit"]) == (None, None, "")
    assert data["failure"] and data["headline"].endswith(f" on: {data['failure']}")


@pytest.mark.nightly
def test_a_bisection_without_result_tells_nobody(watching: WatchingLab, upstream: Upstream) -> None:
    add_webhooks(watching)
    commits = grow(upstream, 2)
    Planted(watching)
    found = to_end(watching, begin(watching, commits[0], "for-next"))
    assert found.state is State.NO_DIFFERENCE
    assert told(watching) == {}
