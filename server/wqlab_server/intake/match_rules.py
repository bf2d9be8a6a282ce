"""Decide which rule takes a series of a list, and what is measured of it. Pure."""

from __future__ import annotations

import email.utils
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.enums import DecisionReason
from wqlab_contracts.specs.rules import ListRule

from .listed_series import ListedSeries

_TARGETS_LIMIT = 16

Propose = Callable[[Sequence[TouchedFile]], Sequence[str]]
"""Return the targets, `plan@device-type`, that the lab proposes for what a series changes."""


def propose_nothing(_: Sequence[TouchedFile]) -> Sequence[str]:
    """Propose no targets: for rules that name theirs."""
    return ()


@dataclass(frozen=True)
class Taken:
    """A rule takes a series."""

    rule: ListRule
    targets: tuple[str, ...]
    """`plan@device-type`."""


@dataclass(frozen=True)
class Refused:
    """A rule does not take a series."""

    rule: ListRule
    reason: DecisionReason
    detail: str


def judge_all(
    rules: Sequence[ListRule],
    series: ListedSeries,
    propose: Propose = propose_nothing,
    *,
    sender_checked: bool = True,
) -> list[Taken | Refused]:
    """Return what each rule says about a series whose patches have all arrived. At most the first one takes it.

    `sender_checked`: the archive takes only mails whose sender was checked.
    """
    taker: ListRule | None = None
    answers: list[Taken | Refused] = []
    for rule in rules:
        answer = judge(rule, series, propose, sender_checked=sender_checked)
        if isinstance(answer, Taken):
            if taker is not None:
                answer = Refused(rule, DecisionReason.OTHER_RULE, f"rule {taker.name} takes it")
            else:
                taker = rule
        answers.append(answer)
    return answers


def judge(
    rule: ListRule, series: ListedSeries, propose: Propose = propose_nothing, *, sender_checked: bool = True
) -> Taken | Refused:
    """Return what is measured of a series whose patches have all arrived, or the first reason why nothing is."""
    if not _any_path(rule.paths, series.paths):
        return Refused(rule, DecisionReason.PATHS, "no patch changes a file of `paths`")
    if not _any_subject(rule.subjects, [mail.subject for mail in series.mails]):
        return Refused(rule, DecisionReason.SUBJECTS, "no subject has words of `subjects`")
    if rule.authors and not sender_checked:
        detail = "anybody can write its sender: the archive has no `dkim_checked: true`"
        return Refused(rule, DecisionReason.AUTHORS, detail)
    if not all(_any_author(rule.authors, mail.author) for mail in series.mails):  # anybody may reply to a cover letter
        return Refused(rule, DecisionReason.AUTHORS, "the sender of one of its mails is not in `authors`")
    if rule.only_if_asked and not series.asks:
        return Refused(rule, DecisionReason.NOT_ASKED, "its cover letter has no line `wqlab: test`")
    return _targets(rule, series, propose)


def _any_path(prefixes: Sequence[str], paths: Sequence[str]) -> bool:
    return not prefixes or any(
        path.startswith(prefix) if prefix.endswith("/") else path == prefix for prefix in prefixes for path in paths
    )


def _any_subject(texts: Sequence[str], subjects: Sequence[str]) -> bool:
    return not texts or any(text.casefold() in subject.casefold() for text in texts for subject in subjects)


def _any_author(addresses: Sequence[str], author: str) -> bool:
    address = address_of(author)
    return not addresses or any(
        address.endswith(each.casefold()) if each.startswith("@") else address == each.casefold() for each in addresses
    )


def address_of(author: str) -> str:
    """Return the address of `Ada <ada@example.org>`, in lower case; empty if there is none."""
    return email.utils.parseaddr(author)[1].casefold()


def _targets(rule: ListRule, series: ListedSeries, propose: Propose) -> Taken | Refused:
    """Return what a rule measures of a series: what it names, or what the lab proposes."""
    if not rule.what_it_touches:
        return Taken(rule, tuple(rule.targets))
    proposed = propose(series.touched)
    allowed = [target for target in proposed if not rule.targets or target in rule.targets]
    if not proposed:
        return Refused(rule, DecisionReason.PATHS, "the lab has no plan for the files and functions that it changes")
    if not allowed:
        detail = f"of its changes the lab would measure {', '.join(proposed)}, and `targets` has none of these"
        return Refused(rule, DecisionReason.PATHS, detail)
    return Taken(rule, tuple(allowed[:_TARGETS_LIMIT]))
