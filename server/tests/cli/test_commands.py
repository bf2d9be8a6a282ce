"""The `wqlab-server` command creates users and tokens in a real database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from wqlab_contracts.enums import Scope, UserRole
from wqlab_server.accounts import passwords
from wqlab_server.cli.commands import app
from wqlab_server.http.auth import by_token
from wqlab_server.models import User
from wqlab_server.settings import settings as process_settings
from wqlab_server.storage.db import SessionFactory, transaction

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def environment(database_url: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WQLAB_DATABASE_URL", database_url)
    monkeypatch.setenv("WQLAB_BROKER_URL", "memory://")
    monkeypatch.setenv("WQLAB_DATA_DIR", str(data_dir))
    monkeypatch.setenv("WQLAB_ARTIFACT_DIR", str(tmp_path))
    process_settings.cache_clear()
    yield
    process_settings.cache_clear()


def command(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output.strip()


def password_of(sessions: SessionFactory, name: str) -> str:
    with transaction(sessions) as session:
        return session.scalars(select(User.password_hash).where(User.name == name)).one()


def test_first_administrator_is_created_once(sessions: SessionFactory) -> None:
    first = ("user", "create", "--name", "admin", "--role", "admin", "--unless-there")
    password = command(*first)
    assert passwords.matches(password, password_of(sessions, "admin"))
    assert command(*first) == ""
    assert passwords.matches(password, password_of(sessions, "admin"))
    assert "user admin already exists" in command(*first[:-1], code=2)
    assert "not a valid user name" in command("user", "create", "--name", "The Admin", "--role", "admin", code=2)


def test_lost_password_is_replaced(sessions: SessionFactory) -> None:
    old = command("user", "create", "--name", "ada", "--role", "viewer")
    new = command("user", "password", "--name", "ada")
    assert new != old
    assert passwords.matches(new, password_of(sessions, "ada"))
    assert not passwords.matches(old, password_of(sessions, "ada"))
    assert "no user bob" in command("user", "password", "--name", "bob", code=2)


def test_user_is_linked_to_the_provider(sessions: SessionFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    command("user", "create", "--name", "ada", "--role", "submitter")
    link = ("user", "link", "--name", "ada", "--subject", "s-1")
    assert "this lab has no OpenID provider" in command(*link, code=2)
    for name, value in {
        "ISSUER": "https://idp.example.org", "CLIENT_ID": "wqlab", "CLIENT_SECRET_FILE": "/x", "ROLES": "lab=viewer",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"WQLAB_OIDC_{name}", value)
    process_settings.cache_clear()
    assert "no user bob" in command("user", "link", "--name", "bob", "--subject", "s-1", code=2)
    assert "is not a subject" in command(*link[:-1], "", code=2)
    command(*link)
    with transaction(sessions) as session:
        user = session.scalars(select(User).where(User.name == "ada")).one()
        assert (user.issuer, user.subject, user.password_hash) == ("https://idp.example.org", "s-1", None)
    assert "ada already signs in with https://idp.example.org as s-1" in command(*link, code=2)
    assert "has no password here" in command("user", "password", "--name", "ada", code=2)
    command("user", "create", "--name", "eve", "--role", "viewer")
    assert "a person has one account" in command("user", "link", "--name", "eve", "--subject", "s-1", code=2)


def test_token_belongs_to_a_user_or_a_worker(sessions: SessionFactory) -> None:
    command("user", "create", "--name", "ada", "--role", "submitter")
    secret = command("token", "create", "--name", "ci", "--scope", "submit", "--owner", "ada")
    worker = command("token", "create", "--name", "w2", "--scope", "worker", "--lab", "attic")
    assert "no user ci" in command("token", "create", "--name", "ci", "--scope", "submit", code=2)
    assert "only a worker token" in command(
        "token", "create", "--name", "ci", "--scope", "read", "--owner", "ada", "--lab", "attic", code=2
    )
    with transaction(sessions) as session:
        ada, attic = by_token(session, secret), by_token(session, worker)
    assert ada is not None
    assert (ada.owner, ada.role, ada.scopes) == ("ada", UserRole.SUBMITTER, {Scope.SUBMIT})
    assert attic is not None
    assert (attic.owner, attic.user_id, attic.scopes, attic.lab) == ("w2", None, {Scope.WORKER}, "attic")


def test_worker_token_is_taken_from_a_secret_file(sessions: SessionFactory, tmp_path: Path) -> None:
    file = tmp_path / "wqlab_worker_token"
    keep = ("token", "create", "--name", "worker", "--scope", "worker", "--secret-file", str(file))
    first, second = "wql_" + "a1" * 32, "wql_" + "b2" * 32

    def known(secret: str) -> bool:
        with transaction(sessions) as session:
            return by_token(session, secret) is not None

    assert f"cannot read the secret in {file}" in command(*keep, code=2)
    file.write_text("wql_short\n")
    assert f"{file}: not a token secret" in command(*keep, code=2)
    file.write_text(first + "\n")
    assert command(*keep) == ""
    assert command(*keep) == "", "repeated at every start"
    other = command("token", "create", "--name", "worker-2", "--scope", "worker")
    file.write_text(second + "\n")
    command(*keep)
    assert (known(first), known(second), known(other)) == (False, True, True), (
        "the new secret replaces the token of this name"
    )
    file.write_text(first + "\n")
    assert "a revoked one" in command(*keep, code=2)
    assert known(second), "a refused secret changes nothing"
    assert "--scope worker" in command(*keep[:4], "--scope", "admin", *keep[6:], code=2)


def test_setting_is_read_from_a_secrets_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wqlab_database_url").write_text("postgresql+psycopg://wqlab:secret@db/wqlab\n")
    monkeypatch.setenv("WQLAB_SECRETS_DIR", str(tmp_path))
    process_settings.cache_clear()
    assert "@db/" not in process_settings().database_url, "a variable takes precedence over a file"
    monkeypatch.delenv("WQLAB_DATABASE_URL")
    process_settings.cache_clear()
    assert process_settings().database_url == "postgresql+psycopg://wqlab:secret@db/wqlab"


def test_a_mail_is_received_from_standard_input_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "mail").write_text("From: ada@example.org\nSubject: x\n\nthanks\n")
    assert command("mail", "receive", str(file)) == "ignored: neither a bounce nor a command"
    piped = CliRunner().invoke(app, ["mail", "receive"], input=file.read_bytes())
    assert (piped.exit_code, piped.stdout) == (0, "ignored: neither a bounce nor a command\n")
    file.write_bytes(b"x" * 2_000_000)
    assert "at most 1048576 are read" in command("mail", "receive", str(file), code=os.EX_DATAERR)
    monkeypatch.setenv("WQLAB_DATABASE_URL", "postgresql+psycopg:///nothing?host=/nowhere")
    process_settings.cache_clear()
    file.write_text("Content-Type: multipart/report\n\nwqlab: stop\n")
    assert command("mail", "receive", str(file)).startswith("ignored"), "what needs no database is answered without it"
    file.write_text("From: ada@example.org\nIn-Reply-To: <a@b>\n\nwqlab: stop\n")
    assert "deliver the mail again later" in command("mail", "receive", str(file), code=os.EX_TEMPFAIL)
