"""The `wqlab` command: global options, registration of the commands, and exit codes of errors."""

from __future__ import annotations

import errno
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError, WqlabError
from .commands import Commands, add_placeholders
from .output import Output
from .session import DETACHED_EXIT, Session

app = typer.Typer(
    name="wqlab",
    cls=Commands,
    help="Submit workqueue and scheduler patches to a lab, watch their progress and read the reports.",
    epilog="Exit codes: 0 done, 1 regression (or a --fail-on verdict), 2 usage, 3 the series failed, 4 infrastructure.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
add_placeholders(app)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"wqlab {version('wqlab-client')}")
        raise typer.Exit


@app.callback()
def _global_options(
    context: typer.Context,
    url: Annotated[str | None, typer.Option(help="The lab's URL (environment: WQLAB_URL)", show_default=False)] = None,
    token: Annotated[
        str | None,
        typer.Option(help="API token; visible in process lists, so prefer WQLAB_TOKEN", show_default=False),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File that contains the API token", show_default=False)
    ] = None,
    config_file: Annotated[
        Path | None,
        typer.Option("--config", help="Configuration file, by default ~/.config/wqlab/config.toml", show_default=False),
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    context.obj = Session(url, token, token_file, config_file)


def main() -> None:
    """Run the command; a user's mistake or a failure of the lab ends it with a message instead of a traceback."""
    try:
        app(prog_name="wqlab")
    except WqlabError as error:
        Output().error(error)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        full = UsageError(
            f"{error.strerror or 'the disk is full'}{f': {error.filename}' if error.filename else ''}",
            "make room and call it again; `wqlab ab --resume` goes on after the last block",
        )
        Output().error(full)
        sys.exit(full.exit_code)
    except KeyboardInterrupt:
        sys.exit(DETACHED_EXIT)
