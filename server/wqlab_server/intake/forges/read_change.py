"""Ask a forge's API what a pull request or branch is now, and who may write to the repository."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from wqlab_contracts.specs import ForgeKind

from ...http.forge_api import Answer, ForgeApi, wait_s

_WRITERS = frozenset({"write", "maintain", "admin", "owner"})
_DEVELOPER = 30
"""GitLab's access level that may push."""


class ApiFailed(Exception):
    """The API did not answer as documented. `wait_s`: seconds to wait for its rate limit; None without a limit."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait_s = wait


@dataclass(frozen=True)
class Seen:
    """A pull request or branch, as the API says."""

    head: str
    """Commit; empty for a branch that is gone."""
    branch: str
    """Branch that the pull request is for, or the branch itself."""
    closed: bool
    from_fork: bool
    title: str = ""
    author: str = ""
    author_id: int | None = None
    labels: tuple[str, ...] = ()
    updated_at: datetime | None = None


def read_change(api: ForgeApi, number: int | None, branch: str) -> Seen:
    """Return a pull request, or without a number a branch. Raises ApiFailed and ForgeUnreachable."""
    try:
        if number is None:
            return _branch(api, branch)
        return _merge_request(api, number) if api.forge.kind is ForgeKind.GITLAB else _pull_request(api, number)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ApiFailed(f"the API's answer is not as documented: {error!r}"[:300]) from error


def may_write(api: ForgeApi, login: str, number: int | None) -> bool:
    """Return True if an account may push to the repository. Raises ApiFailed and ForgeUnreachable."""
    if api.forge.kind is ForgeKind.GITLAB:
        if number is None:
            return False
        answer = api.get(f"/members/all/{number}")
        if answer.status == 404:
            return False
        level = _object(answer, "the members").get("access_level")
        return isinstance(level, int) and level >= _DEVELOPER
    answer = api.get(f"/collaborators/{quote(login, safe='')}/permission")
    if answer.status == 404:
        return False
    return _object(answer, "the permission of an account").get("permission") in _WRITERS


def _branch(api: ForgeApi, branch: str) -> Seen:
    gitlab = api.forge.kind is ForgeKind.GITLAB
    answer = api.get(f"/repository/branches/{quote(branch, safe='')}" if gitlab else f"/branches/{quote(branch)}")
    if answer.status == 404:
        return Seen("", branch, closed=True, from_fork=False)
    commit = _object(answer, f"branch {branch}")["commit"]
    head = commit["sha"] if api.forge.kind is ForgeKind.GITHUB else commit["id"]
    return Seen(commit_of(head), branch, closed=False, from_fork=False)


def _pull_request(api: ForgeApi, number: int) -> Seen:
    found = _object(api.get(f"/pulls/{number}"), f"pull request {number}")
    head, base = found["head"], found["base"]
    commit = commit_of(head["sha"])
    own = is_own_branch(found, api.forge.repository)
    if own and api.forge.kind is ForgeKind.GITEA:  # what its versions say of AGit differs
        own = _branch(api, str(head["ref"])).head == commit
    return Seen(
        commit,
        str(base["ref"]),
        closed=found["state"] != "open",
        from_fork=not own,
        title=_line(found["title"]),
        author=str(found["user"]["login"]),
        author_id=found["user"].get("id"),
        labels=tuple(str(label["name"]) for label in found.get("labels") or []),
        updated_at=_time(found.get("updated_at")),
    )


def is_own_branch(pull: Mapping[str, Any], repository: str) -> bool:
    """Return True if the head of a pull request (GitHub, Gitea, Forgejo) is a branch of the repository.

    Whoever may read a repository of Gitea or Forgejo can push to `refs/for/BRANCH` (AGit). The API then names the
    repository itself as that of the head, which has no label and is under `refs/pull/`.
    """
    head = pull["head"]
    # The repository of a deleted fork is null.
    source = (head.get("repo") or {}).get("full_name") or ""
    branch, label, flow = head.get("ref"), head.get("label"), pull.get("flow")
    if source.casefold() != repository.casefold() or not branch or not label:
        return False
    return not str(branch).startswith("refs/") and not flow


def _merge_request(api: ForgeApi, number: int) -> Seen:
    found = _object(api.get(f"/merge_requests/{number}"), f"merge request {number}")
    return Seen(
        commit_of(found["sha"]),
        str(found["target_branch"]),
        closed=found["state"] != "opened",
        from_fork=found["source_project_id"] != found["target_project_id"],
        title=_line(found["title"]),
        author=str(found["author"]["username"]),
        author_id=found["author"]["id"],
        labels=tuple(map(str, found.get("labels") or [])),
        updated_at=_time(found.get("updated_at")),
    )


def _object(answer: Answer, what: str) -> Mapping[str, Any]:
    """Return the JSON object of a successful answer. Raises ApiFailed, which says what to do."""
    if answer.status == 200 and isinstance(answer.data, dict):
        return answer.data
    raise refusal(answer, what)


def refusal(answer: Answer, what: str) -> ApiFailed:
    """Return what an answer other than the documented one means, and what to do about it."""
    wait = wait_s(answer, time.time())
    if wait is not None:
        return ApiFailed(f"the forge limits requests; the next one is possible in {wait:.0f} s", wait)
    advice = {
        401: "the token was not accepted: check token_file",
        403: "the token may not do this: give it read access to the repository and its members",
        404: "it does not exist, or the token may not read it",
    }.get(answer.status, answer.message)
    return ApiFailed(f"{what}: the API answered {answer.status}{f': {advice}' if advice else ''}")


def commit_of(value: Any) -> str:
    """Return a commit id. Raises ValueError if it is none."""
    if not isinstance(value, str) or len(value) != 40 or not all(digit in "0123456789abcdef" for digit in value):
        raise ValueError(f"{value!r} is not a commit id")
    return value


def _line(text: Any) -> str:
    return " ".join(str(text).replace("\0", "").split())[:300]


def _time(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
