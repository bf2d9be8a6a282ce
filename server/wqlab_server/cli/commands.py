"""The `wqlab-server` command: run the API, migrate the database, create users and tokens, print the OpenAPI document.

Only the commands that need the application import it, because importing it takes a second.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import delete, func
from sqlalchemy.orm import Session

from wqlab_contracts.api.accounts import UserName
from wqlab_contracts.enums import AuditAction, Scope, UserRole

from .. import migrations
from ..http.auth import create_token, keep_worker_token
from ..http.problems import ApiProblem
from ..models import AuditEntry
from ..models.audit import RETENTION_DAYS
from ..settings import Settings, UnusableFile, settings
from ..storage.audit import OPERATOR, record
from ..storage.db import make_engine, make_factory, transaction
from . import serve

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Run and administer the lab's server.")
tokens = typer.Typer(no_args_is_help=True, help="Manage API tokens.")
users = typer.Typer(no_args_is_help=True, help="Manage users.")
app.add_typer(tokens, name="token")
app.add_typer(users, name="user")
audit_log = typer.Typer(no_args_is_help=True, help="Manage the audit log.")
app.add_typer(audit_log, name="audit")
mailbox = typer.Typer(no_args_is_help=True, help="Receive mails to the lab.")
app.add_typer(mailbox, name="mail")


@app.command()
def api(
    *,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port")] = 8750,
    uds: Annotated[str | None, typer.Option(help="listen on this unix socket instead")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="certificate chain (PEM) to serve https with")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="private key of the certificate (PEM)")] = None,
    reload: Annotated[
        list[Path] | None, typer.Option(help="restart when Python code in this folder changes; for development")
    ] = None,
) -> None:
    """Serve the REST API."""
    if (tls_cert is None) != (tls_key is None):
        raise typer.BadParameter("give both --tls-cert and --tls-key, or neither")
    listen: dict[str, Any] = {"uds": uds} if uds is not None else {"host": host, "port": port}
    listen |= {"ssl_certfile": tls_cert, "ssl_keyfile": tls_key} if tls_cert is not None else {}
    if reload:
        serve.serve_with_reload(listen, reload)
    else:
        serve.serve(listen)


@app.command()
def migrate() -> None:
    """Create the schema of a new database, or migrate an older one to the newest schema."""
    engine = make_engine(settings().database_url)
    try:
        migrations.upgrade(engine)
    except migrations.UnknownRevision as error:
        typer.echo(error, err=True)
        raise typer.Exit(1) from None
    finally:
        engine.dispose()


@app.command()
def revisions() -> None:
    """Print the revisions of the database schema that this version knows, the newest first. Needs no database."""
    for revision in migrations.revisions():
        typer.echo(revision)


@app.command()
def retention() -> None:
    """Delete now what retention would delete at its next pass, and print what uses the server's storage."""
    from ..retention import service
    from ..storage.artifacts import ArtifactStore, StoreUnavailable

    engine = make_engine(settings().database_url)
    try:
        areas = service.run(make_factory(engine), settings(), ArtifactStore.of(settings()))
    except StoreUnavailable as error:
        typer.echo(f"wqlab-server: {error}", err=True)
        raise typer.Exit(2) from error
    finally:
        engine.dispose()
    typer.echo(json.dumps([area.model_dump(mode="json") for area in areas], indent=1))


@app.command()
def openapi() -> None:
    """Print the OpenAPI document of the public API. Needs no database."""
    from ..app import create_app

    offline = Settings(
        database_url="postgresql+psycopg:///", broker_url="memory://", data_dir=Path(), artifact_dir=Path()
    )
    json.dump(create_app(offline).openapi(), sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")


@contextmanager
def _database() -> Iterator[Session]:
    """Open one database transaction. A ValueError or ApiProblem in it ends the command with status 2 and its text."""
    engine = make_engine(settings().database_url)
    try:
        with transaction(make_factory(engine)) as session:
            yield session
    except (ValueError, ApiProblem) as error:
        typer.echo(f"wqlab-server: {error}", err=True)
        raise typer.Exit(2) from error
    finally:
        engine.dispose()


@tokens.command("create")
def token_create(
    name: Annotated[str, typer.Option(help="what the token is for")],
    scope: Annotated[list[Scope], typer.Option(help="what the token may do; repeatable")],
    owner: Annotated[
        str | None, typer.Option(help="user that owns the token (default: the user of the token's name)")
    ] = None,
    lab: Annotated[str | None, typer.Option(help="bind a worker token to one lab's runs")] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(help="for a worker token: take the secret from this file instead of printing a new one"),
    ] = None,
) -> None:
    """Create a token and print its secret, which is shown only once."""
    from ..accounts import service

    if secret_file is not None:
        _keep_worker_token(name, scope, lab, secret_file)
        return
    with _database() as session:
        user = None if Scope.WORKER in scope else service.get_user(session, owner or name)
        token, secret = create_token(session, name, scope, user=user, lab=lab)
        record(session, OPERATOR, AuditAction.CREATE_TOKEN, f"token/{token.id}", name=name, scopes=token.scopes)
    typer.echo(secret)


def _keep_worker_token(name: str, scope: list[Scope], lab: str | None, file: Path) -> None:
    if scope != [Scope.WORKER]:
        typer.echo("wqlab-server: --secret-file is only allowed with --scope worker", err=True)
        raise typer.Exit(2)
    try:
        secret = file.read_text().strip()
    except OSError as error:
        typer.echo(f"wqlab-server: cannot read the secret in {file}: {error.strerror}", err=True)
        raise typer.Exit(2) from error
    with _database() as session:
        try:
            token = keep_worker_token(session, name, secret, lab)
            if token is not None:
                record(session, OPERATOR, AuditAction.CREATE_TOKEN, f"token/{token.id}", name=name, scopes=token.scopes)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error


@users.command("create")
def user_create(
    name: Annotated[str, typer.Option(help="name to sign in with: lower-case letters, digits, . _ -")],
    role: Annotated[UserRole, typer.Option(help="what the user may do")],
    unless_there: Annotated[bool, typer.Option(help="do and print nothing if the user exists already")] = False,
) -> None:
    """Create a user and print the generated password, which is shown only once."""
    from ..accounts import service

    try:
        TypeAdapter(UserName).validate_python(name)
    except ValidationError as error:
        typer.echo(f"wqlab-server: {name!r} is not a valid user name: use lower-case letters, digits, . _ -", err=True)
        raise typer.Exit(2) from error
    with _database() as session:
        if unless_there and service.user_exists(session, name):
            return
        _, password = service.create_user(session, name, role)
        record(session, OPERATOR, AuditAction.CREATE_USER, f"user/{name}", role=role)
    typer.echo(password)


@users.command("password")
def user_password(name: Annotated[str, typer.Option(help="name of the user")]) -> None:
    """Set a new generated password and print it; it is shown only once. Signs the user's browsers out."""
    from ..accounts import service

    with _database() as session:
        _, password = service.reset_password(session, name)
        record(session, OPERATOR, AuditAction.RESET_PASSWORD, f"user/{name}")
    typer.echo(password)


@users.command("link")
def user_link(
    name: Annotated[str, typer.Option(help="name of a user with a password")],
    subject: Annotated[str, typer.Option(help="the provider's identifier of the person (claim `sub`)")],
) -> None:
    """Let a user sign in with the OpenID provider of the settings instead of with a password.

    Submissions and tokens stay the user's. Signs the user's browsers out.
    """
    from ..accounts.oidc import service

    with _database() as session:
        issuer = service.link_user(session, settings(), name, subject)
        record(session, OPERATOR, AuditAction.CHANGE_USER, f"user/{name}", issuer=issuer, subject=subject)


@audit_log.command("prune")
def audit_prune(
    days: Annotated[int, typer.Option(min=RETENTION_DAYS, help="delete entries that are older")] = RETENTION_DAYS,
) -> None:
    """Delete old entries of the audit log and print their number. The database refuses to delete younger ones."""
    with _database() as session:
        old = delete(AuditEntry).where(AuditEntry.at < func.now() - timedelta(days=days)).returning(AuditEntry.id)
        number = len(session.scalars(old).all())
        record(session, OPERATOR, AuditAction.PRUNE_AUDIT_LOG, days=days, deleted=number)
    typer.echo(number)


@mailbox.command("receive")
def mail_receive(
    file: Annotated[Path | None, typer.Argument(help="the mail (RFC 5322); standard input without it")] = None,
) -> None:
    """Act on one mail to the lab: record a bounce, or follow `wqlab: stop` in a reply. For the pipe of a mail server.

    The status is that of sysexits.h: 65 for a mail that cannot be read, 75 if it is to be delivered again later.
    """
    from sqlalchemy.exc import OperationalError

    from ..intake.mailbox.check_signature import CannotCheck, check_signature
    from ..intake.mailbox.read_mail import SIZE_LIMIT
    from ..pipeline.received_mail import receive
    from ..storage.celery_client import Sender, celery_app

    with file.open("rb") if file is not None else nullcontext(sys.stdin.buffer) as stream:
        mail = stream.read(SIZE_LIMIT + 1)
    engine = make_engine(settings().database_url)
    factory = make_factory(engine, Sender(celery_app(settings().broker_url)))
    try:
        typer.echo(receive(factory, settings(), mail, check_signature))
    except ValueError as error:
        typer.echo(f"wqlab-server: {error}", err=True)
        raise typer.Exit(os.EX_DATAERR) from error
    except (CannotCheck, OperationalError) as error:
        typer.echo(f"wqlab-server: deliver the mail again later: {error}", err=True)
        raise typer.Exit(os.EX_TEMPFAIL) from error
    finally:
        engine.dispose()


def main() -> None:
    os.umask(0o077)
    try:
        app()
    except ValidationError as error:
        if error.title != Settings.__name__:
            raise
        sys.exit(_wrong_settings(error))
    except UnusableFile as error:
        sys.exit(f"wqlab-server: {error}")


def _wrong_settings(error: ValidationError) -> str:
    """Return a line for each environment variable that is missing or wrong."""
    lines = []
    for each in error.errors(include_input=False, include_url=False):
        variable = "".join(f"WQLAB_{str(part).upper()}: " for part in each["loc"][:1])
        text = "set this variable" if each["type"] == "missing" else each["msg"].removeprefix("Value error, ")
        lines.append(f"wqlab-server: {variable}{text}")
    return "\n".join(lines)
