"""Decide which rule takes a series of a list, and what is measured of it. Pure."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Sequence
from dataclasses import dataclass

from wqlab_contracts.specs.rules import ListRule

from .listed_series import ListedSeries

_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}@[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SEPARATORS = re.compile(r"[\s,]+")
EVERYTHING = "test"
"""A request `wqlab: test` asks for the targets of the rule."""


@dataclass(frozen=True)
class Taken:
    """A rule takes a series."""

    rule: ListRule
    targets: tuple[str, ...]
    """`plan@device-type`."""


@dataclass(frozen=True)
class Refused:
    """A series asks for what no rule allows, or in a way that is not understood. The author is told why."""

    rule: ListRule
    reason: str


def match(rules: Sequence[ListRule], series: ListedSeries) -> Taken | Refused | None:
    """Return what the first rule that matches says about a complete series; None if none does."""
    refused: Refused | None = None
    for rule in rules:
        if not matches(rule, series):
            continue
        answer = _targets(rule, series)
        if isinstance(answer, Taken):
            return answer
        refused = refused or answer
    return refused


def matches(rule: ListRule, series: ListedSeries) -> bool:
    """Return True if paths, subjects, authors and, if the rule says so, a request match."""
    if rule.only_if_asked and not series.requests:
        return False
    return (
        _any_path(rule.paths, series.paths)
        and _any_subject(rule.subjects, [mail.subject for mail in series.mails])
        and _any_author(rule.authors, series.author)
    )


def _any_path(prefixes: Sequence[str], paths: Sequence[str]) -> bool:
    return not prefixes or any(
        path.startswith(prefix) if prefix.endswith("/") else path == prefix for prefix in prefixes for path in paths
    )


def _any_subject(texts: Sequence[str], subjects: Sequence[str]) -> bool:
    return not texts or any(text.casefold() in subject.casefold() for text in texts for subject in subjects)


def _any_author(addresses: Sequence[str], author: str) -> bool:
    address = email.utils.parseaddr(author)[1].casefold()
    return not addresses or any(
        address.endswith(each.casefold()) if each.startswith("@") else address == each.casefold() for each in addresses
    )


def _targets(rule: ListRule, series: ListedSeries) -> Taken | Refused | None:
    """Return what is measured: what the series asks for, else what the rule names."""
    if not series.requests:
        return Taken(rule, tuple(rule.targets))
    asked: dict[str, None] = {}
    for word in (word for request in series.requests for word in _SEPARATORS.split(request) if word):
        if word == EVERYTHING:
            if not rule.targets:
                return Refused(
                    rule, f"`wqlab: {EVERYTHING}` needs a rule with targets; name one: wqlab: PLAN@DEVICE-TYPE"
                )
            asked.update(dict.fromkeys(rule.targets))
        elif not _TARGET.fullmatch(word):
            return Refused(rule, f"`{word[:80]}` is not understood; write wqlab: PLAN@DEVICE-TYPE")
        elif rule.targets and word not in rule.targets:
            return Refused(rule, f"rule {rule.name} does not allow {word}; it allows {', '.join(rule.targets)}")
        else:
            asked[word] = None
    return Taken(rule, tuple(asked))
