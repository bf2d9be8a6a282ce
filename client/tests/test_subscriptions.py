"""`wqlab subscription` against the real server and a real SMTP server."""

from __future__ import annotations

import pytest
from commandline import Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.lab import LabUnderTest
from server.tests.support.smtp import mail_server
from server.tests.support.subscribers import link_in, send, send_mail_from

pytestmark = pytest.mark.integration


@pytest.fixture
def subscription(ask: Wqlab, real_lab: LabUnderTest) -> Wqlab:
    """Run `wqlab subscription` in a lab that sends mail."""
    send_mail_from(real_lab)
    return lambda *arguments: ask("subscription", *arguments)


def test_from_the_address_to_the_last_subscription(subscription: Wqlab, real_lab: LabUnderTest) -> None:
    assert subscription("list").err == "no subscriptions; add one with `wqlab subscription add`\n"
    added = subscription("add", "--mine")
    assert added.out == "subscription 1: my series, by mail\n"
    assert "no confirmed mail address yet" in added.err
    assert subscription("address").out == "no mail address\n"
    asked = subscription("address", "dev@example.org")
    assert asked.out.startswith("dev@example.org is confirmed by the link in its mail, until 20")
    with mail_server() as server:
        send(real_lab, server)
        assert real_lab.client.post(link_in(server.accepted[0].get_content())).status_code == 200
    assert subscription("address").out == "results are mailed to dev@example.org\n"
    added = subscription("add", "--regressions", "locks", "--device-type", "single")
    assert (added.out, added.err) == ("subscription 2: regressions of locks on single, by mail\n", "")
    assert subscription("add", "--device-type", "single").out == "subscription 3: results on single, by mail\n"
    rows = [line.split() for line in subscription("list").out.splitlines()]
    assert [row[0] for row in rows] == ["ID", "3", "2", "1"]
    assert subscription("remove", "2").out == "subscription 2 is removed\n"
    assert len(subscription("list").out.splitlines()) == 3
    assert subscription("address", "--remove").out == "no mail address\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add",), "write one of --mine"),
        (("add", "--mine", "--device-type", "single"), "write one of --mine"),
        (("add", "--mine", "--regressions", "locks"), "write one of --mine"),
        (("add", "--device-type", "singel"), "did you mean single?"),
        (("add", "--device-type", "a b"), "device_type"),
        (("add", "--mine", "--webhook", "7"), "you have no webhook 7"),
        (("address", "dev"), "not a mail address"),
        (("address", "dev@example.org", "--remove"), "exclude each other"),
        (("remove", "9"), "no subscription 9"),
    ],
)
def test_mistakes_are_told(subscription: Wqlab, arguments: tuple[str, ...], words: str) -> None:
    ended = subscription(*arguments)
    assert ended.code == 2
    assert words in ended.err
