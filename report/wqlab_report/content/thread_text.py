"""Sentences of the report on a series that was taken from a mail archive."""

from __future__ import annotations

from collections import Counter

from wqlab_contracts.messages import TakenThread


def origin(thread: TakenThread) -> str:
    """Return which revision was taken: `v2 from archive lore, taken 2026-01-05 10:00 UTC (also ...: v1)`."""
    others = [f"v{each}" for each in thread.revisions if each != thread.revision]
    known = f" (also in the archive: {', '.join(others[-10:])})" if others else ""
    return f"v{thread.revision} from archive {thread.archive}, taken {thread.taken_at:%Y-%m-%d %H:%M} UTC{known}"


def mails(thread: TakenThread) -> str:
    """Return which mails were taken: `cover letter, 2 patches, 1 reply`."""
    roles = Counter(mail.role for mail in thread.mails)
    parts = ["cover letter"] if roles["cover"] else []
    parts.append(_count(roles["patch"], "patch", "patches"))
    if roles["superseded"]:
        parts.append(_count(roles["superseded"], "patch", "patches") + " sent again since")
    if thread.replies:
        parts.append(_count(thread.replies, "reply", "replies"))
    return ", ".join(parts)


def trailers(thread: TakenThread) -> list[str]:
    """Return the trailers in the replies, each once. b4 applies those whose address is that of their sender."""
    return list(dict.fromkeys(trailer for mail in thread.mails for trailer in mail.trailers))


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
