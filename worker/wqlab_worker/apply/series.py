"""What of a mailed series can be applied; how mail is read is in the contracts, which the server shows it by."""

from __future__ import annotations

from wqlab_contracts import mbox
from wqlab_contracts.mbox import Mail

from ..failures import UserError


def read_mbox(text: str) -> list[Mail]:
    """The messages of an mbox, or of a single raw message. Raises UserError when there is no patch in it."""
    mails = mbox.mails_of(text)
    if not any(mail.has_patch for mail in mails):
        raise UserError(
            "the mbox holds no patch",
            excerpt=text[:500],
            advice="Send what `git format-patch --stdout --base=auto` prints, or a thread saved by `b4 mbox`.",
        )
    return mails


def check_complete(mails: list[Mail]) -> None:
    """Raises UserError, naming the missing patches, unless [PATCH 1/N] ... [PATCH N/N] are all there."""
    missing = mbox.missing(mails)
    if missing:
        raise UserError(f"the series is incomplete: patch {', '.join(missing[:10])} is missing")
