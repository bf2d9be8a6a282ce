"""Calls on one's own mail address."""

from __future__ import annotations

from pydantic import ValidationError

from wqlab_contracts.api.mail_address import MailAddressChange, MailAddressRequest, MailAddressView

from ..errors import UsageError
from ..transport import decode
from .connection import API, Connection

PATH = f"{API}/mail-address"


class MailAddressCalls(Connection):
    """Calls on the mail address that results are sent to."""

    def mail_address(self) -> MailAddressView:
        """Return one's own mail address, and the one that waits to be confirmed."""
        return self._get(MailAddressView, PATH, "mail address")

    def ask_mail_address(self, address: str) -> MailAddressView:
        """Enter one's mail address, which gets a mail with the link that confirms it.

        Raises UsageError if the address cannot be sent at all.
        """
        what = f"mail address {address}"
        try:
            body = MailAddressRequest(address=address).model_dump_json().encode()
        except ValidationError as error:
            raise UsageError(f"{what}: {error.errors()[0]['msg']}", "correct it and try again") from None
        return decode(MailAddressView, self._transport.call("PUT", PATH, what=what, body=body), what)

    def switch_result_mails(self, *, on: bool) -> MailAddressView:
        """Switch the mails with one's results on or off."""
        what = "mails with results"
        body = MailAddressChange(mail_results=on).model_dump_json().encode()
        return decode(MailAddressView, self._transport.call("PATCH", PATH, what=what, body=body), what)

    def remove_mail_address(self) -> MailAddressView:
        """Forget one's mail address."""
        what = "remove mail address"
        return decode(MailAddressView, self._transport.call("DELETE", PATH, what=what), what)
