"""`wqlab webhook` against the real server and a real receiver."""

from __future__ import annotations

import json

import pytest
from commandline import Wqlab
from server_fixtures import *  # noqa: F403 - fixtures
from standardwebhooks import Webhook

from server.tests.support.lab import LabUnderTest
from server.tests.support.receiver import Answer, receiver
from wqlab_server.outbox.send import deliver

pytestmark = pytest.mark.integration


def test_webhook_from_add_to_replay(ask: Wqlab, real_lab: LabUnderTest) -> None:
    with receiver(Answer(500, b"no\x1b[2J"), Answer(200)) as target:
        private = real_lab.settings.model_copy(update={"private_webhook_hosts": target.host})
        real_lab.app.state.settings = real_lab.settings = private
        added = ask("webhook", "add", target.url, "--event", "submission.accepted", "--plan", "locks", "--mine")
        assert added.code == 0, added.err
        secret = added.out.strip()
        assert added.err == f"webhook 1 of {target.url}; its secret, shown only once:\n"
        assert ask("webhook", "list").out.splitlines()[1].split()[-1] == "submission.accepted"
        real_lab.submit("locks@single")
        real_lab.tick()
        assert "waiting" in ask("webhook", "deliveries", "--webhook", "1").out
        deliver(real_lab.sessions, private, 1)
        shown = ask("webhook", "delivery", "1").out
        assert "1. 20" in shown and "failed, status 500: the receiver answered 500" in shown and "\x1b" not in shown
        assert json.loads(shown.splitlines()[-1])["data"]["submission"] == 1
        real_lab.sql("UPDATE deliveries SET next_at = now()")
        deliver(real_lab.sessions, private, 1)
        assert "delivered" in ask("webhook", "deliveries", "--state", "delivered").out
        replayed = ask("webhook", "replay", "1")
        assert replayed.out == "delivery 1 is sent again; see `wqlab webhook delivery 1`\n"
        assert ask("webhook", "replay", "1").code == 2
        rotated = ask("webhook", "rotate", "1")
        assert "signed with the previous secret too until" in rotated.err
        deliver(real_lab.sessions, private, 1)
        assert ask("webhook", "pause", "1").out.startswith("webhook 1 is paused")
        assert ask("webhook", "list").out.splitlines()[1].endswith("(paused)")
        real_lab.submit("locks@single")
        real_lab.tick()
        assert len(ask("webhook", "deliveries").out.splitlines()) == 2  # the header and what was sent before
        assert ask("webhook", "resume", "1").out == "webhook 1 gets events again\n"
        tested = ask("webhook", "test", "1")
        assert tested.out == "delivery 2 is being sent; see `wqlab webhook delivery 2`\n"
        deliver(real_lab.sessions, private, 2)
        assert json.loads(target.requests[-1].body)["type"] == "webhook.test"
    for key in (secret, rotated.out.strip()):
        assert Webhook(key).verify(target.requests[-1].body, target.requests[-1].headers)
    assert ask("webhook", "remove", "1").out == "webhook 1 is removed\n"
    assert ask("webhook", "list").err == "no webhooks; add one with `wqlab webhook add`\n"


def test_mistakes_are_told(ask: Wqlab) -> None:
    ended = ask("webhook", "add", "http://hook.example/")
    assert ended.code == 2
    assert "write https://" in ended.err
    assert "device_types" in ask("webhook", "add", "https://hook.example/", "--device-type", "a b").err
    assert ask("webhook", "delivery", "9").code == 2
    assert ask("webhook", "deliveries", "--submission", "7").err == "no delivery matches\n"
