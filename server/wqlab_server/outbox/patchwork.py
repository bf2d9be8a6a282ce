"""Checks of patches on a Patchwork, as deliveries: one for each plan and device type; a newer one replaces it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict
from sqlalchemy.orm import Session

from wqlab_contracts.archives_file import read_archives
from wqlab_contracts.enums import AttemptOutcome, DeliveryKind
from wqlab_contracts.specs import Archive

from ..http.forge_api import Answer, ForgeUnreachable, Reach, exchange
from ..settings import Settings
from . import deliveries
from .forge_messages import cut, write_newest
from .post_webhook import Result
from .send_forge import LIMIT_S, judge

DESCRIPTION_LIMIT = 200
"""Maximum number of characters: Patchwork shows a check on one line."""
ADVICE = {
    401: "; check token_file of its checks",
    403: "; check token_file of its checks, and that its account maintains the project",
    404: "; the patch was deleted, or the address is not that of a Patchwork with REST API 1.3",
}
State = Literal["pending", "success", "warning", "fail"]
Send = Callable[[str, str, dict[str, str], bytes | None, Reach], Answer]


class PatchCheck(BaseModel):
    """Check of a patch, as it is stored in a delivery."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    archive: str
    message_id: str
    """The patch, without angle brackets."""
    context: str
    """Name of the check; a later one of the same name replaces it."""
    state: State
    description: str
    target_url: str


def write(session: Session, settings: Settings, check: PatchCheck, submission_id: int, now: datetime) -> int | None:
    """Write a check as a delivery; None if it was written before."""
    text = check.model_copy(update={"description": cut(check.description, DESCRIPTION_LIMIT)}).model_dump_json()
    thread = deliveries.key_of("patchwork", check.archive, check.message_id, check.context)
    return write_newest(
        session,
        settings,
        DeliveryKind.PATCHWORK_CHECK,
        deliveries.key_of("patchwork", submission_id, hashlib.sha256(text.encode()).hexdigest()[:32]),
        text,
        thread=thread,
        event=check.state,
        destination=f"Patchwork {check.archive}",
        submission_id=submission_id,
        now=now,
    )


def send(body: str, data_dir: Path, exchange: Send = exchange) -> Result:
    """Find the patch by its Message-ID and post the check once. Never raises because of an answer."""
    check = PatchCheck.model_validate_json(body)
    archives, problems = read_archives(data_dir)
    archive = next((each for each in archives if each.name == check.archive and not problems), None)
    if archive is None or archive.checks is None:
        return _failed(f"Patchwork {check.archive} has no checks in intake/archives.yaml, or the file has mistakes")
    try:
        return _send(archive, archive.checks.project, archive.checks.read_token(), check, exchange)
    except ValueError as error:
        return _failed(str(error))
    except ForgeUnreachable as error:
        return Result(AttemptOutcome.UNKNOWN if error.sent else AttemptOutcome.FAILED, problem=str(error))


def _send(archive: Archive, project: str, token: str, check: PatchCheck, exchange: Send) -> Result:
    api = f"{archive.url}/api/1.3/patches/"
    reach = Reach(private=archive.private, limit_s=LIMIT_S, listed_in="intake/archives.yaml")
    headers = {"Authorization": f"Token {token}", "Accept": "application/json"}
    query = f"?project={quote(project, safe='')}&msgid={quote(check.message_id, safe='')}"
    found = exchange("GET", f"{api}{query}", headers, None, reach)
    if found.status != 200:
        return judge(found, of="Patchwork", advice=ADVICE)
    listed = found.data
    number = listed[0].get("id") if isinstance(listed, list) and listed and isinstance(listed[0], dict) else None
    if listed == []:
        return _failed(f"project {project} has no patch <{check.message_id}>: it was deleted, or has not arrived")
    if not isinstance(number, int):
        return _failed("the list of patches is not that of REST API 1.3")
    content = check.model_dump_json(include={"state", "context", "description", "target_url"}).encode()
    return judge(exchange("POST", f"{api}{number}/checks/", headers, content, reach), of="Patchwork", advice=ADVICE)


def _failed(problem: str) -> Result:
    return Result(AttemptOutcome.FAILED, problem=problem)
