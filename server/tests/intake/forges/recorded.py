"""Events and API answers as the forges document them, with the keys that are read and a few others; their headers.

Whole events of real forges are read in test_recordings.py.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "payloads"
SECRET = "secret-of-the-webhook"
OLD, NEW = "a" * 40, "b" * 40


FORK = {"id": 77, "full_name": "mallory/linux"}
GITHUB_USER = {"login": "mallory", "id": 66}
GITHUB_FORK = {"label": "mallory:wake-one", "user": {"login": "mallory", "id": 9077}, "repo": FORK}
GITEA_USER = {"id": 66, "login": "mallory", "full_name": "Mallory", "username": "mallory"}
GITHUB_NEW = {"updated_at": "2026-01-12T11:00:00Z", "head": {"sha": NEW}}
GITEA_NEW = {"updated_at": "2026-01-12T11:00:00+01:00", "head": {"sha": NEW}}
GITLAB_NEW = {"updated_at": "2026-01-12 11:00:00 UTC", "last_commit": {"id": NEW}}
DERIVED: dict[str, tuple[str, dict[str, Any]]] = {
    "github-api-pull-fork": ("github-api-pull", {"user": GITHUB_USER, "head": GITHUB_FORK}),
    "github-pull_request-opened-fork": (
        "github-pull_request-opened",
        {"sender": GITHUB_USER, "pull_request": {"user": GITHUB_USER, "head": GITHUB_FORK}},
    ),
    "gitea-api-pull-fork": ("gitea-api-pull", {"user": GITEA_USER, "head": {"repo": FORK}}),
    "gitea-pull_request-opened-fork": (
        "gitea-pull_request-opened",
        {"sender": GITEA_USER, "pull_request": {"user": GITEA_USER, "head": {"repo": FORK}}},
    ),
    "gitlab-api-merge_request-fork": (
        "gitlab-api-merge_request",
        {"author": {"id": 66, "username": "mallory"}, "source_project_id": 77},
    ),
    "gitlab-merge_request-open-fork": (
        "gitlab-merge_request-open",
        {
            "user": {"id": 66, "username": "mallory", "name": "Mallory"},
            "object_attributes": {"source_project_id": 77},
        },
    ),
    "github-pull_request-synchronize": (
        "github-pull_request-opened",
        {"action": "synchronize", "before": OLD, "after": NEW, "pull_request": GITHUB_NEW},
    ),
    "github-pull_request-reopened": (
        "github-pull_request-opened",
        {"action": "reopened", "pull_request": GITHUB_NEW | {"updated_at": "2026-01-12T13:00:00Z"}},
    ),
    "github-pull_request-closed": (
        "github-pull_request-opened",
        {
            "action": "closed",
            "pull_request": GITHUB_NEW | {"updated_at": "2026-01-12T12:00:00Z", "state": "closed", "merged": True},
        },
    ),
    "gitea-pull_request-synchronized": (
        "gitea-pull_request-opened",
        {"action": "synchronized", "pull_request": GITEA_NEW},
    ),
    "gitea-pull_request-closed": (
        "gitea-pull_request-opened",
        {
            "action": "closed",
            "pull_request": GITEA_NEW | {"updated_at": "2026-01-12T12:00:00+01:00", "state": "closed"},
        },
    ),
    "gitlab-merge_request-update": (
        "gitlab-merge_request-open",
        {"object_attributes": GITLAB_NEW | {"action": "update"}},
    ),
    "gitlab-merge_request-close": (
        "gitlab-merge_request-open",
        {
            "object_attributes": GITLAB_NEW
            | {"updated_at": "2026-01-12 12:00:00 UTC", "state": "closed", "action": "close"}
        },
    ),
}
"""Payload -> the one that it is made from, and the values in which it differs: later events, and those of a fork."""


def load(name: str) -> Any:
    first, changes = DERIVED.get(name, (name, {}))
    return _changed(json.loads((FOLDER / f"{first}.json").read_text()), changes)


def _changed(payload: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return payload | {
        name: _changed(payload[name], value) if isinstance(value, dict) else value for name, value in changes.items()
    }


def event_headers(kind: str, event: str, body: bytes, delivery: str = "1", secret: str = SECRET) -> dict[str, str]:
    """Return the headers that a forge sends with an event; `event` as GitHub names it."""
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if kind == "github":
        own = {"X-GitHub-Event": event, "X-GitHub-Delivery": delivery, "X-GitHub-Hook-ID": "109948940"}
    elif kind == "gitea":
        own = {
            "X-Gitea-Delivery": delivery,
            "X-Gitea-Event": event,
            "X-Gitea-Event-Type": event,
            "X-Gitea-Signature": signature,
            "X-GitHub-Delivery": delivery,
            "X-GitHub-Event": event,
        }
    else:
        names = {"push": "Push Hook", "pull_request": "Merge Request Hook"}
        return {
            "Content-Type": "application/json",
            "X-Gitlab-Event": names.get(event, event),
            "X-Gitlab-Token": secret,
            "X-Gitlab-Event-UUID": f"event-{delivery}",
            "Idempotency-Key": delivery,
            "X-Gitlab-Webhook-UUID": "02affd2d-2cba-4033-917d-ec22d5dc4b38",
        }
    return {"Content-Type": "application/json", "X-Hub-Signature-256": f"sha256={signature}", **own}
