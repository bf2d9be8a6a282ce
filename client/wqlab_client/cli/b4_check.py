"""`wqlab b4-check`: answer b4's check commands from results that the lab has already."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import b4_check
from ..calls.submissions import SubmissionCalls
from ..transport import ONCE
from .session import Session, session_of

TIMEOUT_S = 10.0
"""Limit of one request in seconds: b4 waits for the answer."""
MAILS = 5
"""Maximum number of mails of a thread for which the lab is asked. Each one takes a request."""


def register(app: typer.Typer) -> None:
    app.command("b4-check")(check)


def check(
    context: typer.Context,
    lines: Annotated[bool, typer.Option("--lines", help="Print lines for `b4 prep --check`, not JSON")] = False,
) -> None:
    """Answer b4's check commands: what the lab has measured of the mail on standard input.

    The answer is JSON for `b4 review`. Nothing is submitted. A mail that the lab has not seen gives an empty result
    and exit code 0.
    """
    session = session_of(context)
    mail = b4_check.identify_series(sys.stdin.buffer.read(b4_check.MAIL_BYTES))
    result = _find(session, mail, b4_check.prepared_change_id(Path.cwd()) if lines else "")
    if lines:
        session.output.lines(b4_check.as_complaints(result))
        return
    if result is None:
        session.output.note(b4_check.UNSEEN)
    session.output.lines([json.dumps(b4_check.as_documents([result] if result is not None else []), indent=2)])


def _find(session: Session, mail: b4_check.SeriesIdentity, prepared: str) -> b4_check.CheckResult | None:
    """Return the result of the mail's series, found by Message-ID, change-id (of mail or branch) or subject."""
    token = session.config.token
    calls = SubmissionCalls(session.url, token.value if token else None, retry=ONCE, timeout_s=TIMEOUT_S)
    for message_id in mail.message_ids[:MAILS]:
        found = calls.submissions_page(message_id=message_id).items
        if (one := b4_check.newest_result(found, mail.version)) is not None:
            return b4_check.check_of(one, session.url)
    for series_key in filter(None, dict.fromkeys([prepared, mail.series_key])):
        found = calls.submissions_page(series_key=series_key).items
        if (one := b4_check.newest_result(found, mail.version)) is not None:
            return b4_check.check_of(one, session.url)
    return None
