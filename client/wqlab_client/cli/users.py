"""`wqlab user`: list the users of a lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import SignInMethod

from ..calls.lab import LabCalls
from ..formatting import one_line
from .session import Cursor, JsonFlag, Limit, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.accounts import UserView

user_app = typer.Typer(name="user", help="List the lab's users. For administrators.", rich_markup_mode=None)


@user_app.command("list")
def list_users(
    context: typer.Context,
    part: Annotated[str | None, typer.Argument(metavar="[PART]", help="Only names with this text")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """List users, newest first: role, how they sign in, and when they last did."""
    session = session_of(context)
    page = session.calls(LabCalls).users_page(q=part, limit=limit, cursor=cursor)
    header = ("NAME", "ROLE", "SIGN-IN", "LAST SIGN-IN (UTC)", "STATE")
    session.output.page(
        page,
        as_json=as_json,
        show=lambda users: session.output.table(header, [_row(each) for each in users]),
        none="no user matches",
    )


def _row(user: UserView) -> list[Text | str]:
    password = user.sign_in is SignInMethod.PASSWORD
    return [
        one_line(user.name),
        user.role.value,
        "password" if password else one_line(f"{user.issuer} as {user.subject}"),
        f"{user.last_sign_in_at:%Y-%m-%d %H:%M:%S}" if user.last_sign_in_at else "never",
        _state(user),
    ]


def _state(user: UserView) -> Text | str:
    if user.disabled_at is not None:
        return Text("disabled", style="red")
    if user.without_role_since is not None:
        return Text("no group has a role", style="red")
    return ""


def register(app: typer.Typer) -> None:
    app.add_typer(user_app)
