"""Users of a lab under test, and browsers that they sign in with."""

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
    """Of PASSWORD: hashing takes its time, and every test has users."""
    return passwords.hashed(PASSWORD)


def add_user(session: Session, name: str, role: UserRole) -> User:
    user = User(name=name, role=role, password_hash=password_hash())
    session.add(user)
    session.flush()
    return user


@cache
def trust_nobody() -> ssl.SSLContext:
    """For clients that speak plain HTTP: each would read all certificates of the machine, which takes longer than most
    tests."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def browser(url: str, name: str, password: str = PASSWORD) -> httpx.Client:
    """Signed in, with the CSRF token that the lab's pages would send. It keeps cookies as a browser does."""
    with httpx.Client(base_url=url, timeout=20, verify=trust_nobody()) as page:
        answer = page.post("/api/v1/session", json={"name": name, "password": password})
        assert answer.status_code == 200, answer.text
        headers = {"X-CSRF-Token": answer.json()["csrf_token"]}
        return httpx.Client(base_url=url, timeout=20, verify=trust_nobody(), cookies=page.cookies, headers=headers)
