"""Passwords: made, judged, and kept as argon2id hashes."""

from __future__ import annotations

import secrets
import threading
import unicodedata
from functools import cache

from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from wqlab_contracts.api.accounts import PASSWORD_MIN

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""What is not taken for something else when it is read from a terminal."""
_GROUPS, _GROUP = 5, 4
_argon2 = PasswordHash((Argon2Hasher(),))
_at_once = threading.BoundedSemaphore(2)
"""Each hash takes 64 MiB and four threads for a while; a crowd at the door must not take the lab's memory."""


def made() -> str:
    """A new password of 99 random bits: `k3rv-...`, five groups of four."""
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(_GROUP)) for _ in range(_GROUPS))


def hashed(password: str) -> str:
    with _at_once:
        return _argon2.hash(_normal(password))


def matches(password: str, password_hash: str | None) -> bool:
    """Takes as long for a user that there is not (None) as for a wrong password."""
    with _at_once:
        return _argon2.verify(_normal(password), password_hash or _nobodys()) and password_hash is not None


def mistake(password: str, name: str) -> str | None:
    """What is wrong with a password that somebody has chosen. Length is what counts; rules about its characters make
    people choose worse ones."""
    if len(password) < PASSWORD_MIN:
        return f"a password has at least {PASSWORD_MIN} characters"
    if len(set(password)) < 5 or (len(name) > 3 and name in password.lower()):
        return "this password is too easy to guess"
    return None


@cache
def _nobodys() -> str:
    return _argon2.hash(secrets.token_urlsafe())


def _normal(password: str) -> str:
    """The same text, however a keyboard composes it."""
    return unicodedata.normalize("NFKC", password)
