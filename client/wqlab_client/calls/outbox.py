"""Calls on what leaves the lab: webhooks and deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.deliveries import DeliveryDetail, DeliveryView, DropRequest, ReceivedCommandView
from wqlab_contracts.api.webhooks import WebhookFilter, WebhookRequest, WebhookSecret, WebhookView
from wqlab_contracts.enums import DeliveryKind, DeliveryState, OutboxEvent

from ..errors import UsageError
from ..transport import Params, decode
from .connection import API, Connection

if TYPE_CHECKING:
    from wqlab_contracts.mail import MailEdit


class OutboxCalls(Connection):
    """Calls on webhooks and deliveries."""

    def webhooks(self, *, cursor: str | None = None, limit: int = 50) -> Page[WebhookView]:
        """Return one page of one's own webhooks, for administrators of all, newest first."""
        params: Params = {"cursor": cursor, "limit": limit}
        return self._get(Page[WebhookView], f"{API}/webhooks", "list webhooks", params)

    def add_webhook(
        self,
        url: str,
        events: list[OutboxEvent],
        *,
        mine: bool = False,
        device_types: list[str] | None = None,
        plans: list[str] | None = None,
    ) -> WebhookSecret:
        """Create a webhook and return it with its secret, which is shown only once.

        `mine`, `device_types`, `plans`: only events about these. Raises UsageError if a value cannot be sent at all.
        """
        try:
            wanted = WebhookFilter(mine=mine, device_types=device_types or [], plans=plans or [])
            body = WebhookRequest(url=url, events=events, filter=wanted)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"webhook: {where}: {first['msg']}", "correct it and try again") from None
        content = body.model_dump_json().encode()
        return self._post(WebhookSecret, f"{API}/webhooks", f"add webhook {url}", body=content, repeatable=False)

    def rotate_webhook(self, webhook_id: int) -> WebhookSecret:
        """Give a webhook a new secret and return it; the previous one is valid for another day."""
        what = f"rotate webhook {webhook_id}"
        return self._post(WebhookSecret, f"{API}/webhooks/{webhook_id}/rotate", what, repeatable=False)

    def test_webhook(self, webhook_id: int) -> DeliveryDetail:
        """Send the event `webhook.test` to a webhook and return its delivery."""
        path, what = f"{API}/webhooks/{webhook_id}/test", f"test webhook {webhook_id}"
        return self._post(DeliveryDetail, path, what, repeatable=False)

    def pause_webhook(self, webhook_id: int) -> WebhookView:
        """Let a webhook get no events until it is resumed."""
        what = f"pause webhook {webhook_id}"
        return decode(WebhookView, self._transport.call("PUT", f"{API}/webhooks/{webhook_id}/pause", what=what), what)

    def resume_webhook(self, webhook_id: int) -> WebhookView:
        """Let a paused webhook get events again."""
        path, what = f"{API}/webhooks/{webhook_id}/pause", f"resume webhook {webhook_id}"
        return decode(WebhookView, self._transport.call("DELETE", path, what=what), what)

    def remove_webhook(self, webhook_id: int) -> WebhookView:
        """Remove a webhook and drop what waits for it."""
        what = f"remove webhook {webhook_id}"
        return decode(WebhookView, self._transport.call("DELETE", f"{API}/webhooks/{webhook_id}", what=what), what)

    def deliveries(
        self,
        *,
        kind: DeliveryKind | None = None,
        state: DeliveryState | None = None,
        webhook: int | None = None,
        submission: int | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[DeliveryView]:
        """Return one page of the deliveries that match every filter, newest first."""
        params: Params = {
            "kind": kind,
            "state": state,
            "webhook": webhook,
            "submission": submission,
            "cursor": cursor,
            "limit": limit,
        }
        return self._get(Page[DeliveryView], f"{API}/deliveries", "list deliveries", params)

    def delivery(self, delivery_id: int) -> DeliveryDetail:
        """Return a delivery with what it says and its attempts."""
        return self._get(DeliveryDetail, f"{API}/deliveries/{delivery_id}", f"delivery {delivery_id}")

    def replay_delivery(self, delivery_id: int) -> DeliveryDetail:
        """Send a delivery that has ended again, with its old id."""
        path, what = f"{API}/deliveries/{delivery_id}/replay", f"replay delivery {delivery_id}"
        return self._post(DeliveryDetail, path, what, repeatable=False)

    def mail_commands(self, cursor: str | None = None, limit: int = 50) -> Page[ReceivedCommandView]:
        """Return one page of the commands in replies to the lab's mails, newest first. For maintainers."""
        params: Params = {"cursor": cursor, "limit": limit}
        return self._get(Page[ReceivedCommandView], f"{API}/mail-commands", "list commands by mail", params)

    def approve_mail(self, delivery_id: int) -> DeliveryDetail:
        """Release a mail that waits for review. The caller must be a maintainer."""
        path, what = f"{API}/deliveries/{delivery_id}/approve", f"approve mail {delivery_id}"
        return self._post(DeliveryDetail, path, what)

    def edit_mail(self, delivery_id: int, change: MailEdit) -> DeliveryDetail:
        """Change a mail that waits for review. The caller must be a maintainer."""
        path, what = f"{API}/deliveries/{delivery_id}/mail", f"edit mail {delivery_id}"
        body = change.model_dump_json(exclude_none=True).encode()
        return decode(DeliveryDetail, self._transport.call("PATCH", path, what=what, body=body), what)

    def drop_mail(self, delivery_id: int, reason: str = "") -> DeliveryDetail:
        """Decide that a mail is not sent. The caller must be a maintainer."""
        path, what = f"{API}/deliveries/{delivery_id}/drop", f"drop mail {delivery_id}"
        return self._post(DeliveryDetail, path, what, body=DropRequest(reason=reason).model_dump_json().encode())
