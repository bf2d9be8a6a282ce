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


def load(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


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
