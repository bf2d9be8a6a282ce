"""`wqlab login`, `config` and `quota`: the server, the API token, and what is left of one's quotas."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from wqlab_contracts.api.quotes import QuotaName

from .. import config
from ..calls.submissions import SubmissionCalls
from ..display import utc_now
from ..errors import UsageError
from ..formatting import rough_duration
from .session import JsonFlag, session_of


def login(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="The lab's URL", show_default=False)],
    token_stdin: Annotated[bool, typer.Option("--token-stdin", help="Read the token from standard input")] = False,
    tree: Annotated[str | None, typer.Option(metavar="NAME", help="Default tree of `wqlab submit`")] = None,
) -> None:
    """Check an API token with the lab, then store URL and token in the configuration file."""
    session = session_of(context)
    url = config.check_url(url, "login")
    if token_stdin:
        token = sys.stdin.readline().strip()
    elif sys.stdin.isatty():
        token = str(typer.prompt("API token", hide_input=True, err=True)).strip()
    else:
        raise UsageError(
            "there is no terminal to ask for the token",
            "pass it on standard input: wqlab login URL --token-stdin < FILE",
        )
    if not token:
        raise UsageError("the token is empty", "ask an administrator of the lab for one")
    with SubmissionCalls(url, token, on_retry=session.output.note) as client:
        client.submissions_page(limit=1)
    values = {"url": url, "token": token}
    config.store(session.config_path, values | ({"tree": tree} if tree else {}))
    session.output.note(f"logged in to {url}; stored in {session.config_path}")


def show_config(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Show the server, token and tree in use, and where each is set."""
    session = session_of(context)
    settings = {"url": session.config.url, "token": session.config.token, "tree": session.config.tree}
    shown: dict[str, tuple[str, str]] = {}
    for key, setting in settings.items():
        if setting is None:
            shown[key] = ("", "not set")
        else:
            shown[key] = (mask_token(setting.value) if key == "token" else setting.value, setting.origin)
    if as_json:
        document: dict[str, object] = {
            key: {"value": value or None, "origin": origin} for key, (value, origin) in shown.items()
        }
        session.output.document({"file": str(session.config.path), **document})
        return
    session.output.table(("KEY", "VALUE", "FROM"), [(key, *entry) for key, entry in shown.items()])
    session.output.note(f"file: {session.config.path}" + ("" if session.config.path.is_file() else " (does not exist)"))


_QUOTA_NAMES = {
    QuotaName.SUBMISSIONS_WAITING: "unfinished submissions",
    QuotaName.DEVICE_MINUTES: "device minutes in 24 h",
    QuotaName.BUILD_MINUTES: "build minutes in 24 h",
    QuotaName.BYTES: "MB stored in 24 h",
}
_QUOTA_UNITS = {QuotaName.BYTES: 1e6}


def show_quota(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Show your quotas and what is left of them."""
    session = session_of(context)
    quotas = session.calls(SubmissionCalls).quotas()
    if as_json:
        session.output.document(quotas)
        return
    if not quotas:
        session.output.note("you have no quotas")
        return
    now = utc_now()
    rows = [
        (
            _QUOTA_NAMES[quota.name],
            *(f"{value / _QUOTA_UNITS.get(quota.name, 1):.0f}" for value in (quota.used, quota.left, quota.limit)),
            f"in {rough_duration((quota.available_at - now).total_seconds())}" if quota.available_at else "",
        )
        for quota in quotas
    ]
    session.output.table(("QUOTA", "USED", "LEFT", "LIMIT", "AVAILABLE AGAIN"), rows)


def mask_token(token: str) -> str:
    """Shorten a token so that it can be recognized but not used."""
    return f"{token[:6]}..." if len(token) >= 20 else "..."


def register(app: typer.Typer) -> None:
    app.command("login")(login)
    app.command("config")(show_config)
    app.command("quota")(show_quota)
