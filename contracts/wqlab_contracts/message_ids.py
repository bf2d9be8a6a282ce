"""Find the Message-ID in what people paste: an id, a mail header, or the URL of a message in any archive."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from .text import control_character

LENGTH_LIMIT = 500
"""Maximum number of characters of a Message-ID."""
_ID = re.compile(r"[^<>\s@/][^<>\s@]*@[^<>\s@]+")
_BRACKETED = re.compile(r"<([^<>\s]+)>")
_HEADER = re.compile(r"(?:message-id|in-reply-to|mid|id):\s*", re.IGNORECASE)
_LIST_PAGE = re.compile(r"message|thread|latest|msg\d+\.html|thrd\d*\.html|maillist\d*\.html", re.IGNORECASE)
"""What follows the address of a list in the URL of a page without Message-ID (HyperKitty, mail-archive.com)."""
_QUERIES = ("i", "mid", "msgid", "message_id", "message-id")
"""Names under which the query of a URL has a Message-ID (MARC)."""
_HOST_AND_PATH = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d{1,5})?/", re.IGNORECASE)


def find_message_id(text: str) -> str | None:
    """Return the Message-ID in `text` without angle brackets, or None.

    A URL may be that of any archive or patch tracker: the id is the first part of its path that is one when it is
    unquoted, or in its query. The address of a list is none.
    """
    text = text.strip()
    if bracketed := _BRACKETED.search(text):
        text = bracketed[1]
    elif header := _HEADER.match(text):
        text = text[header.end() :].strip()
        return _checked(unquote(text)) if header[0].lower() == "mid:" else find_message_id(text)
    if "://" in text:
        return _in_url(text)
    if _HOST_AND_PATH.match(text):
        return _in_url(f"https://{text}")
    return _checked(text) or _checked(unquote(text))


def _in_url(url: str) -> str | None:
    try:
        address = urlsplit(url)
        queries = parse_qsl(address.query, max_num_fields=50)
    except ValueError:
        return None
    parts = [part for part in address.path.split("/") if part]
    around = zip(["", *parts], parts, [*parts[1:], ""], strict=False)
    named = [unquote(part) for before, part, after in around if before != "list" and not _LIST_PAGE.fullmatch(after)]
    searched = ("q",) if ("l", "mid") in queries else ()  # a search of mail-archive.com by id, not by words
    named += [value.strip("<> ") for name, value in queries if name.lower() in (*_QUERIES, *searched)]
    return next((found for part in named if (found := _checked(part))), None)


def _checked(text: str) -> str | None:
    """Return `text` if it is a Message-ID."""
    if len(text) > LENGTH_LIMIT or control_character(text) is not None:
        return None
    return text if _ID.fullmatch(text) else None
