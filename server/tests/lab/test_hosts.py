"""Remote labs: invitation, joining, removal, and their users of a real Redis."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError
from redis.exceptions import ConnectionError as RedisConnectionError
from sqlalchemy import select

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import DeviceHealth, JobKind, Scope, UserRole
from wqlab_server.http.auth import create_token
from wqlab_server.models import Device, LabHost, Token
from wqlab_server.settings import Settings
from wqlab_server.storage import broker

from ..support.lab import LabUnderTest
from ..support.people import add_user

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(settings: Settings, redis: str, tmp_path: Path) -> Settings:
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    more = {"broker_url": redis, "lab_broker_url": "rediss://lab.test:6380/0", "ca_file": tmp_path / "ca.crt"}
    return settings.model_copy(update=more)


@pytest.fixture(autouse=True)
def remove_broker_users(redis: str) -> Iterator[None]:
    yield
    broker.sync_users(redis, {})


def request(lab: LabUnderTest, method: str, path: str, expect: int, body: Any = None, token: str | None = "") -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token or lab.token}"}
    answer = lab.client.request(method, f"/api/v1/labs{path}", json=body, headers=headers)
    assert answer.status_code == expect, answer.text
    return answer.json() if answer.content and "json" in answer.headers["content-type"] else answer.text


def invite(lab: LabUnderTest, name: str, expect: int = 201, **more: Any) -> Any:
    return request(lab, "POST", f"/{name}/invite", expect, more)


def join(lab: LabUnderTest, token: str, expect: int = 200) -> Any:
    return request(lab, "POST", "/join", expect, {"token": token.partition(".")[0]}, token=None)


def joined(lab: LabUnderTest, name: str) -> Any:
    return join(lab, invite(lab, name)["token"])


def connect_to_broker(lab: LabUnderTest, given: Any) -> Redis:
    """Connect to the broker as the lab's host does, but without TLS."""
    user, _, password = given["broker_url"].removeprefix("rediss://").partition("@")[0].partition(":")
    path = lab.settings.broker_url.removeprefix("redis+socket://")
    return Redis(unix_socket_path=path, username=user, password=password)


def test_joined_lab_gets_its_own_credentials(lab: LabUnderTest) -> None:
    invited = invite(lab, "far")
    ca = request(lab, "GET", "/ca", 200, token=None)
    assert invited["token"].startswith("wqj_")
    assert invited["token"].partition(".")[2] == hashlib.sha256(ca.encode()).hexdigest()
    given = join(lab, invited["token"])
    assert given["lab"] == "far"
    assert given["broker_url"].startswith("rediss://lab-far:")
    assert given["broker_url"].endswith("@lab.test:6380/0")
    lab.worker.token = given["worker_token"]
    assert lab.worker.request("GET", "labs/far/leases").status_code == 200
    assert lab.worker.request("GET", "labs/local/leases").status_code == 403
    theirs = connect_to_broker(lab, given)
    assert theirs.ping()
    with pytest.raises(NoPermissionError):
        theirs.rpop("lab.local")
    with lab.transaction() as session:
        host = session.scalars(select(LabHost)).one()
        kept = [host.broker_digest, *session.scalars(select(Token.digest))]
    assert not {given["worker_token"], invited["token"]} & set(kept), "only hashes are kept"


def test_join_token_works_once(lab: LabUnderTest) -> None:
    token = invite(lab, "far")["token"]
    join(lab, token)
    refused = join(lab, token, 409)["detail"]
    assert "was used at" in refused
    assert "wqlab lab invite far" in refused


def test_invalid_join_token_is_refused_with_the_reason(lab: LabUnderTest) -> None:
    assert "unknown join token" in join(lab, "wqj_made-up", 403)["detail"]
    late = invite(lab, "late")["token"]
    lab.sql("UPDATE lab_invites SET expires_at = now() - interval '1 second'")
    assert "expired at" in join(lab, late, 409)["detail"]
    first, second = invite(lab, "far")["token"], invite(lab, "far")["token"]
    assert "withdrawn" in join(lab, first, 409)["detail"]
    join(lab, second)


def test_taken_lab_name_needs_again(lab: LabUnderTest) -> None:
    assert "on the server's own machine" in invite(lab, "local", 409)["detail"]
    given = joined(lab, "far")
    refused = invite(lab, "far", 409)["detail"]
    assert "remove it first" in refused
    assert "--again" in refused
    assert connect_to_broker(lab, given).ping(), "an invitation does not revoke credentials"
    connected = connect_to_broker(lab, given)
    connected.ping()
    other = join(lab, invite(lab, "far", again=True)["token"])
    with pytest.raises((AuthenticationError, RedisConnectionError)):
        connected.ping()
        connected.ping()
    lab.worker.token = given["worker_token"]
    assert lab.worker.request("GET", "labs/far/leases").status_code == 401, "the token of the previous host is revoked"
    lab.worker.token = other["worker_token"]
    assert lab.worker.request("GET", "labs/far/leases").status_code == 200
    invite(lab, "a%20b", 422)


def test_removed_lab_loses_its_credentials_and_devices(lab: LabUnderTest) -> None:
    given = joined(lab, "local2")
    lab.sql("UPDATE devices SET lab = 'local2', health = 'good' WHERE name = 'single-1'")
    waiting = invite(lab, "local2", again=True)["token"]
    connected = connect_to_broker(lab, given)
    connected.ping()
    request(lab, "DELETE", "/local2", 204)
    with pytest.raises((AuthenticationError, RedisConnectionError)):
        connected.ping()
        connected.ping()
    with pytest.raises(AuthenticationError):
        connect_to_broker(lab, given).ping()
    lab.worker.token = given["worker_token"]
    assert lab.worker.request("GET", "labs/local2/leases").status_code == 401
    device = lab.device("single-1")
    assert (device.health, device.health_reason) == (DeviceHealth.QUARANTINED, "lab local2 was removed (dev)")
    assert "withdrawn" in join(lab, waiting, 409)["detail"]
    assert "local2" in request(lab, "DELETE", "/local2", 404)["detail"]
    join(lab, invite(lab, "local2")["token"])


def test_tick_restores_lost_broker_users(lab: LabUnderTest, redis: str) -> None:
    given = joined(lab, "far")
    broker.sync_users(redis, {})
    with pytest.raises(AuthenticationError):
        connect_to_broker(lab, given).ping()
    lab.tick()
    assert connect_to_broker(lab, given).ping()


def test_tick_deletes_broker_users_of_removed_labs(lab: LabUnderTest) -> None:
    given = joined(lab, "far")
    lab.sql("UPDATE lab_hosts SET removed_at = now()")
    assert connect_to_broker(lab, given).ping()
    lab.tick()
    with pytest.raises(AuthenticationError):
        connect_to_broker(lab, given).ping()


def test_sync_keeps_correct_users_and_replaces_others(lab: LabUnderTest, redis: str) -> None:
    connected = connect_to_broker(lab, joined(lab, "far"))
    number = connected.ping() and broker.client(redis).client_list()
    lab.tick()
    assert connected.ping()
    after = {each["id"] for each in broker.client(redis).client_list()}
    assert {each["id"] for each in number if each["user"] == "lab-far"} <= after
    digest = hashlib.sha256(b"other").hexdigest()
    assert broker.sync_users(redis, {"far": digest}) == ["far"], "another password"
    broker.client(redis).execute_command("ACL", "SETUSER", "lab-far", "resetkeys")
    assert broker.sync_users(redis, {"far": digest}) == ["far"], "other rules"
    broker.client(redis).execute_command("ACL", "SETUSER", "lab-far", "+get")
    assert broker.sync_users(redis, {"far": digest}) == ["far"], "an additional permission"
    assert broker.sync_users(redis, {"far": digest}) == []


def test_join_can_be_repeated_after_a_broker_outage(lab: LabUnderTest) -> None:
    token = invite(lab, "far")["token"]
    good = lab.settings.broker_url
    object.__setattr__(lab.settings, "broker_url", "redis+socket:///nowhere")
    assert "the join token is still valid" in join(lab, token, 503)["detail"]
    object.__setattr__(lab.settings, "broker_url", good)
    join(lab, token)


def test_unconfigured_server_refuses_remote_labs(lab: LabUnderTest) -> None:
    object.__setattr__(lab.settings, "lab_broker_url", "")
    object.__setattr__(lab.settings, "ca_file", None)
    assert "WQLAB_LAB_BROKER_URL" in invite(lab, "far", 409)["detail"]
    assert "checked with the system's CA" in request(lab, "GET", "/ca", 404, token=None)["detail"]


def test_only_administrators_invite_and_remove(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        user = add_user(session, "mary", UserRole.MAINTAINER)
        _, token = create_token(session, "mary", [Scope.MAINTAIN], user=user)
    request(lab, "POST", "/far/invite", 403, {}, token=token)
    request(lab, "DELETE", "/far", 403, token=token)
    request(lab, "GET", "", 200, token=token)


def test_list_shows_capacity_devices_and_invitation(lab: LabUnderTest) -> None:
    given = joined(lab, "far")
    lab.worker.token = given["worker_token"]
    lab.worker.post("labs/far/capacity", {"capacity": 3}, 204)
    far, local = request(lab, "GET", "", 200)
    assert (far["name"], far["capacity"], far["devices"], far["invited_by"]) == ("far", 3, 0, "dev")
    assert far["joined_at"]
    assert far["last_seen_at"]
    with lab.transaction() as session:
        devices = len(session.scalars(select(Device.name)).all())
    assert (local["name"], local["joined_at"], local["devices"]) == ("local", None, devices)


def test_joined_lab_claims_runs_of_its_devices(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.sql("UPDATE devices SET lab = 'far' WHERE name = 'single-1'")
    given = joined(lab, "far")
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    lab.worker.token, lab.worker.lab = given["worker_token"], "far"
    assert lab.worker.claim_run(lab.runs(submission_id)[0].id) is not None


@pytest.mark.parametrize("url", ["redis://lab.test:6379/0", "lab.test"])
def test_lab_broker_url_needs_tls(settings: Settings, url: str) -> None:
    with pytest.raises(ValueError, match="write rediss://"):
        Settings(**settings.model_dump() | {"lab_broker_url": url})
