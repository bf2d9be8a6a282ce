"""`wqlab-server`: run the API, migrate the database, make users and tokens, print the OpenAPI document.

The application is imported by the commands that need it: it takes a second, and making a token needs none of it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.orm import Session

from wqlab_contracts import logs
from wqlab_contracts.api.accounts import UserName
from wqlab_contracts.enums import Scope, UserRole

from . import migrations
from .http.auth import create_token, keep_worker_token
from .http.problems import ApiProblem
from .settings import Settings, settings
from .storage.db import make_engine, make_factory, transaction

STREAMS_END_S = 3
"""How long open event and console streams may hold up the end of the server; their clients resume where they were."""

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The lab's server.")
tokens = typer.Typer(no_args_is_help=True, help="API tokens.")
users = typer.Typer(no_args_is_help=True, help="Users.")
app.add_typer(tokens, name="token")
app.add_typer(users, name="user")


@app.command()
def api(
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port")] = 8750,
    uds: Annotated[str | None, typer.Option(help="listen on this unix socket instead")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="certificate chain (PEM): serve https")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="its private key (PEM)")] = None,
) -> None:
    """Serve the REST API."""
    if (tls_cert is None) != (tls_key is None):
        raise typer.BadParameter("--tls-cert and --tls-key go together")
    import uvicorn

    from .app import create_app

    logs.configure()
    application = create_app()
    where: dict[str, Any] = {"uds": uds} if uds is not None else {"host": host, "port": port}
    where |= {"ssl_certfile": tls_cert, "ssl_keyfile": tls_key} if tls_cert is not None else {}
    uvicorn.run(application, **where, access_log=False, timeout_graceful_shutdown=STREAMS_END_S)


@app.command()
def migrate() -> None:
    """Bring the database to the newest schema."""
    engine = make_engine(settings().database_url)
    migrations.upgrade(engine)
    engine.dispose()


@app.command()
def openapi() -> None:
    """Print the OpenAPI document of the public API. Needs no database."""
    from .app import create_app

    nowhere = Settings(
        database_url="postgresql+psycopg:///", broker_url="memory://", data_dir=Path(), artifact_dir=Path()
    )
    json.dump(create_app(nowhere).openapi(), sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")


@contextmanager
def _database() -> Iterator[Session]:
    """One transaction; a refusal ends the command with what is wrong."""
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
    scope: Annotated[list[Scope], typer.Option(help="what it may do; repeatable")],
    owner: Annotated[str | None, typer.Option(help="the user who acts with it (default: of the same name)")] = None,
    lab: Annotated[str | None, typer.Option(help="bind a worker token to one lab's runs")] = None,
    secret_file: Annotated[
        Path | None, typer.Option(help="for a worker: make this file's secret the token of that name, print nothing")
    ] = None,
) -> None:
    """Make a token and print its secret, which is shown only now."""
    from .accounts import service

    if secret_file is not None:
        _keep_worker_token(name, scope, lab, secret_file)
        return
    with _database() as session:
        user = None if Scope.WORKER in scope else service.get_user(session, owner or name)
        _, secret = create_token(session, name, scope, user=user, lab=lab)
    typer.echo(secret)


def _keep_worker_token(name: str, scope: list[Scope], lab: str | None, file: Path) -> None:
    if scope != [Scope.WORKER]:
        typer.echo("wqlab-server: --secret-file is for a token of scope worker", err=True)
        raise typer.Exit(2)
    try:
        secret = file.read_text().strip()
    except OSError as error:
        typer.echo(f"wqlab-server: no secret in {file}: {error.strerror}", err=True)
        raise typer.Exit(2) from error
    with _database() as session:
        try:
            keep_worker_token(session, name, secret, lab)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error


@users.command("create")
def user_create(
    name: Annotated[str, typer.Option(help="how the user signs in: lower-case letters, digits, . _ -")],
    role: Annotated[UserRole, typer.Option(help="what the user may do")],
    unless_there: Annotated[bool, typer.Option(help="do and print nothing when there is one already")] = False,
) -> None:
    """Make a user and print the password, which is shown only now."""
    from .accounts import service

    try:
        TypeAdapter(UserName).validate_python(name)
    except ValidationError as error:
        typer.echo(f"wqlab-server: {name!r} is no user name: lower-case letters, digits, . _ -", err=True)
        raise typer.Exit(2) from error
    with _database() as session:
        if unless_there and service.is_there(session, name):
            return
        _, password = service.create_user(session, name, role)
    typer.echo(password)


@users.command("password")
def user_password(name: Annotated[str, typer.Option(help="whose")]) -> None:
    """Make a new password for a user and print it, which is shown only now. Signs the user's browsers out."""
    from .accounts import service

    with _database() as session:
        _, password = service.reset_password(session, name)
    typer.echo(password)


def main() -> None:
    os.umask(0o077)
    app()


if __name__ == "__main__":
    main()
