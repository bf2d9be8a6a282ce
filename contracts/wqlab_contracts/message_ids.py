"""Find the Message-ID in what people paste: an id, a mail header, or the URL of a message in any archive; or the series
of a Patchwork."""

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
_SERIES_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_SERIES_PATH = re.compile(r"(?P<path>[^?#]*?)(?:/api(?:/1\.[0-9])?)?/series/(?P<number>[1-9][0-9]{0,8})(?:/mbox)?/?")
"""Path of a series in Patchwork's REST API, and of its mbox."""
_PROJECT_LIST = re.compile(r"/project/[^/]+/list/?$")
"""Path of a page with a list of patches, whose query has the number of the series."""
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


def find_series(text: str) -> str | None:
    """Return the address of a Patchwork series: `https://HOST/series/N/` for any of its URLs, `N` for a number alone.

    Return None if `text` is neither.
    """
    text = text.strip()
    if _SERIES_NUMBER.fullmatch(text):
        return text
    text = f"https://{text}" if _HOST_AND_PATH.match(text) else text
    try:
        address = urlsplit(text)
        numbers = [value for name, value in parse_qsl(address.query, max_num_fields=50) if name == "series"]
    except ValueError:
        return None
    path = f"{_PROJECT_LIST.sub('', address.path)}/series/{numbers[0]}" if numbers else address.path
    found = _SERIES_PATH.fullmatch(path)
    plain = len(text) <= LENGTH_LIMIT and text.isascii() and text.isprintable() and not {" ", "@"} & set(text)
    if found is None or not plain or address.scheme not in {"http", "https"} or not address.hostname:
        return None
    return f"{address.scheme}://{address.netloc}{found['path']}/series/{found['number']}/"


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
