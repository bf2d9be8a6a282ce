"""`wqlab-server`: run the API, migrate the database, make tokens, print the OpenAPI document.

The application is imported by the commands that need it: it takes a second, and making a token needs none of it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import structlog
import typer

from wqlab_contracts.enums import Scope

from . import migrations
from .auth import create_token
from .db import make_engine, make_factory, transaction
from .settings import Settings, settings

STREAMS_END_S = 3
"""How long open event and console streams may hold up the end of the server; their clients resume where they were."""

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The lab's server.")
tokens = typer.Typer(no_args_is_help=True, help="API tokens.")
app.add_typer(tokens, name="token")


@app.command()
def api(
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port")] = 8750,
    uds: Annotated[str | None, typer.Option(help="listen on this unix socket instead")] = None,
) -> None:
    """Serve the REST API."""
    import uvicorn

    from .app import create_app

    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], structlog.processors.JSONRenderer()])
    application = create_app()
    if uds is not None:
        uvicorn.run(application, uds=uds, access_log=False, timeout_graceful_shutdown=STREAMS_END_S)
    else:
        uvicorn.run(application, host=host, port=port, access_log=False, timeout_graceful_shutdown=STREAMS_END_S)


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


@tokens.command("create")
def token_create(
    name: Annotated[str, typer.Option(help="what the token is for")],
    scope: Annotated[list[Scope], typer.Option(help="what it may do; repeatable")],
    owner: Annotated[str | None, typer.Option(help="who acts with it (default: its name)")] = None,
    lab: Annotated[str | None, typer.Option(help="bind a worker token to one lab's runs")] = None,
) -> None:
    """Make a token and print its secret, which is shown only now."""
    engine = make_engine(settings().database_url)
    try:
        with transaction(make_factory(engine)) as session:
            _, secret = create_token(session, name, scope, owner=owner, lab=lab)
    except ValueError as error:
        typer.echo(f"wqlab-server: {error}", err=True)
        raise typer.Exit(2) from error
    finally:
        engine.dispose()
    typer.echo(secret)


def main() -> None:
    os.umask(0o077)
    app()


if __name__ == "__main__":
    main()
