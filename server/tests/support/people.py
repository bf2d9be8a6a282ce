"""Users of a lab under test, and HTTP clients that are signed in."""

from __future__ import annotations

import ssl
from functools import cache

import httpx
from sqlalchemy.orm import Session

from wqlab_contracts.enums import UserRole
from wqlab_server.accounts import passwords
from wqlab_server.models import User

PASSWORD = "a barge on the canal"


@cache
def password_hash() -> str:
    """Return the hash of PASSWORD, computed once because hashing takes long."""
    return passwords.hash_password(PASSWORD)


def add_user(session: Session, name: str, role: UserRole) -> User:
    user = User(name=name, role=role, password_hash=password_hash())
    session.add(user)
    session.flush()
    return user


@cache
def empty_ssl_context() -> ssl.SSLContext:
    """Return an SSL context without certificates, for plain HTTP: loading them takes longer than most tests."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def browser(url: str, name: str, password: str = PASSWORD) -> httpx.Client:
    """Return a client that is signed in: with the session cookie and its CSRF token."""
    with httpx.Client(base_url=url, timeout=None, verify=empty_ssl_context()) as page:
        answer = page.post("/api/v1/session", json={"name": name, "password": password})
        assert answer.status_code == 200, answer.text
        headers = {"X-CSRF-Token": answer.json()["csrf_token"]}
        return httpx.Client(
            base_url=url, timeout=None, verify=empty_ssl_context(), cookies=page.cookies, headers=headers
        )
