"""`wqlab mail-address` against the real server and a real SMTP server."""

from __future__ import annotations

import pytest
from commandline import Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.lab import LabUnderTest
from server.tests.support.personal_mail import link_in, send, send_mail_from
from server.tests.support.smtp import mail_server

pytestmark = pytest.mark.integration


@pytest.fixture
def mail_address(ask: Wqlab, real_lab: LabUnderTest) -> Wqlab:
    """Run `wqlab mail-address` in a lab that sends mail."""
    send_mail_from(real_lab)
    return lambda *arguments: ask("mail-address", *arguments)


def test_address_is_entered_switched_and_removed(mail_address: Wqlab, real_lab: LabUnderTest) -> None:
    assert mail_address().out == "no mail address\n"
    asked = mail_address("dev@example.org")
    assert asked.out.startswith("dev@example.org is confirmed by the link in its mail, until 20")
    with mail_server() as server:
        send(real_lab, server)
        assert real_lab.client.post(link_in(server.accepted[0].get_content())).status_code == 200
    assert mail_address().out == "results are mailed to dev@example.org\n"
    assert mail_address("--no-results").out == "results are not mailed to dev@example.org\n"
    assert mail_address("--results").out == "results are mailed to dev@example.org\n"
    assert mail_address("--remove").out == "no mail address\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dev",), "not a mail address"),
        (("a",), "at least 3 characters"),
        (("dev@example.org", "--remove"), "exclude each other"),
        (("--no-results", "--remove"), "exclude each other"),
        (("--results",), "you have no confirmed mail address"),
    ],
)
def test_mistakes_are_told(mail_address: Wqlab, arguments: tuple[str, ...], words: str) -> None:
    ended = mail_address(*arguments)
    assert ended.code == 2
    assert words in ended.err
