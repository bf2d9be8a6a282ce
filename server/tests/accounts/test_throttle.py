"""Throttling of sign-in attempts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.api.base import Problem
from wqlab_server.accounts import throttle
from wqlab_server.models import SignInThrottle
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect
from ..support.people import PASSWORD

pytestmark = pytest.mark.integration
URL = "/api/v1/session"


@pytest.fixture
def stranger(live: Live) -> Iterator[httpx.Client]:
    """A client without credentials."""
    with live.client(None) as client:
        yield client


def signed_in(client: httpx.Client, name: str, password: str = PASSWORD) -> httpx.Response:
    return client.post(URL, json={"name": name, "password": password})


def problem(answer: httpx.Response) -> Problem:
    assert answer.headers["content-type"] == "application/problem+json"
    return Problem.model_validate_json(answer.content)


def test_too_many_attempts_are_refused_even_for_unknown_users(stranger: httpx.Client, sessions: SessionFactory) -> None:
    for name in ("admin", "nobody"):
        for _ in range(throttle.PER_ACCOUNT_AND_ADDRESS):
            expect(signed_in(stranger, name, "wrong, wrong, wrong"), 401)
        refused = expect(signed_in(stranger, name), 429)
        assert problem(refused).type == "urn:wqlab:problem:too-many-sign-ins"
        assert 0 < int(refused.headers["retry-after"]) <= throttle.WINDOW.total_seconds()
    expect(signed_in(stranger, "submit"))
    with transaction(sessions) as session:
        session.execute(update(SignInThrottle).values(since=func.now() - throttle.WINDOW))
    expect(signed_in(stranger, "admin"))
    with transaction(sessions) as session:
        left = session.execute(select(SignInThrottle.key, SignInThrottle.attempts)).all()
    assert {attempts for _, attempts in left} == {0}, "a successful sign-in is not counted"
    assert not [key for key, _ in left if "nobody" in key], "expired counters are deleted"


def test_concurrent_attempts_are_counted(live: Live) -> None:
    answers: list[int] = []

    def guess() -> None:
        with live.client(None) as client:
            answers.append(signed_in(client, "admin", "wrong, wrong, wrong").status_code)

    threads = [threading.Thread(target=guess) for _ in range(3 * throttle.PER_ACCOUNT_AND_ADDRESS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    most = throttle.PER_ACCOUNT_AND_ADDRESS
    assert sorted(answers) == [401] * most + [429] * 2 * most


def test_attempts_are_limited_per_address_network_and_account(sessions: SessionFactory, live: Live) -> None:
    def count(account: str, address: str) -> timedelta | None:
        with transaction(sessions) as session:
            return throttle.count(session, throttle.attempt_of(account, address))

    for _ in range(throttle.PER_ACCOUNT_AND_ADDRESS):
        assert count("admin", "2001:db8::1") is None
    assert count("admin", "2001:db8::ffff") is not None, "the same /64"
    assert count("admin", "192.0.2.1") is None
    for number in range(throttle.PER_ADDRESS - throttle.PER_ACCOUNT_AND_ADDRESS - 1):
        assert count(f"user-{number}", "2001:db8::2") is None
    assert count("another", "2001:db8::3") is not None
    taken = 1 + throttle.PER_ACCOUNT_AND_ADDRESS
    for number in range(throttle.PER_ACCOUNT - taken):
        assert count("admin", f"198.51.100.{number}") is None
    assert count("admin", "203.0.113.1") is not None


def test_attempts_to_change_a_password_are_throttled(live: Live) -> None:
    with live.browser("submit") as client:
        body = {"old_password": "guess after guess", "new_password": "four words of my own"}
        for _ in range(throttle.PER_ACCOUNT_AND_ADDRESS):
            expect(client.put(f"{URL}/password", json=body), 422)
        expect(client.put(f"{URL}/password", json=body | {"old_password": PASSWORD}), 429)
