"""`wqlab doctor`: check everything between this machine and the lab's devices, and say what to do."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import typer
from rich.text import Text

from wqlab_contracts.enums import ExitCode

from .. import doctor as checks_of
from ..doctor import Check, State
from ..errors import WqlabError
from ..formatting import one_line
from .output import Output
from .session import JsonFlag, Session, session_of

_STYLES = {State.OK: "green", State.WARNING: "yellow", State.UNKNOWN: "magenta", State.FAILED: "bold red"}


def doctor(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Check the configuration, the server, TLS, the token, versions, clocks, labs and devices; say what to do.

    On the lab's own host, `wqlab-lab doctor` checks its programs. The exit code is 4 if a check failed or could not be
    made, else 0.
    """
    session = session_of(context)
    checks = _server_checks(session)
    state = checks_of.worst(checks)
    if as_json:
        session.output.document({"state": state, "client": version("wqlab-client"), "checks": checks})
    else:
        _print(session.output, checks)
        counts = [(state_, sum(check.state is state_ for check in checks)) for state_ in reversed(State)]
        session.output.line(", ".join(f"{count} {state_}" for state_, count in counts if count))
    if state in {State.FAILED, State.UNKNOWN}:
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def _server_checks(session: Session) -> list[Check]:
    try:
        config = session.resolve_config()
        return list(checks_of.examine_server(config))
    except WqlabError as error:
        return [checks_of.failed("configuration", error.summary, error.fix or "`wqlab config` shows the values in use")]


def _print(output: Output, checks: Sequence[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        output.line(
            Text(f"{check.state:8}", style=_STYLES[check.state]).append(
                f" {check.name:{width}}  {one_line(check.seen)}", style="not bold default"
            )
        )
        if check.action:
            output.line(f"{'':8} {'':{width}}  -> {one_line(check.action)}")


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)
