"""Calls on one's own subscriptions and mail address."""

from __future__ import annotations

from pydantic import ValidationError

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.subscriptions import (
    MailAddressRequest,
    MailAddressView,
    SubscriptionRequest,
    SubscriptionView,
)
from wqlab_contracts.enums import SubscriptionKind

from ..errors import UsageError
from ..transport import Params, decode
from .connection import API, Connection


class SubscriptionCalls(Connection):
    """Calls on subscriptions."""

    def subscriptions(self, *, cursor: str | None = None, limit: int = 50) -> Page[SubscriptionView]:
        """Return one page of one's own subscriptions, newest first."""
        params: Params = {"cursor": cursor, "limit": limit}
        return self._get(Page[SubscriptionView], f"{API}/subscriptions", "list subscriptions", params)

    def subscribe(
        self,
        kind: SubscriptionKind,
        *,
        device_type: str | None = None,
        plan: str | None = None,
        webhook: int | None = None,
    ) -> SubscriptionView:
        """Subscribe to results: by mail, or to the webhook of this number. One that exists is returned as it is.

        Raises UsageError if a value cannot be sent at all.
        """
        try:
            body = SubscriptionRequest(kind=kind, device_type=device_type, plan=plan, webhook_id=webhook)
        except ValidationError as error:
            raise _mistake("subscription", error) from None
        content = body.model_dump_json().encode()
        return self._post(SubscriptionView, f"{API}/subscriptions", "subscribe", body=content)

    def remove_subscription(self, subscription_id: int) -> SubscriptionView:
        """End a subscription; what waits because of it alone is dropped."""
        path, what = f"{API}/subscriptions/{subscription_id}", f"remove subscription {subscription_id}"
        return decode(SubscriptionView, self._transport.call("DELETE", path, what=what), what)

    def mail_address(self) -> MailAddressView:
        """Return one's own mail address, and the one that waits to be confirmed."""
        return self._get(MailAddressView, f"{API}/mail-address", "mail address")

    def ask_mail_address(self, address: str) -> MailAddressView:
        """Enter one's mail address, which gets a mail with the link that confirms it.

        Raises UsageError if the address cannot be sent at all.
        """
        what = f"mail address {address}"
        try:
            body = MailAddressRequest(address=address).model_dump_json().encode()
        except ValidationError as error:
            raise _mistake(what, error) from None
        return decode(MailAddressView, self._transport.call("PUT", f"{API}/mail-address", what=what, body=body), what)

    def remove_mail_address(self) -> MailAddressView:
        """Forget one's mail address."""
        what = "remove mail address"
        return decode(MailAddressView, self._transport.call("DELETE", f"{API}/mail-address", what=what), what)


def _mistake(what: str, error: ValidationError) -> UsageError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return UsageError(f"{what}: {where}: {first['msg']}", "correct it and try again")
