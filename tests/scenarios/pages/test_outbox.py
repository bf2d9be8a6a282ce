"""The pages about mails, deliveries, webhooks and labs, in Chromium on the real API.

The receivers are a real SMTP server and a real HTTP server. A test sends a delivery itself, as the outbox would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from standardwebhooks import Webhook as Signer

from server.tests.support.live_server import Live
from server.tests.support.live_server import expect as expect_status
from server.tests.support.receiver import Answer, Receiver, receiver
from server.tests.support.scene import Scene
from server.tests.support.smtp import MailServer, mail_server
from wqlab_contracts.enums import AttemptOutcome, DeliveryKind, DeliveryState
from wqlab_server.outbox import deliveries
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, clock, transaction

from .conftest import MakePerson
from .outgoing import LETTER, SUBJECT, outcome, write_mail

pytestmark = pytest.mark.scenario


@pytest.fixture
def smtp() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture
def hook() -> Iterator[Receiver]:
    """A receiver that fails once."""
    with receiver(Answer(503, b"busy, come back later"), Answer(200)) as found:
        yield found


@pytest.fixture
def lab_settings(lab_settings: Settings, smtp: MailServer, hook: Receiver) -> Settings:
    return lab_settings.model_copy(
        update={
            "lab_broker_url": "rediss://lab.test:6380/0",
            "lab_url": "https://lab.test:8443",
            "smtp_host": "127.0.0.1",
            "smtp_port": smtp.port,
            "smtp_tls": "none",
            "mail_from": "wqlab <wqlab@lab.test>",
            "private_webhook_hosts": hook.host,
        }
    )


def test_a_mail_is_changed_approved_and_sent(
    person: MakePerson, scene: Scene, sessions: SessionFactory, lab_settings: Settings, smtp: MailServer
) -> None:
    number = write_mail(sessions, scene.submission())
    reviewer = person("maintain")
    page = reviewer.page
    reviewer.open("/")
    page.get_by_role("button", name="1 mail waits").click()
    page.get_by_role("link", name="Review mails 1 mail waits").click()
    page.get_by_role("link", name=SUBJECT).click()
    expect(page.get_by_role("heading", level=1, name=SUBJECT)).to_be_visible()
    expect(page.get_by_role("group", name="Text of the mail")).to_contain_text(LETTER.splitlines()[0])

    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Cc").fill("linux-kernel@vger.example")
    page.get_by_label("Text", exact=True).fill("Tested-by: the lab\n")
    expect(page.get_by_text("1 of 60 lines")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(re.compile("Tested-by.*collect as a trailer")).last).to_be_visible()
    page.get_by_label("Text", exact=True).fill("Two topologies are faster.\n")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("group", name="Text of the mail")).to_contain_text("Two topologies are faster.")

    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_have_text(
        ["Ada Lovelace <ada@kernel.example>", "linux-kernel@vger.example"]
    )
    assert smtp.accepted == []
    dialog.get_by_role("button", name="Approve and send").click()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    assert outcome(sessions, lab_settings, number) is AttemptOutcome.ACCEPTED
    expect(page.get_by_text("The receiver has accepted it.")).to_be_visible()
    (sent,) = smtp.accepted
    assert sent.get_content().replace("\r\n", "\n") == "Two topologies are faster.\n"
    assert smtp.recipients == [["ada@kernel.example", "linux-kernel@vger.example"]]

    expect(page.get_by_role("button", name="mail waits")).to_have_count(0)
    reviewer.open("/deliveries?kind=mail")
    expect(page.get_by_role("row", name=SUBJECT)).to_contain_text("maintain")


def test_a_mail_is_dropped_with_a_reason(person: MakePerson, scene: Scene, sessions: SessionFactory) -> None:
    number = write_mail(sessions, scene.submission())
    reviewer = person("maintain")
    page = reviewer.page
    reviewer.open(f"/deliveries/{number}")
    page.get_by_role("button", name="Drop").click()
    page.get_by_label("Reason").fill("a noisy device")
    page.get_by_role("button", name="Drop the mail").click()
    expect(page.get_by_text("dropped by maintain: a noisy device")).to_be_visible()
    page.get_by_role("button", name="maintain").first.click()
    page.get_by_role("link", name="Review mails").click()
    expect(page.get_by_text("No delivery matches")).to_be_visible()


def test_a_webhook_is_added_tested_sent_again_and_removed(
    person: MakePerson, sessions: SessionFactory, lab_settings: Settings, hook: Receiver
) -> None:
    owner = person("submit")
    page = owner.page
    owner.open("/webhooks")
    page.get_by_label("URL").fill("http://192.0.2.1/hook")
    page.get_by_role("button", name="Add webhook").click()
    expect(page.get_by_text(re.compile("write https://: the events would travel unencrypted")).last).to_be_visible()
    page.get_by_label("URL").fill(hook.url)
    page.get_by_role("button", name="Add webhook").click()
    shown = page.get_by_role("group", name="Secret: secret")
    expect(shown).to_contain_text("whsec_")
    secret = shown.inner_text().strip()

    page.get_by_role("button", name="Test: webhook 1").click()
    expect(page.get_by_role("heading", level=1, name="webhook.test")).to_be_visible()
    number = int(page.url.rpartition("/")[2])
    assert outcome(sessions, lab_settings, number) is AttemptOutcome.FAILED
    attempts = page.get_by_role("group", name="Attempts")
    expect(attempts).to_contain_text("the receiver answered 503")
    expect(attempts).to_contain_text("busy, come back later")
    assert outcome(sessions, lab_settings, number) is AttemptOutcome.ACCEPTED
    expect(page.get_by_text("The receiver has accepted it.")).to_be_visible()
    assert Signer(secret).verify(hook.requests[-1].body, hook.requests[-1].headers)["type"] == "webhook.test"

    page.get_by_role("button", name="Send again").click()
    page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    expect(page.get_by_text("replayed by submit")).to_be_visible()
    owner.open("/deliveries?state=waiting")
    expect(page.get_by_role("row", name="webhook.test")).to_have_count(1)
    page.get_by_label("State").select_option("given_up")
    expect(page.get_by_text("No delivery matches")).to_be_visible()

    owner.open("/webhooks")
    page.get_by_role("button", name="Pause: webhook 1").click()
    expect(page.get_by_role("row", name=hook.url)).to_contain_text("(paused)")
    page.get_by_role("button", name="Resume: webhook 1").click()
    expect(page.get_by_role("button", name="Pause: webhook 1")).to_be_visible()
    page.get_by_role("button", name="New secret: webhook 1").click()
    page.get_by_role("button", name="Make a new secret").click()
    expect(shown).to_contain_text("whsec_")
    assert shown.inner_text().strip() != secret
    page.get_by_role("button", name="Remove: webhook 1").click()
    page.get_by_role("button", name="Remove the webhook").click()
    expect(page.get_by_text("No webhooks")).to_be_visible()


def test_an_invited_lab_joins_and_is_removed(person: MakePerson, live: Live) -> None:
    admin = person("admin")
    page = admin.page
    admin.open("/admin/labs")
    page.get_by_label("Name of the lab").fill("berlin")
    page.get_by_role("button", name="Invite", exact=True).click()
    command = page.get_by_role("group", name="Secret: lab's host")
    expect(command).to_contain_text("wqlab lab join https://lab.test:8443 --token wqj_")
    token = command.inner_text().partition("--token ")[2].split()[0]
    with live.client(None) as host:
        expect_status(host.post("/api/v1/labs/join", json={"token": token}))
    admin.open("/admin/labs")
    assert token not in page.content()
    expect(page.get_by_role("row", name="berlin")).to_contain_text("admin")
    page.get_by_label("Name of the lab").fill("berlin")
    page.get_by_role("button", name="Invite", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("lab berlin has joined at")
    page.get_by_role("button", name="Remove berlin").click()
    page.get_by_role("button", name="Remove the lab").click()
    expect(page.get_by_role("row", name="berlin")).to_contain_text("removed")


@pytest.mark.parametrize(
    ("name", "webhooks", "reviews", "administers"),
    [
        ("read", False, False, False),
        pytest.param("submit", True, False, False, marks=pytest.mark.nightly),
        pytest.param("maintain", True, True, False, marks=pytest.mark.nightly),
        ("admin", True, True, True),
    ],
)
def test_each_role_gets_the_pages_that_the_server_allows(
    person: MakePerson, scene: Scene, sessions: SessionFactory,
    name: str, webhooks: bool, reviews: bool, administers: bool,
) -> None:  # fmt: skip
    number = write_mail(sessions, scene.submission())
    someone = person(name)
    page = someone.page
    someone.open("/webhooks")
    expect(page.get_by_role("button", name="Add webhook")).to_have_count(int(webhooks))
    page.get_by_role("button", name=name).first.click()
    expect(page.get_by_role("link", name=re.compile("^Review"))).to_have_count(int(reviews))
    someone.open("/deliveries?kind=mail")
    expect(page.get_by_role("row", name=SUBJECT)).to_have_count(int(reviews))
    if reviews:
        someone.open(f"/deliveries/{number}")
        expect(page.get_by_role("button", name="Approve")).to_be_visible()
    someone.open("/admin/labs")
    expect(page.get_by_role("button", name="Invite", exact=True)).to_have_count(int(administers))


PAGES = {
    "review": "/deliveries?kind=mail&state=waiting_for_review",
    "mail": "/deliveries/{mail}",
    "mail-edited": "/deliveries/{mail}",
    "deliveries": "/deliveries",
    "delivery": "/deliveries/{failed}",
    "webhooks": "/webhooks",
    "labs": "/admin/labs",
}


def test_pages_are_accessible_and_fit_in_both_themes_and_widths(
    person: MakePerson, scene: Scene, sessions: SessionFactory, lab_settings: Settings, hook: Receiver, live: Live,
    pictures: Path,
) -> None:  # fmt: skip
    found = fill(scene, sessions, lab_settings, hook, live)
    admin = person("admin")
    faults: list[str] = []
    for name, path in PAGES.items():
        admin.open(path.format(**found))
        if name == "mail-edited":
            admin.page.get_by_role("button", name="Edit").click()
        faults += admin.faults_in_views(name, pictures)
    assert not faults, "\n".join(faults)


def fill(scene: Scene, sessions: SessionFactory, settings: Settings, hook: Receiver, live: Live) -> dict[str, int]:
    """Write mails and deliveries in every state; return the number of a mail that waits and of a failed delivery."""
    scene.devices()
    submission = scene.submission()
    mail = write_mail(sessions, submission)
    write_mail(sessions, submission, f"{SUBJECT} {'with a long subject ' * 6}", "long")
    dropped, given_up = (write_mail(sessions, submission, SUBJECT, key) for key in ("dropped", "given-up"))
    with live.client() as client:
        expect_status(client.post(f"/api/v1/deliveries/{dropped}/drop", json={"reason": "a noisy device"}))
        for body in (
            {"url": hook.url, "events": ["submission.finished", "regression.found"]},
            {"url": f"https://ci.example.org/{'long/' * 30}hook", "events": ["lab.lost"],
             "filter": {"mine": True, "device_types": ["tiny"], "plans": ["flush"]}},
        ):  # fmt: skip
            expect_status(client.post("/api/v1/webhooks", json=body), 201)
        failed: int = expect_status(client.post("/api/v1/webhooks/1/test"), 201).json()["id"]
    with transaction(sessions) as session:
        row = deliveries.lock(session, given_up)
        row.state, row.reason = DeliveryState.GIVEN_UP, "550 5.1.1 no such user"
        delivered = deliveries.write(
            session, DeliveryKind.WEBHOOK, "delivered", event="submission.finished", destination=hook.url,
            message_id="msg_delivered", webhook_id=1, submission_id=submission, body='{"type": "x"}',
            state=DeliveryState.WAITING, next_at=clock(session),
        )  # fmt: skip
        assert delivered is not None
    assert outcome(sessions, settings, failed) is AttemptOutcome.FAILED
    assert outcome(sessions, settings, delivered) is AttemptOutcome.ACCEPTED
    return {"mail": mail, "failed": failed}
