"""Check that an event is from the forge, and return its delivery id and kind. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

from wqlab_contracts.specs import ForgeKind

_ID = re.compile(r"[!-~]{1,200}")
_EVENT_HEADERS = {
    ForgeKind.GITHUB: ("x-github-event",),
    ForgeKind.GITEA: ("x-gitea-event", "x-forgejo-event", "x-github-event"),
    ForgeKind.GITLAB: ("x-gitlab-event",),
}
_DELIVERY_HEADERS = {
    ForgeKind.GITHUB: ("x-github-delivery",),
    ForgeKind.GITEA: ("x-gitea-delivery", "x-forgejo-delivery", "x-github-delivery"),
    # The key stays the same when GitLab repeats a delivery; older versions send only the id of the event.
    ForgeKind.GITLAB: ("idempotency-key", "x-gitlab-event-uuid"),
}


class NotVerified(Exception):
    """The event is not signed, or not with the lab's secret; the text says what to fix."""


class NoDelivery(Exception):
    """A header is missing; the text names it."""


@dataclass(frozen=True)
class Delivered:
    """An event that the forge has sent."""

    event: str
    delivery: str


def check(kind: ForgeKind, headers: Mapping[str, str], body: bytes, secret: str) -> None:
    """Check the signature of the body, or GitLab's token. Raises NotVerified. `headers` have names in lower case."""
    if kind is ForgeKind.GITLAB:
        token = headers.get("x-gitlab-token", "")
        if not token:
            raise NotVerified("no header X-Gitlab-Token: set the webhook's secret token to the content of secret_file")
        if not hmac.compare_digest(token.encode(), secret.encode()):
            raise NotVerified("the header X-Gitlab-Token is not the secret: set it to the content of secret_file")
        return
    given = headers.get("x-hub-signature-256", "")
    if not given:
        raise NotVerified("no header X-Hub-Signature-256: set the webhook's secret to the content of secret_file")
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise NotVerified(
            "X-Hub-Signature-256 does not match the body: set the webhook's secret to the content of secret_file"
        )


def describe(kind: ForgeKind, headers: Mapping[str, str]) -> Delivered:
    """Return the event's kind and its delivery id. Raises NoDelivery if a header is missing."""
    return Delivered(_first(headers, _EVENT_HEADERS[kind]), _first(headers, _DELIVERY_HEADERS[kind]))


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if _ID.fullmatch(found := headers.get(name, "").replace(" ", "_")):
            return found
    raise NoDelivery(f"no header {names[0]}, which this kind of forge sends; check `kind` in intake/forges.yaml")
