"""Webhooks posted to a real receiver: signatures, limits, redirects and private addresses."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from wqlab_contracts.enums import AttemptOutcome
from wqlab_server.outbox.post_webhook import ANSWER_LIMIT, ANSWER_SHOWN, Letter, mistake, post
from wqlab_server.outbox.webhooks import new_secret

from ..support.receiver import Answer, Receiver, receiver

BODY = json.dumps({"type": "submission.finished", "data": {"title": "wörkqueue"}})


def letter(target: Receiver, *secrets: str) -> Letter:
    return Letter(target.url, "msg_1", BODY, secrets or (new_secret(),))


def now() -> datetime:
    return datetime.now(UTC)


def test_the_receiver_verifies_body_and_time_with_either_secret() -> None:
    old, new = new_secret(), new_secret()
    with receiver() as target:
        result = post(letter(target, new, old), now(), frozenset({target.host}))
    assert (result.outcome, result.status, result.answer) == (AttemptOutcome.ACCEPTED, 200, "thanks")
    (request,) = target.requests
    assert request.headers["webhook-id"] == "msg_1"
    assert request.headers["content-type"] == "application/json"
    for secret in (old, new):
        assert Webhook(secret).verify(request.body, request.headers) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(request.body, request.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new).verify(request.body.replace("finished", "accepted"), request.headers)


def test_an_address_that_the_operator_does_not_list_is_not_connected_to() -> None:
    with receiver() as target:
        for hosts in (frozenset[str](), frozenset({"127.0.0.1"}), frozenset({f"127.0.0.1:{target.port + 1}"})):
            assert post(letter(target), now(), hosts).outcome is AttemptOutcome.REFUSED  # plain http
            secure = Letter(target.url.replace("http:", "https:"), "msg_1", BODY, (new_secret(),))
            result = post(secure, now(), hosts)
            assert result.outcome is AttemptOutcome.FAILED
            assert "127.0.0.1 is the private address 127.0.0.1" in result.problem
            assert "WQLAB_PRIVATE_WEBHOOK_HOSTS" in result.problem
    assert target.requests == []


def test_a_name_with_a_private_address_is_not_connected_to() -> None:
    with receiver() as target:
        url = f"https://hook.example:{target.port}/"
        result = post(Letter(url, "msg_1", BODY, (new_secret(),)), now(), frozenset(), find=lambda *_: ["127.0.0.1"])
    assert result.problem.startswith("hook.example is the private address 127.0.0.1")
    assert target.requests == []


def test_a_name_is_resolved_once() -> None:
    """A name that changes its address between check and connection would reach the lab's network."""
    found = iter([["127.0.0.1"], ["10.0.0.1"]])
    with receiver() as target:
        url = f"http://hook.example:{target.port}/hook"
        listed = frozenset({f"hook.example:{target.port}"})
        result = post(Letter(url, "msg_1", BODY, (new_secret(),)), now(), listed, find=lambda *_: next(found))
    assert result.outcome is AttemptOutcome.ACCEPTED
    assert target.requests[0].headers["host"] == f"hook.example:{target.port}"
    assert next(found) == ["10.0.0.1"]


def test_a_redirect_is_not_followed() -> None:
    with (
        receiver() as inside,
        receiver(Answer(302, headers={"Location": inside.url})) as target,
    ):
        result = post(letter(target), now(), frozenset({target.host, inside.host}))
    assert (result.outcome, result.status) == (AttemptOutcome.FAILED, 302)
    assert result.problem == "302: redirects are not followed; change the URL"
    assert inside.requests == []


@pytest.mark.parametrize("slow", [Answer(after_s=60), Answer(body=b"x" * 100, drip_s=0.2)])
def test_an_answer_after_the_limit_is_a_failed_attempt(slow: Answer) -> None:
    """The limit is for the whole attempt: an answer that comes byte by byte does not extend it."""
    with receiver(slow) as target:
        result = post(letter(target), now(), frozenset({target.host}), limit_s=1)
    assert result.outcome is AttemptOutcome.UNKNOWN
    assert result.problem == "no answer within 1 s; the receiver may have got the event"
    assert len(target.requests) == 1


def test_the_beginning_of_a_long_answer_is_kept() -> None:
    with receiver(Answer(500, b"\0\xff" + b"e" * 10 * ANSWER_LIMIT)) as target:
        result = post(letter(target), now(), frozenset({target.host}))
    assert (result.outcome, result.status, result.problem) == (AttemptOutcome.FAILED, 500, "the receiver answered 500")
    assert len(result.answer) == ANSWER_SHOWN
    assert "\0" not in result.answer


def test_gone_is_final() -> None:
    with receiver(Answer(410)) as target:
        assert post(letter(target), now(), frozenset({target.host})).outcome is AttemptOutcome.REFUSED


def test_a_receiver_that_is_away_is_tried_again(unused_port: int) -> None:
    away = Receiver(unused_port)
    result = post(letter(away), now(), frozenset({away.host}))
    assert result.outcome is AttemptOutcome.FAILED
    assert result.problem.startswith("no connection: ")


def test_a_connection_that_ends_without_an_answer_may_have_been_received() -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        target = Receiver(server.server_address[1])
        result = post(letter(target), now(), frozenset({target.host}))
    assert result.outcome is AttemptOutcome.UNKNOWN
    assert result.problem.startswith("the connection ended before the answer")


def test_certificates_are_checked_for_the_name(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=hook.example", "-addext", "subjectAltName=DNS:hook.example"],
        check=True, capture_output=True,
    )  # fmt: skip
    trusting = ssl.create_default_context(cafile=certificate)
    with receiver(tls=(certificate, key)) as target:
        outcomes = []
        for name, tls in (("hook.example", trusting), ("other.example", trusting), ("hook.example", None)):
            url = f"https://{name}:{target.port}/hook"
            listed = frozenset({f"{name}:{target.port}"})
            sent = Letter(url, "msg_1", BODY, (new_secret(),))
            outcomes.append(post(sent, now(), listed, find=lambda *_: ["127.0.0.1"], tls=tls))
    assert [each.outcome for each in outcomes] == [AttemptOutcome.ACCEPTED, *[AttemptOutcome.FAILED] * 2]
    assert "hostname" in outcomes[1].problem.lower()
    assert "self-signed" in outcomes[2].problem or "self signed" in outcomes[2].problem
    assert len(target.requests) == 1


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://hook.example/", "write https://"),
        ("ftp://hook.example/", "write https:// and a host"),
        ("https:///path", "write https:// and a host"),
        ("https://user:secret@hook.example/", "leave out user name and password"),
        ("https://hook.example/#part", "leave out what begins with #"),
        ("https://hook.example/#", "leave out what begins with #"),
        ("https://hook.example:99999/", "not a URL"),
        ("https://hook.example:0/", "port 0 does not exist"),
        ("https://[::1/", "not a URL"),
        ("https://hook.example/a b", "must be encoded"),
        ("https://hook.example/\r\nHost: inside", "must be encoded"),
        ("https://häken.example/", "must be encoded"),
    ],
)
def test_urls_that_cannot_be_posted_to(url: str, told: str) -> None:
    problem = mistake(url, frozenset())
    assert problem is not None
    assert told in problem


def test_urls_that_can_be_posted_to() -> None:
    assert mistake("https://hook.example:8443/path?x=%20", frozenset()) is None
    assert mistake("http://10.0.0.1/hook", frozenset({"10.0.0.1"})) is None
    assert mistake("http://[fd00::1]:8080/hook", frozenset({"[fd00::1]:8080"})) is None
