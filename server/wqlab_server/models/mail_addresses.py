"""Table of the accounts' mail addresses."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class MailAddress(Base):
    """The mail address of an account. The row stays when the address is removed: old mails have links signed with its
    secret."""

    __tablename__ = "mail_addresses"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    secret: Mapped[str]
    """Key of the links in the account's mails. It cannot be hashed, because each link is signed with it."""
    address: Mapped[str | None]
    """The confirmed address."""
    confirmed_at: Mapped[datetime | None]
    mail_results: Mapped[bool] = mapped_column(default=False)
    """True if the account's results are mailed to the confirmed address. Confirming an address sets it."""
    asked_address: Mapped[str | None]
    """Address that has got a mail with a link and is not confirmed."""
    asked_at: Mapped[datetime | None]
