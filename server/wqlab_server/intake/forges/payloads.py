"""Read what an event of GitHub, GitLab, Gitea or Forgejo says has changed. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wqlab_contracts.specs import Forge, ForgeKind

_COMMIT = re.compile(r"[0-9a-f]{40}")
_BRANCH = "refs/heads/"
_LARGEST = 2**31 - 1
_NO_COMMIT = "0" * 40
BRANCH_LIMIT = 250
"""Characters of a branch's name; longer ones are cut."""
PULL_ACTIONS = frozenset(
    {
        *("opened", "synchronize", "reopened", "closed", "labeled", "unlabeled", "edited", "ready_for_review"),
        *("synchronized", "label_updated", "label_cleared"),  # Gitea
        *("open", "update", "reopen", "close", "merge"),  # GitLab
    }
)


class Unreadable(Exception):
    """The body is not an event as the forge documents it; the text names what is missing."""


@dataclass(frozen=True)
class Ignored:
    """An event that changes nothing for the lab."""

    reason: str


@dataclass(frozen=True)
class Hint:
    """A pull request or branch that has changed. Only who did what when is taken from it; the API says the rest."""

    number: int | None
    """Number of the pull request; None for a branch."""
    branch: str
    """Branch that was pushed to; empty for a pull request."""
    sender: str
    """Account that caused the event."""
    sender_id: int | None
    head: str
    """Commit of the pull request or branch when the event happened."""
    label_set: bool | None = None
    """True if the event sets the forge's label, False if it does not. None if the event names only the labels that
    are set now, and the lab has to compare."""
    labels: tuple[str, ...] = ()
    """Labels that are set after the event."""

    @property
    def key(self) -> str:
        return f"branch/{self.branch}" if self.number is None else f"pull/{self.number}"


def read(forge: Forge, event: str, payload: Any) -> Hint | Ignored:
    """Return what an event says. Raises Unreadable."""
    if not isinstance(payload, Mapping):
        raise Unreadable("the body is not a JSON object")
    kind = _kind(forge.kind, event)
    if kind is None:
        return Ignored(f"events {event[:60]} change nothing for the lab")
    repository = _repository(forge.kind, payload)
    if repository.casefold() != forge.repository.casefold():
        raise Unreadable(f"the event is of {repository[:200]}, and forge {forge.name} is for {forge.repository}")
    if forge.kind is ForgeKind.GITLAB:
        found = _gitlab_push(payload) if kind == "push" else _merge_request(forge, payload)
    else:
        found = _push(payload) if kind == "push" else _pull_request(forge, payload)
    if isinstance(found, Hint) and found.sender.casefold() == forge.user.casefold():
        return Ignored(f"caused by the lab's own account {forge.user}")
    return found


def _kind(forge: ForgeKind, event: str) -> str | None:
    names = {"push": "push", "pull_request": "pull", "pull_request_sync": "pull", "pull_request_label": "pull"}
    if forge is ForgeKind.GITLAB:
        names = {"Push_Hook": "push", "Merge_Request_Hook": "pull"}
    return names.get(event)


def _repository(kind: ForgeKind, payload: Mapping[str, Any]) -> str:
    if kind is ForgeKind.GITLAB:
        return _text(payload, "project", "path_with_namespace")
    return _text(payload, "repository", "full_name")


def _push(payload: Mapping[str, Any]) -> Hint | Ignored:
    login, number = _text(payload, "sender", "login"), _optional_number(payload, "sender", "id")
    return _pushed(_text(payload, "ref"), _text(payload, "after"), login, number)


def _gitlab_push(payload: Mapping[str, Any]) -> Hint | Ignored:
    login, number = _text(payload, "user_username"), _optional_number(payload, "user_id")
    return _pushed(_text(payload, "ref"), _text(payload, "after"), login, number)


def _pushed(ref: str, after: str, login: str, number: int | None) -> Hint | Ignored:
    if not ref.startswith(_BRANCH):
        return Ignored("the push is not to a branch")
    if after == _NO_COMMIT:
        after = ""
    return Hint(None, ref.removeprefix(_BRANCH)[:BRANCH_LIMIT], login, number, _commit(after) if after else "")


def _pull_request(forge: Forge, payload: Mapping[str, Any]) -> Hint | Ignored:
    action = _text(payload, "action")
    if action not in PULL_ACTIONS:
        return Ignored(f"pull_request {action[:40]} changes nothing for the lab")
    labels = _names(_child(payload, "pull_request", "labels"), "name")
    label_set: bool | None = False
    if action == "labeled":
        label_set = forge.label is not None and _text(payload, "label", "name") == forge.label
    elif action == "label_updated":
        label_set = None if forge.label in labels else False
    return Hint(
        _number(payload, "pull_request", "number"),
        "",
        _text(payload, "sender", "login"),
        _optional_number(payload, "sender", "id"),
        _commit(_text(payload, "pull_request", "head", "sha")),
        label_set,
        labels,
    )


def _merge_request(forge: Forge, payload: Mapping[str, Any]) -> Hint | Ignored:
    action = _child(payload, "object_attributes", "action")
    if not isinstance(action, str) or action not in PULL_ACTIONS:
        return Ignored(f"merge request {str(action)[:40]} changes nothing for the lab")
    before = _names(_child(payload, "changes", "labels", "previous"), "title")
    after = _names(_child(payload, "changes", "labels", "current"), "title")
    return Hint(
        _number(payload, "object_attributes", "iid"),
        "",
        _text(payload, "user", "username"),
        _optional_number(payload, "user", "id"),
        _commit(_text(payload, "object_attributes", "last_commit", "id")),
        forge.label is not None and forge.label in after and forge.label not in before,
        _names(payload.get("labels"), "title"),
    )


def _child(payload: Any, *keys: str) -> Any:
    for key in keys:
        payload = payload.get(key) if isinstance(payload, Mapping) else None
    return payload


def _text(payload: Any, *keys: str) -> str:
    found = _child(payload, *keys)
    if not isinstance(found, str) or not found or "\0" in found:
        raise Unreadable(f"the event has no text {'.'.join(keys)}")
    return found[:500]


def _commit(text: str) -> str:
    if not _COMMIT.fullmatch(text):
        raise Unreadable(f"{text[:60]!r} is not a commit id of 40 digits")
    return text


def _number(payload: Any, *keys: str) -> int:
    found = _optional_number(payload, *keys)
    if found is None:
        raise Unreadable(f"the event has no number {'.'.join(keys)}")
    return found


def _optional_number(payload: Any, *keys: str) -> int | None:
    found = _child(payload, *keys)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 < found <= _LARGEST else None


def _names(labels: Any, key: str) -> tuple[str, ...]:
    found = labels if isinstance(labels, list) else []
    names = (_child(label, key) for label in found)
    return tuple(name[:100].replace("\0", "") for name in names if isinstance(name, str))
