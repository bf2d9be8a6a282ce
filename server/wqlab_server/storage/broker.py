"""Manage the labs' users of the Redis broker.

Redis keeps its users in memory, so missing users are restored from PostgreSQL, which is authoritative. The server's own
connection (`WQLAB_BROKER_URL`) needs a user with the right to manage users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from redis import Redis
from redis.exceptions import RedisError

from wqlab_contracts.celery_names import LAB_USER, lab_grants, lab_user

TIMEOUT_S = 2.0


class BrokerUnavailable(Exception):
    """Redis cannot be reached or refuses the request; the message gives the reason."""


def client(url: str) -> Redis:
    """Return a Redis client for a Celery broker URL. Raises ValueError for a broker that is not Redis."""
    # Celery and the Redis client name Unix sockets differently.
    address = url.replace("redis+socket://", "unix://", 1).replace("virtual_host=", "db=")
    return Redis.from_url(address, socket_connect_timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S)


def ping(url: str) -> None:
    """Check that the broker answers. Raises BrokerUnavailable."""
    with _connected(url) as redis:
        redis.ping()


def add_user(url: str, lab: str, digest: str) -> None:
    """Create the lab's user with a password of this SHA-256, and close the user's existing connections.

    Raises BrokerUnavailable.
    """
    with _connected(url) as redis:
        _add_user(redis, lab, digest)


def remove_user(url: str, lab: str) -> None:
    """Delete the lab's user and close its connections. Raises BrokerUnavailable."""
    with _connected(url) as redis:
        _acl(redis, "DELUSER", lab_user(lab))


def sync_users(url: str, expected: Mapping[str, str]) -> list[str]:
    """Make the labs' users equal to `expected` (lab -> SHA-256 of its password); return the labs that changed.

    Raises BrokerUnavailable.
    """
    with _connected(url) as redis:
        existing = {name: rules for name, rules in _users(redis) if name.startswith(LAB_USER)}
        changed = []
        for lab, digest in expected.items():
            rules = {"on", f"#{digest}", *(rule for rule in lab_grants(lab) if rule != "resetkeys")}
            if existing.pop(lab_user(lab), set()) - {"sanitize-payload"} != rules:
                _add_user(redis, lab, digest)
                changed.append(lab)
        for name in existing:
            _acl(redis, "DELUSER", name)
            changed.append(name.removeprefix(LAB_USER))
        return changed


def _add_user(redis: Redis, lab: str, digest: str) -> None:
    user = lab_user(lab)
    with redis.pipeline(transaction=True) as commands:
        _acl(commands, "DELUSER", user)  # closes the user's connections
        _acl(commands, "SETUSER", user, "reset", "on", f"#{digest}", *lab_grants(lab))
        commands.execute()


def _acl(redis: Redis, *words: str) -> None:
    redis.execute_command("ACL", *words)  # type: ignore[no-untyped-call]


def _users(redis: Redis) -> Iterator[tuple[str, set[str]]]:
    for line in redis.acl_list():
        _, name, *rules = (line.decode() if isinstance(line, bytes) else str(line)).split()
        yield name, set(rules)


@contextmanager
def _connected(url: str) -> Iterator[Redis]:
    try:
        with client(url) as redis:
            yield redis
    except (RedisError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BrokerUnavailable(f"not reachable: {reason}") from error
