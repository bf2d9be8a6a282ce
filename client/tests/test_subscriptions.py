"""`wqlab subscription` against the real server and a real SMTP server."""

from __future__ import annotations

from typing import Protocol

import pytest
from commandline import CommandResult, Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.lab import LabUnderTest
from server.tests.support.smtp import mail_server
from server.tests.support.subscribers import link_in, send, send_mail_from

pytestmark = pytest.mark.integration


class Command(Protocol):
    def __call__(self, *arguments: str) -> CommandResult: ...


@pytest.fixture
def ask(wqlab: Wqlab, url: str, real_lab: LabUnderTest) -> Command:
    """Run the command on the real server as the administrator dev."""
    send_mail_from(real_lab)
    return lambda *arguments: wqlab("--url", url, "--token", real_lab.token, "subscription", *arguments)


def test_from_the_address_to_the_last_subscription(ask: Command, real_lab: LabUnderTest) -> None:
    assert ask("list").err == "no subscriptions; add one with `wqlab subscription add`\n"
    added = ask("add", "--mine")
    assert added.out == "subscription 1: my series, by mail\n"
    assert "no confirmed mail address yet" in added.err
    assert ask("address").out == "no mail address\n"
    asked = ask("address", "dev@example.org")
    assert asked.out.startswith("dev@example.org is confirmed by the link in its mail, until 20")
    with mail_server() as server:
        send(real_lab, server)
        assert real_lab.client.post(link_in(server.accepted[0].get_content())).status_code == 200
    assert ask("address").out == "results are mailed to dev@example.org\n"
    added = ask("add", "--regressions", "locks", "--device-type", "single")
    assert (added.out, added.err) == ("subscription 2: regressions of locks on single, by mail\n", "")
    assert ask("add", "--device-type", "single").out == "subscription 3: results on single, by mail\n"
    rows = [line.split() for line in ask("list").out.splitlines()]
    assert [row[0] for row in rows] == ["ID", "3", "2", "1"]
    assert ask("remove", "2").out == "subscription 2 is removed\n"
    assert len(ask("list").out.splitlines()) == 3
    assert ask("address", "--remove").out == "no mail address\n"


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
def test_mistakes_are_told(ask: Command, arguments: tuple[str, ...], words: str) -> None:
    ended = ask(*arguments)
    assert ended.code == 2
    assert words in ended.err
