"""What the pages say about archives, threads, mail servers and webhook receivers that misbehave.

The worker and the outbox are real; the servers on the other side fail as no real server does on request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import hostile_archive as hostile
import pytest
import yaml
from hostile_archive import HostileServer
from playwright.sync_api import Page, expect
from sqlalchemy import select
from thread_mails import series

from server.tests.support.live_server import Live
from server.tests.support.live_server import expect as expect_status
from server.tests.support.receiver import Answer, Receiver, receiver
from server.tests.support.scene import Scene
from server.tests.support.smtp import MailServer, mail_server
from wqlab_contracts.enums import AttemptOutcome, DeliveryKind, DeliveryState, JobState, Scope
from wqlab_server.models import Delivery, ThreadLookup
from wqlab_server.outbox import mails
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, clock, transaction
from wqlab_worker.claims import jobs
from wqlab_worker.settings import Settings as WorkerSettings

from .conftest import MakePerson
from .outgoing import outcome, write_mail

pytestmark = pytest.mark.scenario
FAULTS = {
    "slow": (Answer(200, after_s=60), "no answer within 15 s"),
    "redirects": (Answer(302, headers={"Location": "http://127.0.0.1:9/inside"}), "redirect"),
}
"""Name of the picture -> first answer of a webhook's receiver, and what the delivery's page says."""
Deliver = Callable[[int], AttemptOutcome | None]


@pytest.fixture
def archive() -> Iterator[HostileServer]:
    with HostileServer().running() as server:
        yield server


@pytest.fixture
def smtp() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Receiver]:
    """A receiver with the answers that a test names."""
    with receiver(*getattr(request, "param", ())) as found:
        yield found


@pytest.fixture
def lab_settings(
    lab_settings: Settings, scene_data_dir: Path, archive: HostileServer, smtp: MailServer, hook: Receiver
) -> Settings:
    known = archive.archive().model_dump(mode="json", exclude_none=True)
    (scene_data_dir / "intake/archives.yaml").write_text(yaml.safe_dump({"archives": [known]}))
    return lab_settings.model_copy(
        update={
            "smtp_host": "127.0.0.1",
            "smtp_port": smtp.port,
            "smtp_tls": "none",
            "mail_from": "wqlab <wqlab@lab.test>",
            "private_webhook_hosts": hook.host,
        }
    )


@pytest.fixture
def look_up(
    live: Live, sessions: SessionFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Page], None]:
    """Return a function that does the work of a worker for the lookup which a page has asked for."""
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("WQLAB_CACHE", str(cache))
    worker = WorkerSettings(
        server_url=live.url, worker_token=live.secrets[Scope.WORKER], cache=cache, state=tmp_path / "state"
    )

    def work(page: Page) -> None:
        while True:
            with transaction(sessions) as session:
                waiting = session.scalars(select(ThreadLookup.id).where(ThreadLookup.state != JobState.FINISHED)).all()
            if waiting:
                with ThreadPoolExecutor(1) as thread:  # the worker runs an event loop, and Playwright's is in this one
                    thread.submit(jobs.process, waiting[0], worker).result()
                return
            page.wait_for_timeout(50)  # the page asks after a pause in typing

    return work


@pytest.fixture
def deliver(sessions: SessionFactory, lab_settings: Settings) -> Deliver:
    """Return a function that makes an attempt at a delivery, whether or not it is due."""
    return partial(outcome, sessions, lab_settings)


HALF = "".join(text for text in series("wq: less", patches=3) if "2/3" not in text)
THREADS: dict[str, tuple[hostile.Answer, str]] = {
    "sends-html": (hostile.html, "archive hostile answers with text/html instead of mails"),
    "missing-patches": (hostile.mails(HALF), "v1 of the series is incomplete: patch 2/3 is missing"),
}
"""Name of the picture -> answer of the archive, and what the form says."""


def ask(page: Page, message_id: str) -> None:
    """Open the form and enter a Message-ID."""
    page.goto("/submit")
    page.get_by_label("URL of lore or Patchwork, Message-ID, or git URL and branch").fill(message_id)


def test_form_says_why_a_thread_cannot_be_taken(
    person: MakePerson, scene: Scene, archive: HostileServer, look_up: Callable[[Page], None], pictures: Path,
    sessions: SessionFactory,
) -> None:  # fmt: skip
    scene.devices()
    someone = person("submit")
    page = someone.page
    for name, (answer, words) in THREADS.items():
        archive.answer = answer
        with transaction(sessions) as session:  # a lookup of the last minutes would be shown again
            for lookup in session.scalars(select(ThreadLookup)):
                session.delete(lookup)
        ask(page, "less-v1-0@x")
        look_up(page)
        status = page.get_by_role("status").filter(has_text="The series could not be taken")
        expect(status, name).to_contain_text(words)
        assert someone.overflow() <= 0
        someone.photograph(pictures, f"bad-thread-{name}")


def test_archive_that_is_gone_is_named(
    person: MakePerson, scene: Scene, archive: HostileServer, look_up: Callable[[Page], None], scene_data_dir: Path,
    unused_port: int,
) -> None:  # fmt: skip
    scene.devices()
    gone = archive.archive(url=f"http://127.0.0.1:{unused_port}/{{message_id}}/", search=None)
    (scene_data_dir / "intake/archives.yaml").write_text(
        yaml.safe_dump({"archives": [gone.model_dump(mode="json", exclude_none=True)]})
    )
    page = person("submit").page
    ask(page, "less-v1-0@x")
    look_up(page)
    status = page.get_by_role("status").filter(has_text="The series could not be taken")
    expect(status).to_contain_text("archive hostile cannot be read")


def test_third_revision_without_the_second_is_shown(
    person: MakePerson, scene: Scene, archive: HostileServer, look_up: Callable[[Page], None], pictures: Path
) -> None:
    scene.devices()
    both = "".join([*series("irq: early"), *series("irq: early", version=3, day=9)])
    archive.answer = hostile.mails(both)
    someone = person("submit")
    ask(someone.page, "early-v1-0@x")
    look_up(someone.page)
    expect(someone.page.get_by_text("This is what would be taken now.")).to_be_visible()
    expect(someone.page.get_by_text("v3").first).to_be_visible()
    someone.photograph(pictures, "bad-thread-third-revision")


@pytest.mark.nightly
def test_mail_server_that_hangs_after_the_mail(
    person: MakePerson, scene: Scene, sessions: SessionFactory, smtp: MailServer, deliver: Deliver, pictures: Path
) -> None:
    number = write_mail(sessions, scene.submission())
    with transaction(sessions) as session:
        mails.approve(session, number, "maintain", clock(session))
    smtp.data = ["hang"]
    assert deliver(number) is not AttemptOutcome.ACCEPTED
    reviewer = person("maintain")
    reviewer.open(f"/deliveries/{number}")
    expect(reviewer.page.get_by_role("group", name="Attempts")).to_contain_text(
        re.compile("may have got it.*it may have been accepted")
    )
    reviewer.photograph(pictures, "bad-smtp-hangs")
    assert len(smtp.accepted) == 1, "it is not sent twice"


@pytest.mark.parametrize(
    ("name", "hook"), [(name, (answer, Answer(200))) for name, (answer, _) in FAULTS.items()], indirect=["hook"]
)
def test_webhook_receiver_that_misbehaves(
    name: str, person: MakePerson, live: Live, hook: Receiver, deliver: Deliver, pictures: Path
) -> None:
    number = send_test(live, hook)
    assert deliver(number) is not AttemptOutcome.ACCEPTED
    owner = person("submit")
    owner.open(f"/deliveries/{number}")
    expect(owner.page.get_by_role("group", name="Attempts")).to_contain_text(FAULTS[name][1])
    owner.photograph(pictures, f"bad-receiver-{name}")
    assert deliver(number) is AttemptOutcome.ACCEPTED
    owner.open(f"/deliveries/{number}")
    expect(owner.page.get_by_text("The receiver has accepted it.")).to_be_visible()
    first, second = hook.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


@pytest.mark.parametrize("hook", [(Answer(503, b"gone"),)], indirect=True)
def test_webhook_receiver_that_is_gone_for_a_day(
    person: MakePerson, live: Live, hook: Receiver, sessions: SessionFactory, deliver: Deliver, pictures: Path
) -> None:
    number = send_test(live, hook)
    state = DeliveryState.WAITING
    while state is DeliveryState.WAITING:
        assert deliver(number) is AttemptOutcome.FAILED
        with transaction(sessions) as session:
            state = session.get_one(Delivery, number).state
    assert state is DeliveryState.GIVEN_UP
    owner = person("submit")
    owner.open("/deliveries?state=given_up")
    owner.page.get_by_role("row", name="webhook.test").get_by_role("link").first.click()
    expect(owner.page.get_by_role("group", name="Attempts")).to_contain_text("gone")
    assert owner.faults_in_views("bad-receiver-gone", pictures) == []
    expect(owner.page.get_by_role("button", name="Send again")).to_be_visible()


def send_test(live: Live, hook: Receiver) -> int:
    """Add a webhook of the user `submit`, and return the number of its test delivery."""
    with live.client(Scope.SUBMIT) as client:
        wanted = {"url": hook.url, "events": ["submission.finished"], "filter": {"mine": True}}
        made = expect_status(client.post("/api/v1/webhooks", json=wanted), 201).json()
        tested = expect_status(client.post(f"/api/v1/webhooks/{made['id']}/test"), 201).json()
    assert tested["kind"] == DeliveryKind.WEBHOOK
    return int(tested["id"])
