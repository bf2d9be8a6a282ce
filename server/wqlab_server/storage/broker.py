"""The Redis behind Celery, as its administrator sees it: which labs have a user there.

Redis keeps its users in memory and PostgreSQL has the truth, so what is missing is made again; the server's own
connection (`WQLAB_BROKER_URL`) must be of a user who may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from redis import Redis
from redis.exceptions import RedisError

from wqlab_contracts.celery_names import LAB_USER, lab_grants, lab_user

TIMEOUT_S = 2.0


class BrokerUnavailable(Exception):
    """Redis cannot be reached or refuses; the text says why."""


def client(url: str) -> Redis:
    """Raises ValueError for a broker that is not Redis."""
    # Celery's name for a Unix socket differs from the Redis client's.
    address = url.replace("redis+socket://", "unix://", 1).replace("virtual_host=", "db=")
    return Redis.from_url(address, socket_connect_timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S)


def ping(url: str) -> None:
    """Raises BrokerUnavailable."""
    with _connected(url) as redis:
        redis.ping()


def admit(url: str, lab: str, digest: str) -> None:
    """Makes the lab's user, with a password of this SHA-256; whoever was connected as that user is thrown out."""
    with _connected(url) as redis:
        _admit(redis, lab, digest)


def expel(url: str, lab: str) -> None:
    """Ends the lab's user and its connections."""
    with _connected(url) as redis:
        _acl(redis, "DELUSER", lab_user(lab))


def settle(url: str, wanted: Mapping[str, str]) -> list[str]:
    """Brings the labs' users to what is `wanted` (lab -> SHA-256 of its password); returns the labs it changed."""
    with _connected(url) as redis:
        there = {name: rules for name, rules in _users(redis) if name.startswith(LAB_USER)}
        changed = []
        for lab, digest in wanted.items():
            expected = {"on", f"#{digest}", *(rule for rule in lab_grants(lab) if rule != "resetkeys")}
            if there.pop(lab_user(lab), set()) - {"sanitize-payload"} != expected:
                _admit(redis, lab, digest)
                changed.append(lab)
        for name in there:
            _acl(redis, "DELUSER", name)
            changed.append(name.removeprefix(LAB_USER))
        return changed


def _admit(redis: Redis, lab: str, digest: str) -> None:
    user = lab_user(lab)
    with redis.pipeline(transaction=True) as both:
        _acl(both, "DELUSER", user)
        _acl(both, "SETUSER", user, "reset", "on", f"#{digest}", *lab_grants(lab))
        both.execute()


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
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise BrokerUnavailable(f"not reachable: {why}") from error
