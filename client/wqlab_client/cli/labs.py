"""`wqlab lab`: invite, join, list and remove labs on other machines than the server."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ..calls.lab import LabCalls
from ..config import check_url
from ..display import utc_now
from ..errors import UsageError
from ..formatting import rough_duration
from ..lab_host import JoinToken, LabHost, join
from .session import JsonFlag, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.labs import LabView

lab_app = typer.Typer(name="lab", help="Invite, join, list and remove labs on other machines.", rich_markup_mode=None)
LabName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the lab", show_default=False)]
_DURATION = re.compile(r"([1-9][0-9]{0,4})([mhd])")
_SECONDS = {"m": 60, "h": 3600, "d": 86400}


@lab_app.command("list")
def list_labs(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the labs: when they joined, when they were last seen, how many devices they have."""
    session = session_of(context)
    labs = session.calls(LabCalls).labs()
    if as_json:
        session.output.document(labs)
        return
    now = utc_now()
    session.output.table(
        ("NAME", "BACKEND", "JOINED", "LAST SEEN", "DEVICES", "FREE", "CAPACITY", "PROBLEM"),
        [_row(lab, now) for lab in labs],
    )


def _row(lab: LabView, now: datetime) -> list[Text | str]:
    if lab.removed_at:
        joined: Text | str = Text("removed", style="red")
    else:
        joined = f"{rough_duration((now - lab.joined_at).total_seconds())} ago" if lab.joined_at else "the server's"
    last_seen = f"{rough_duration((now - lab.last_seen_at).total_seconds())} ago" if lab.last_seen_at else "never"
    backend = f"LAVA {lab.pool.version}".strip() if lab.pool else lab.backend
    return [
        lab.name,
        backend,
        joined,
        last_seen,
        str(lab.devices),
        str(lab.free),
        str(lab.capacity or "-"),
        lab.problem,
    ]


@lab_app.command("invite")
def invite(
    context: typer.Context,
    name: LabName,
    valid: Annotated[str, typer.Option(help="Validity of the token: 30m, 2h, 1d")] = "1h",
    again: Annotated[bool, typer.Option("--again", help="Replace the host that has joined")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create a token with which one host joins as the lab NAME, once. For administrators."""
    match = _DURATION.fullmatch(valid)
    if match is None:
        raise UsageError(f"--valid {valid!r} is not a duration", "write 30m, 2h or 1d")
    session = session_of(context)
    invited = session.calls(LabCalls).invite_lab(name, valid_s=int(match[1]) * _SECONDS[match[2]], again=again)
    if as_json:
        session.output.document(invited)
        return
    session.output.note(f"Run this once on the host of lab {name}, before {invited.expires_at:%Y-%m-%d %H:%M} UTC:")
    session.output.line(f"wqlab lab join {invited.url} --token {invited.token}")


@lab_app.command("join")
def join_lab(  # noqa: PLR0917 - typer's options
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="The server's URL", show_default=False)],
    token: Annotated[str, typer.Option(help="Join token that `wqlab lab invite` printed", show_default=False)],
    folder: Annotated[Path, typer.Option(help="Folder for the lab host's files")] = Path("wqlab-lab"),
    devices: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of devices in use at once")] = 1,
    coordinator: Annotated[str, typer.Option(help="Address of labgrid's coordinator")] = "127.0.0.1:20408",
    again: Annotated[bool, typer.Option("--again", help="Replace the credentials of a folder that has joined")] = False,
) -> None:
    """Make this machine the host of a lab: get the credentials and write the configuration.

    The machine must reach the server by HTTPS and its broker by TLS; it needs no incoming connections.
    """
    url = check_url(url, "URL")
    if url.startswith("http://") and not re.match(r"http://(127\.|localhost|\[::1\])", url):
        raise UsageError(f"{url} is not encrypted, so the lab's credentials could be read on the way", "use https")
    join_token = JoinToken.parse(token)
    host = LabHost(folder.absolute(), coordinator, devices)
    host.check(again=again)
    joined, ca = join(url, join_token)
    host.write(url, joined, ca)
    output = session_of(context).output
    supervisord, control = host.bin / "supervisord", host.bin / "supervisorctl"
    output.line(f"This machine is the host of lab {joined.lab}; its files are in {host.folder}")
    output.note("Next:")
    output.note(f"  1. Describe the devices in {host.folder}/labgrid/exporter.yaml, and on the server in device-types/")
    output.note(f"     with `lab: {joined.lab}`; put {host.folder}/keys/lab_ed25519.pub on them.")
    output.note(f"  2. Start coordinator, exporter and worker: {supervisord} -c {host.configuration}")
    output.note(f"  3. Check that they run: {control} -c {host.configuration} status")
    output.note("  4. Check each device: wqlab device check NAME")


@lab_app.command("remove")
def remove(context: typer.Context, name: LabName) -> None:
    """Revoke a lab's credentials at once, and quarantine its devices. For administrators."""
    session = session_of(context)
    session.calls(LabCalls).remove_lab(name)
    session.output.line(f"lab {name} is removed: its credentials are revoked, its devices are quarantined")


def register(app: typer.Typer) -> None:
    app.add_typer(lab_app)
