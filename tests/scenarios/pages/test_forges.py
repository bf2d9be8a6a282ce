"""The page about forges, in Chromium on the real API: what a maintainer sees, and a poll on request."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi import FastAPI
from playwright.sync_api import expect
from sqlalchemy import select
from sqlalchemy.orm import Session

from server.tests.support.live_server import Live
from server.tests.support.scene import Scene
from wqlab_contracts.enums import DeliveryKind, DeliveryState, HeadDecision, JobState
from wqlab_contracts.forges_file import FILE
from wqlab_server.app import create_app
from wqlab_server.models import (
    FORGE_SOURCE,
    Delivery,
    ForgeChange,
    ForgeEvent,
    ForgeHead,
    ForgeRepository,
    HeadReading,
    Order,
)
from wqlab_server.outbox.forge_messages import ForgeStatus
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, clock, transaction

from .conftest import MakePerson

pytestmark = pytest.mark.scenario
LONG = "workqueue: wake one idle worker of the pool whose CPU has the last-level cache of the queueing CPU, not any"


@pytest.fixture
def app(sessions: SessionFactory, lab_settings: Settings, scene_data_dir: Path, tmp_path: Path) -> FastAPI:
    def forge(name: str, kind: str, **more: Any) -> dict[str, Any]:
        return {
            "name": name, "kind": kind, "url": f"https://{name}.example.org", "repository": "kernel/workqueue/linux",
            "secret_file": f"{tmp_path}/secret", "token_file": f"{tmp_path}/token", "user": "wqlab-bot",
            "tree": "t", "owner": "admin", **more,
        }  # fmt: skip

    forges = [forge("hub", "gitlab", label="wqlab: ok"), forge("quiet", "github", may_spend="listed", users=["ada"])]
    (scene_data_dir / FILE).write_text(yaml.safe_dump({"forges": forges}))
    return create_app(lab_settings, sessions)


@pytest.fixture
def told(live: Live, sessions: SessionFactory, scene: Scene) -> int:
    """Fill the forge `hub`: events, a poll that found something, an error, and heads in each state."""
    number = scene.submission()
    with transaction(sessions) as session:
        now = clock(session)
        session.add(
            ForgeRepository(
                forge="hub", url="u", start={}, due_at=now + timedelta(minutes=9), polled_at=now - timedelta(minutes=6),
                missed=2, missed_at=now - timedelta(hours=3), refused_at=now - timedelta(minutes=20),
                refused="401: the header X-Gitlab-Token is not the secret: set it to the content of secret_file",
            )
        )  # fmt: skip
        session.add(
            ForgeEvent(
                forge="hub", delivery="1", event="Merge_Request_Hook", answer="taken: pull/9",
                received_at=now - timedelta(minutes=2),
            )
        )  # fmt: skip
        _head(session, 7, "a", "mallory", from_fork=True, decision=HeadDecision.WAITS,
              reason="waits for the label 'wqlab: ok' by somebody with write access: mallory may not write to the "
                     "repository")  # fmt: skip
        _head(session, 8, "b", "ada", reading=JobState.QUEUED)
        _head(session, 9, "c", "bo", reading=JobState.FINISHED, submission_id=number, decision=HeadDecision.SUBMITTED)
        _head(session, 10, "d", "eve", reading=JobState.FINISHED, decision=HeadDecision.WRONG,
              reason=".wqlab.yaml:3: targets[1].parms: unknown field; did you mean params?")  # fmt: skip
        status = ForgeStatus(
            forge="hub", commit="c" * 40, context="wqlab", state="pending", target_url="http://lab.test/r/1",
            description=f"submission {number}: 1 target",
        )  # fmt: skip
        session.add(
            Delivery(
                key="s", kind=DeliveryKind.FORGE_STATUS, event="pending", destination="forge hub", message_id="s",
                body=status.model_dump_json(), state=DeliveryState.DELIVERED, finished_at=now,
            )
        )  # fmt: skip
    return number


def _head(
    session: Session, number: int, digit: str, author: str, *, from_fork: bool = False,
    reading: JobState | None = None, submission_id: int | None = None, **head: Any,
) -> None:  # fmt: skip
    change = ForgeChange(
        forge="hub", key=f"pull/{number}", number=number, branch="for-next", title=LONG, author=author,
        from_fork=from_fork, head=digit * 40,
    )  # fmt: skip
    session.add(change)
    session.flush()
    row = ForgeHead(change_id=change.id, head=digit * 40, base_branch="for-next", trusted=not from_fork, **head)
    session.add(row)
    session.flush()
    if reading is not None:
        session.add(HeadReading(state=reading, key=str(row.id)))
    if submission_id is not None:
        session.add(Order(source=FORGE_SOURCE, key=str(row.id), submission_id=submission_id))


def test_a_maintainer_sees_what_each_forge_waits_for(person: MakePerson, told: int, sessions: SessionFactory) -> None:
    maintainer = person("maintain")
    page = maintainer.page
    maintainer.open("/")
    page.get_by_role("button", name="maintain").click()
    page.get_by_role("link", name="Forges").click()
    expect(page.get_by_role("heading", level=1, name="Forges")).to_be_visible()
    expect(page.get_by_text("Heads: 1 being read, 1 waiting, 1 being measured, 1 not measured.")).to_be_visible()
    expect(page.get_by_text("Merge_Request_Hook, taken: pull/9")).to_be_visible()
    expect(page.get_by_text("2 changes found by polls")).to_be_visible()
    expect(page.get_by_text("on GitHub, tree t")).to_be_visible()
    expect(page.get_by_text("401: the header X-Gitlab-Token is not the secret")).to_be_visible()
    unfinished = page.get_by_role("table", name="Not finished: 3 heads")
    waiting = unfinished.get_by_role("row", name="Pull request 7")
    expect(waiting).to_contain_text("waits for the label 'wqlab: ok'")
    expect(waiting).to_contain_text("mallory (fork)")
    expect(unfinished.get_by_role("link", name=f"Submission {told}")).to_be_visible()
    refused = page.get_by_role("table", name="Not measured: 1 head").get_by_role("row", name="Pull request 10")
    expect(refused).to_contain_text("did you mean params?")
    link = refused.get_by_role("link", name="Pull request 10")
    expect(link).to_have_attribute("href", "https://hub.example.org/kernel/workqueue/linux/-/merge_requests/10")

    page.get_by_role("button", name="Poll now: quiet").click()
    expect(page.get_by_text("Forge quiet is polled")).to_be_visible()
    with transaction(sessions) as session:
        due_at = session.scalars(select(ForgeRepository.due_at).where(ForgeRepository.forge == "quiet")).one()
        assert due_at is not None and due_at <= clock(session)


def test_others_do_not_see_forges(person: MakePerson) -> None:
    submitter = person("submit")
    submitter.open("/forges")
    expect(submitter.page.get_by_text("Only maintainers see the forges")).to_be_visible()


def test_the_page_is_accessible_and_fits(person: MakePerson, told: int, pictures: Path) -> None:
    maintainer = person("maintain")
    maintainer.open("/forges")
    expect(maintainer.page.get_by_role("table").first).to_be_visible()
    maintainer.settle()
    faults = maintainer.faults_in_views("forges", pictures)
    assert not faults, "\n".join(faults)
