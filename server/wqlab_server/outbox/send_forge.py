"""Send a commit status or the lab's comment to a forge's API, and tell what it answered.

There is one comment for a pull request. It is edited by its id; if that is not known, because the answer to the request
that made it was lost, it is found by its marker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wqlab_contracts.enums import AttemptOutcome, DeliveryKind
from wqlab_contracts.forges_file import find_forge
from wqlab_contracts.specs import Forge, ForgeKind

from ..http.forge_api import Answer, ForgeApi, ForgeUnreachable, wait_s
from .forge_messages import ForgeComment, ForgeStatus
from .post_webhook import ANSWER_SHOWN, Result

LIMIT_S = 15.0
"""Time for one request. All requests of one attempt end within the time of its claim."""
PAGES = 10
"""Pages of 100 comments in which the lab's is looked for."""
_PAGE = 100
_GITLAB_STATES = {"failure": "failed", "error": "failed"}
_OTHER_STATES = {"canceled": "error"}

Connect = Callable[[Forge, str], ForgeApi]


def connect_api(forge: Forge, token: str) -> ForgeApi:
    return ForgeApi(forge, token, LIMIT_S)


def send(
    kind: DeliveryKind, body: str, comment_id: str | None, data_dir: Path, connect: Connect = connect_api
) -> Result:
    """Send a status or comment once. No answer makes this raise.

    `comment_id` is that of the comment to edit, if it is known; that of a comment that was made is in the result.
    """
    message: ForgeStatus | ForgeComment = (
        ForgeStatus.model_validate_json(body)
        if kind is DeliveryKind.FORGE_STATUS
        else ForgeComment.model_validate_json(body)
    )
    forge = find_forge(data_dir, message.forge)
    if forge is None:
        return _failed(f"forge {message.forge} is not in intake/forges.yaml, or the file has mistakes")
    try:
        api = connect(forge, forge.read_token())
        if isinstance(message, ForgeStatus):
            return _send_status(api, message)
        return _send_comment(api, message, comment_id)
    except ValueError as error:
        return _failed(str(error))
    except ForgeUnreachable as error:
        return Result(AttemptOutcome.UNKNOWN if error.sent else AttemptOutcome.FAILED, problem=str(error))


def _failed(problem: str) -> Result:
    return Result(AttemptOutcome.FAILED, problem=problem)


def _send_status(api: ForgeApi, status: ForgeStatus) -> Result:
    gitlab = api.forge.kind is ForgeKind.GITLAB
    states = _GITLAB_STATES if gitlab else _OTHER_STATES
    answer = api.send(
        "POST",
        f"/statuses/{status.commit}",
        {
            "state": states.get(status.state, status.state),
            "name" if gitlab else "context": status.context,
            "description": status.description,
            "target_url": status.target_url,
        },
    )
    if gitlab and answer.status == 400 and "Cannot transition status" in answer.text:
        # GitLab refuses to set the state that a status has.
        return Result(AttemptOutcome.ACCEPTED, answer.status, _shown(answer))
    return judge(answer)


def _send_comment(api: ForgeApi, comment: ForgeComment, comment_id: str | None) -> Result:
    body = {"body": comment.body}
    if comment_id is not None:
        answer = _edit(api, comment.number, comment_id, body)
        if answer.status != 404:
            return judge(answer)
        # Somebody has deleted it, or it was never made.
    found = _find(api, comment)
    if isinstance(found, Result):
        return found
    if found is not None:
        return judge(_edit(api, comment.number, found, body), reference=found)
    answer = api.send("POST", _comments(api, comment.number), body)
    return judge(answer, reference=_id_of(answer.data) or "")


def _edit(api: ForgeApi, number: int, comment_id: str, body: Mapping[str, Any]) -> Answer:
    if api.forge.kind is ForgeKind.GITLAB:
        return api.send("PUT", f"/merge_requests/{number}/notes/{comment_id}", body)
    return api.send("PATCH", f"/issues/comments/{comment_id}", body)


def _comments(api: ForgeApi, number: int) -> str:
    return f"/merge_requests/{number}/notes" if api.forge.kind is ForgeKind.GITLAB else f"/issues/{number}/comments"


def _find(api: ForgeApi, comment: ForgeComment) -> str | Result | None:
    """Return the id of the lab's comment; None if there is none, or a Result if the comments cannot be read.

    Only a comment of the lab's own account counts: anybody can copy the marker.
    """
    order = "&sort=asc&order_by=created_at" if api.forge.kind is ForgeKind.GITLAB else ""
    for page in range(1, PAGES + 1):
        answer = api.get(f"{_comments(api, comment.number)}?per_page={_PAGE}&limit={_PAGE}&page={page}{order}")
        listed = answer.data
        if answer.status != 200 or not isinstance(listed, list):
            return judge(answer) if answer.status != 200 else _failed("the list of comments is not as documented")
        for each in listed:
            if _author(each).casefold() == api.forge.user.casefold() and comment.marker in str(each.get("body")):
                return _id_of(each)
        # Gitea returns all comments at once.
        if len(listed) < _PAGE or api.forge.kind is ForgeKind.GITEA:
            return None
    return None


def _author(comment: Any) -> str:
    if not isinstance(comment, dict):
        return ""
    account = comment.get("user") or comment.get("author")
    return str(account.get("login") or account.get("username") or "") if isinstance(account, dict) else ""


def _id_of(comment: Any) -> str | None:
    found = comment.get("id") if isinstance(comment, dict) else None
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else None


_ADVICE = {
    401: "; check token_file",
    403: "; the token needs the right to write commit statuses and comments",
    404: "; the repository or commit does not exist, or the token may not write to it",
}


def judge(answer: Answer, *, reference: str = "", of: str = "the forge", advice: Mapping[int, str] = _ADVICE) -> Result:
    """Return the result of an answer, with what to do about a refusal."""
    shown = _shown(answer)
    if answer.status in {200, 201}:
        return Result(AttemptOutcome.ACCEPTED, answer.status, shown, reference=reference)
    wait = wait_s(answer, time.time())
    if wait is not None:
        problem = f"{answer.status}: {of} limits requests; the next one is possible in {wait:.0f} s"
        return Result(AttemptOutcome.FAILED, answer.status, shown, problem, wait_s=wait)
    said = f": {answer.message}" if answer.message else ""
    hint = advice.get(answer.status, "")
    final = 400 <= answer.status < 500 and answer.status not in {401, 403, 404, 408, 409, 425}
    outcome = AttemptOutcome.REFUSED if final else AttemptOutcome.FAILED
    return Result(outcome, answer.status, shown, f"{of} answered {answer.status}{said}{hint}")


def _shown(answer: Answer) -> str:
    return answer.text[:ANSWER_SHOWN]
