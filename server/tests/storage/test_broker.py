"""Lab users of a real Redis broker."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError

from wqlab_server.storage import broker

pytestmark = pytest.mark.integration


def digest(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()


def sign_in(url: str, lab: str, password: str) -> bool:
    path = url.removeprefix("redis+socket://")
    try:
        return bool(Redis(unix_socket_path=path, username=f"lab-{lab}", password=password).ping())
    except AuthenticationError:
        return False


@pytest.fixture(autouse=True)
def remove_broker_users(redis: str) -> Iterator[None]:
    yield
    broker.sync_users(redis, {})


def test_added_user_signs_in_and_removed_user_cannot(redis: str) -> None:
    broker.add_user(redis, "far", digest("secret"))
    assert sign_in(redis, "far", "secret")
    assert not sign_in(redis, "far", "wrong")
    broker.remove_user(redis, "far")
    assert not sign_in(redis, "far", "secret")


def test_sync_adds_replaces_and_removes_users(redis: str) -> None:
    assert broker.sync_users(redis, {"far": digest("one"), "near": digest("two")}) == ["far", "near"]
    assert broker.sync_users(redis, {"far": digest("one"), "near": digest("two")}) == []
    assert broker.sync_users(redis, {"far": digest("new")}) == ["far", "near"]
    assert sign_in(redis, "far", "new")
    assert not sign_in(redis, "near", "two")


def test_unreachable_broker_is_unavailable() -> None:
    for url in ("redis+socket:///nowhere", "amqp://localhost"):
        with pytest.raises(broker.BrokerUnavailable, match="not reachable"):
            broker.ping(url)
