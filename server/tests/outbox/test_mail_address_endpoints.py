"""Mail addresses over the API, with the mails and links as a person gets them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import DeliveryState, UserRole
from wqlab_server.http.auth import SCOPE_OF_ROLE, create_token
from wqlab_server.models import AuditEntry, MailAddress, User
from wqlab_server.outbox.send import deliver

from ..support.lab import LabUnderTest
from ..support.personal_mail import account, configure, link_in, mails, measured, send, send_mail_from
from ..support.smtp import MailServer, mail_server

pytestmark = pytest.mark.integration
ADDRESS = "/api/v1/mail-address"
PAGE = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture(autouse=True)
def configured(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    send_mail_from(lab)


class Person:
    """An account that uses the API."""

    def __init__(self, lab: LabUnderTest, name: str, role: UserRole = UserRole.SUBMITTER) -> None:
        self.lab, self.id = lab, account(lab, name, role=role)
        with lab.transaction() as session:
            _, secret = create_token(session, name, [SCOPE_OF_ROLE[role]], user=session.get_one(User, self.id))
        self.headers = {"Authorization": f"Bearer {secret}"}

    def ask(self, method: str, path: str, status: int = 200, body: dict[str, Any] | None = None) -> Any:
        answer = self.lab.client.request(method, path, json=body, headers=self.headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    def confirm(self, server: MailServer, address: str) -> str:
        """Enter an address and confirm it by the link in its mail; return the link's path."""
        self.ask("PUT", ADDRESS, body={"address": address})
        send(self.lab, server)
        link = link_in(server.accepted[-1].get_content())
        assert self.lab.client.post(link).status_code == 200
        return link


def audited(lab: LabUnderTest, prefix: str) -> list[tuple[str, str, str]]:
    with lab.transaction() as session:
        entries = session.scalars(
            select(AuditEntry).where(AuditEntry.resource.like(f"{prefix}%")).order_by(AuditEntry.id)
        )
        return [(entry.action.value, entry.actor, entry.resource) for entry in entries]


def test_nothing_is_sent_to_an_address_before_it_is_confirmed(lab: LabUnderTest) -> None:
    ann = Person(lab, "ann")
    asked = ann.ask("PUT", ADDRESS, body={"address": "ann@example.org"})
    assert (asked["address"], asked["asked_address"]) == (None, "ann@example.org")
    measured(lab, owner="ann")
    with mail_server() as server:
        send(lab, server)
        (mail,) = server.accepted
        assert mail["Subject"] == "[wqlab] Confirm this address for the account ann"
        assert mail["List-Unsubscribe"] is None
        assert len(mail.get_content().splitlines()) <= 60
        link = link_in(mail.get_content())
        shown = lab.client.get(link, headers=PAGE)
        assert shown.status_code == 200
        assert "<button>Confirm</button>" in shown.text
        assert "form-action 'self'" in shown.headers["content-security-policy"]
        assert ann.ask("GET", ADDRESS)["address"] is None  # a mail server that opens links confirms nothing
        for _ in range(2):
            done = lab.client.post(link, headers=PAGE)
            assert "ann@example.org is the confirmed address of the account ann." in done.text
        assert "<button>" not in lab.client.get(link, headers=PAGE).text
        confirmed = ann.ask("GET", ADDRESS)
        assert (confirmed["address"], confirmed["asked_address"]) == ("ann@example.org", None)
        assert (asked["mail_results"], confirmed["mail_results"]) == (False, True)
        measured(lab, 60.0, owner="ann")
        send(lab, server)
    assert [each["To"] for each in server.accepted] == ["ann@example.org"] * 2
    assert audited(lab, "user/ann") == [
        ("mail_address.ask", "ann", "user/ann"), ("mail_address.confirm", "", "user/ann"),
    ]  # fmt: skip


def test_the_link_is_only_in_the_mail(lab: LabUnderTest) -> None:
    """The account could otherwise confirm the address of somebody else."""
    ann, admin = Person(lab, "ann"), Person(lab, "root", UserRole.ADMIN)
    maintainer = Person(lab, "mia", UserRole.MAINTAINER)
    ann.ask("PUT", ADDRESS, body={"address": "bob@example.org"})
    (row,) = mails(lab)
    for person in (ann, admin):
        shown = str(person.ask("GET", f"/api/v1/deliveries/{row.id}"))
        assert "(the link is only in the mail itself)" in shown
        assert "mail-address/confirm" not in shown
    maintainer.ask("GET", f"/api/v1/deliveries/{row.id}", 404)
    assert maintainer.ask("GET", "/api/v1/deliveries")["items"] == []
    assert len(ann.ask("GET", "/api/v1/deliveries")["items"]) == 1


def test_every_attempt_has_the_same_link_and_a_new_one_replaces_it(lab: LabUnderTest) -> None:
    ann = Person(lab, "ann")
    with mail_server() as server:
        ann.ask("PUT", ADDRESS, body={"address": "ann@example.org"})
        server.rcpt.append("451 greylisted")
        send(lab, server)
        assert "451" in ann.ask("GET", ADDRESS)["problem"]
        lab.sql("UPDATE deliveries SET next_at = now()")
        send(lab, server)
        first = link_in(server.accepted[0].get_content())
        ann.ask("PUT", ADDRESS, body={"address": "ann@example.org"})
        send(lab, server)
        second = link_in(server.accepted[1].get_content())
    assert first != second
    assert lab.client.post(first).status_code == 404
    assert "Not Found" in lab.client.get(first, headers=PAGE).text
    lab.sql("UPDATE mail_addresses SET asked_at = asked_at - interval '49 hours'")
    assert lab.client.post(second).status_code == 404  # signed with the time
    forged = f"{second[:-1]}{'0' if second[-1] != '0' else '1'}"
    assert lab.client.post(forged).status_code == 404


def test_a_link_expires_and_ends_with_the_address_and_the_account(lab: LabUnderTest) -> None:
    ann = Person(lab, "ann")
    with mail_server() as server:
        ann.ask("PUT", ADDRESS, body={"address": "ann@example.org"})
        lab.sql("UPDATE mail_addresses SET asked_at = asked_at - interval '49 hours'")
        with lab.transaction() as session:
            row = session.get_one(MailAddress, ann.id)
            key = f"personal/{ann.id}/confirm/{row.asked_at.timestamp():.6f}" if row.asked_at else ""
        lab.sql("UPDATE deliveries SET key = :key", key=key)
        send(lab, server)
        expired = lab.client.post(link_in(server.accepted[-1].get_content()))
        assert expired.status_code == 410
        assert expired.json()["type"].endswith("link-expired")
        link = ann.confirm(server, "ann@example.org")
        lab.sql("UPDATE users SET disabled_at = now()  WHERE name = 'ann'")
        assert lab.client.post(link).status_code == 409
        lab.sql("UPDATE users SET disabled_at = NULL")
        removed = ann.ask("DELETE", ADDRESS)
        assert (removed["address"], removed["confirmed_at"]) == (None, None)
        assert ann.ask("DELETE", ADDRESS) == removed
        assert lab.client.post(link).status_code == 404
        # A link that is sent after the address was removed would confirm it again.
        ann.ask("PUT", ADDRESS, body={"address": "ann@other.example"})
        ann.ask("DELETE", ADDRESS)
        sent = len(server.accepted)
        send(lab, server)
        assert len(server.accepted) == sent
    assert mails(lab)[-1].reason == "this address is not to be confirmed any more"


def test_an_address_stays_in_use_until_the_next_one_is_confirmed(lab: LabUnderTest) -> None:
    ann = Person(lab, "ann")
    with mail_server() as server:
        ann.confirm(server, "ann@example.org")
        both = ann.ask("PUT", ADDRESS, body={"address": "ann@new.example"})
        assert (both["address"], both["asked_address"]) == ("ann@example.org", "ann@new.example")
        back = ann.ask("PUT", ADDRESS, body={"address": "ann@example.org"})
        assert (back["address"], back["asked_address"]) == ("ann@example.org", None)
        ann.confirm(server, "ann@new.example")
    assert ann.ask("GET", ADDRESS)["address"] == "ann@new.example"


@pytest.mark.parametrize(
    "address",
    [
        "ann", "ann@", "Ann <ann@example.org>", "a@b.example,c@d.example", "a@b.example\nBcc: c@d.example",
        "a@b.example\0", "ä@example.org", "linux-kernel@vger.kernel.org", "linux-mm@kvack.org", "wq@lists.example.org",
        "wqlab@lab.example",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_person_is_refused(lab: LabUnderTest, address: str) -> None:
    problem = Person(lab, "ann").ask("PUT", ADDRESS, 422, {"address": address})
    assert problem["errors"][0]["pointer"] == "/address"
    assert mails(lab) == []


def test_an_address_that_does_not_exist_stays_unconfirmed_and_says_why(lab: LabUnderTest) -> None:
    ann = Person(lab, "ann")
    ann.ask("PUT", ADDRESS, body={"address": "nobody@example.org"})
    with mail_server() as server:
        server.refused["nobody@example.org"] = "550 5.1.1 no such user"
        send(lab, server)
    shown = ann.ask("GET", ADDRESS)
    assert (shown["address"], shown["asked_address"]) == (None, "nobody@example.org")
    assert "no such user" in shown["problem"]
    assert mails(lab)[0].state is DeliveryState.GIVEN_UP


def test_links_are_limited_for_each_account_and_each_address(lab: LabUnderTest) -> None:
    victim = "victim@example.org"
    for name in ("a", "b", "c"):
        Person(lab, name).ask("PUT", ADDRESS, body={"address": victim})
    last = Person(lab, "d")
    assert "this address was sent 3 mails" in last.ask("PUT", ADDRESS, 429, {"address": victim.upper()})["detail"]
    for index in range(5):
        last.ask("PUT", ADDRESS, body={"address": f"d{index}@example.org"})
    refused = lab.client.put(ADDRESS, json={"address": "d9@example.org"}, headers=last.headers)
    assert refused.status_code == 429
    assert 86_000 < int(refused.headers["retry-after"]) <= 86_400
    lab.sql("UPDATE deliveries SET created_at = created_at - interval '25 hours'")
    last.ask("PUT", ADDRESS, body={"address": victim})


def test_a_lab_without_mail_says_so(lab: LabUnderTest) -> None:
    configure(lab, smtp_host="")
    ann = Person(lab, "ann")
    assert ann.ask("GET", ADDRESS)["sends_mail"] is False
    assert "this lab sends no mail" in ann.ask("PUT", ADDRESS, 409, {"address": "ann@example.org"})["detail"]


# --- the switch -------------------------------------------------------------------------------------------------


def test_results_are_switched_off_and_on(lab: LabUnderTest) -> None:
    ann = Person(lab, "ann")
    assert "no confirmed mail address" in ann.ask("PATCH", ADDRESS, 409, {"mail_results": True})["detail"]
    with mail_server() as server:
        ann.confirm(server, "ann@example.org")
        assert ann.ask("PATCH", ADDRESS, body={"mail_results": False})["mail_results"] is False
        measured(lab, owner="ann")
        assert ann.ask("PATCH", ADDRESS, body={"mail_results": False})["address"] == "ann@example.org"
        assert ann.ask("PATCH", ADDRESS, body={"mail_results": True})["mail_results"] is True
        number = measured(lab, owner="ann")
        assert [each.submission_id for each in mails(lab) if each.event == "result"] == [number]
        ann.ask("PATCH", ADDRESS, body={"mail_results": False})
        ann.confirm(server, "ann@new.example")
    assert ann.ask("GET", ADDRESS)["mail_results"] is True, "confirming an address asks for the results"
    assert ann.ask("DELETE", ADDRESS)["mail_results"] is False
    switched = [entry for entry in audited(lab, "user/ann") if entry[0] == "mail_address.switch"]
    assert switched == [("mail_address.switch", "ann", "user/ann")] * 3


def test_one_click_switches_results_off_without_a_sign_in(lab: LabUnderTest) -> None:
    ann = Person(lab, "ann")
    with mail_server() as server:
        ann.confirm(server, "ann@example.org")
        measured(lab, 60.0, owner="ann")
        send(lab, server)
        mail = server.accepted[-1]
        link = link_in(mail["List-Unsubscribe"])
        assert link not in mail.get_content()
        shown = lab.client.get(link, headers=PAGE)
        assert "The account ann will get no more mails with its results." in shown.text
        assert "<button>Unsubscribe</button>" in shown.text
        assert ann.ask("GET", ADDRESS)["mail_results"] is True  # a look changes nothing
        lab.sql("UPDATE users SET disabled_at = now() WHERE name = 'ann'")
        for _ in range(2):
            clicked = lab.client.post(link, data={"List-Unsubscribe": "One-Click"})
            assert clicked.status_code == 200
            assert "The account ann gets no more mails with its results." in clicked.text
        lab.sql("UPDATE users SET disabled_at = NULL")
        measured(lab, 60.0, owner="ann")
        assert len([each for each in mails(lab) if each.event == "result"]) == 1
    found = ann.ask("GET", ADDRESS)
    assert (found["address"], found["mail_results"]) == ("ann@example.org", False)
    ended = [entry for entry in audited(lab, "user/ann") if entry[0] == "mail_address.switch"]
    assert ended == [("mail_address.switch", "", "user/ann")]


def test_no_other_token_switches_results_off(lab: LabUnderTest) -> None:
    ann, bob = (account(lab, name, f"{name}@example.org") for name in ("ann", "bob"))
    for name in ("ann", "bob"):
        measured(lab, owner=name)
    with mail_server() as server:
        send(lab, server)
    links = [link_in(mail["List-Unsubscribe"]) for mail in server.accepted]
    assert links[0] != links[1]
    others = [links[0].replace(f"/{ann}-", f"/{number}-") for number in (bob, 99, 9_999_999_999)]
    confirming = [each.replace("unsubscribe", "mail-address/confirm") for each in (links[0], *others)]
    for link in (*others, *confirming):
        assert lab.client.post(link).status_code == 404
        assert lab.client.get(link).json()["status"] == 404
    assert lab.client.post(f"{links[0]}x").status_code == 422


def test_a_lab_without_https_offers_no_one_click(lab: LabUnderTest) -> None:
    configure(lab, public_url="http://lab.test")
    account(lab, "ann", "ann@example.org")
    measured(lab, owner="ann")
    with mail_server() as server:
        configure(lab, smtp_port=server.port)
        deliver(lab.sessions, lab.settings, mails(lab)[0].id)
    (mail,) = server.accepted
    assert mail["List-Unsubscribe"].startswith("<http://lab.test/api/v1/unsubscribe/")
    assert mail["List-Unsubscribe-Post"] is None


def test_an_accepted_mail_is_not_sent_again(lab: LabUnderTest) -> None:
    ann = Person(lab, "ann", UserRole.ADMIN)
    with mail_server() as server:
        ann.confirm(server, "ann@example.org")
        measured(lab, owner="ann")
        send(lab, server)
    refused = ann.ask("POST", f"/api/v1/deliveries/{mails(lab)[-1].id}/replay", 409)
    assert "twice" in refused["detail"]
