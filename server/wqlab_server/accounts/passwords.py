"""Passwords: generation, checks of chosen ones, and argon2id hashes."""

from __future__ import annotations

import secrets
import threading
import unicodedata
from functools import cache

from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from wqlab_contracts.api.accounts import PASSWORD_MIN

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Characters that are not confused with each other when read from a terminal."""
_GROUPS, _GROUP_LENGTH = 5, 4
_argon2 = PasswordHash((Argon2Hasher(),))
_concurrent_hashes = threading.BoundedSemaphore(2)
"""Limits concurrent hashing: each hash uses 64 MiB and four threads; many sign-ins at once must not exhaust memory."""


def generate() -> str:
    """Return a new password of 99 random bits, such as `k3rv-...`: five groups of four characters."""
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(_GROUP_LENGTH)) for _ in range(_GROUPS))


def hash_password(password: str) -> str:
    """Return the argon2id hash of a password."""
    with _concurrent_hashes:
        return _argon2.hash(_normalize(password))


def matches(password: str, password_hash: str | None) -> bool:
    """Return True if the password has this hash. Takes as long for an unknown user (None) as for a wrong password."""
    with _concurrent_hashes:
        return _argon2.verify(_normalize(password), password_hash or _dummy_hash()) and password_hash is not None


def weakness(password: str, name: str) -> str | None:
    """Return why a chosen password is refused, or None.

    Only length and obvious guesses are checked; rules about characters make people choose worse passwords.
    """
    if len(password) < PASSWORD_MIN:
        return f"a password must have at least {PASSWORD_MIN} characters"
    if len(set(password)) < 5 or (len(name) > 3 and name in password.lower()):
        return "this password is too easy to guess"
    return None


@cache
def _dummy_hash() -> str:
    """Return a hash that no password has, to compare with where there is no user."""
    return _argon2.hash(secrets.token_urlsafe())


def _normalize(password: str) -> str:
    """Return the text in NFKC form, so that it does not depend on how a keyboard composes characters."""
    return unicodedata.normalize("NFKC", password)
