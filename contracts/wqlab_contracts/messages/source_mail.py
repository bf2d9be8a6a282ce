"""The mail that a series came in, as far as an answer needs it."""

from __future__ import annotations

from pydantic import Field

from .base import Message

ADDRESS_LIMIT = 320
"""Maximum length (characters) of a mail address (RFC 3696)."""
RECIPIENT_LIMIT = 100
"""Maximum number of addresses in a header that are answered."""
REFERENCE_LIMIT = 50
"""Maximum number of Message-IDs in References; the first and the last are kept."""
SUBJECT_LIMIT = 500


class SourceMail(Message):
    """The mail that a series came in: its cover letter, or its only patch."""

    message_id: str = Field(max_length=1000)
    """Without angle brackets."""
    references: list[str] = Field(default_factory=list, max_length=REFERENCE_LIMIT)
    """Message-IDs of the thread before this mail, oldest first, without angle brackets."""
    sender: str = Field(max_length=1000)
    """Address to answer, `Name <user@host>`: Reply-To if the mail has it, else From."""
    to: list[str] = Field(default_factory=list, max_length=RECIPIENT_LIMIT)
    cc: list[str] = Field(default_factory=list, max_length=RECIPIENT_LIMIT)
    subject: str = Field(max_length=SUBJECT_LIMIT)
    verified: bool = False
    """True if the lab itself has read the mail from an archive that the operator trusts. Whoever uploads an mbox can
    write any sender and recipients into it."""
    sender_checked: bool = True
    """False if the archive that the mail was read from takes mails whose DKIM signature nobody has checked, so that
    anybody may have written its From, or if the address to answer is not that of From."""
