"""Decide which watch takes a series of a list, and what is measured of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.enums import DecisionReason
from wqlab_contracts.mail import address_of
from wqlab_contracts.specs import ListWatch

from .listed_series import ListedSeries

_TARGETS_LIMIT = 16

Propose = Callable[[Sequence[TouchedFile]], Sequence[str]]
"""Return the targets, `plan@device-type`, that the lab proposes for what a series changes."""


def propose_nothing(_: Sequence[TouchedFile]) -> Sequence[str]:
    """Propose no targets: for watches that name theirs."""
    return ()


@dataclass(frozen=True)
class Taken:
    """A watch takes a series."""

    watch: ListWatch
    targets: tuple[str, ...]
    """`plan@device-type`."""


@dataclass(frozen=True)
class Refused:
    """A watch does not take a series."""

    watch: ListWatch
    reason: DecisionReason
    detail: str


def judge_all(
    watches: Sequence[ListWatch],
    series: ListedSeries,
    propose: Propose = propose_nothing,
    *,
    sender_checked: bool = True,
) -> list[Taken | Refused]:
    """Return what each watch says about a series whose patches have all arrived. At most the first one takes it.

    `sender_checked`: the archive takes only mails whose sender was checked.
    """
    taker: ListWatch | None = None
    answers: list[Taken | Refused] = []
    for watch in watches:
        answer = judge(watch, series, propose, sender_checked=sender_checked)
        if isinstance(answer, Taken):
            if taker is not None:
                answer = Refused(watch, DecisionReason.OTHER_WATCH, f"watch {taker.name} takes it")
            else:
                taker = watch
        answers.append(answer)
    return answers


def judge(
    watch: ListWatch, series: ListedSeries, propose: Propose = propose_nothing, *, sender_checked: bool = True
) -> Taken | Refused:
    """Return what is measured of a series whose patches have all arrived, or the first reason why nothing is."""
    if not _any_path(watch.paths, series.paths):
        return Refused(watch, DecisionReason.PATHS, "no patch changes a file of `paths`")
    if not _any_subject(watch.subjects, [mail.subject for mail in series.mails]):
        return Refused(watch, DecisionReason.SUBJECTS, "no subject has words of `subjects`")
    if watch.authors and not sender_checked:
        detail = "anybody can write its sender: the archive has no `dkim_checked: true`"
        return Refused(watch, DecisionReason.AUTHORS, detail)
    if not all(_any_author(watch.authors, mail.author) for mail in series.mails):  # anybody may reply to a cover letter
        return Refused(watch, DecisionReason.AUTHORS, "the sender of one of its mails is not in `authors`")
    if watch.only_if_asked and not series.asks:
        return Refused(watch, DecisionReason.NOT_ASKED, "its cover letter has no line `wqlab: test`")
    return _targets(watch, series, propose)


def _any_path(prefixes: Sequence[str], paths: Sequence[str]) -> bool:
    return not prefixes or any(
        path.startswith(prefix) if prefix.endswith("/") else path == prefix for prefix in prefixes for path in paths
    )


def _any_subject(texts: Sequence[str], subjects: Sequence[str]) -> bool:
    return not texts or any(text.casefold() in subject.casefold() for text in texts for subject in subjects)


def _any_author(addresses: Sequence[str], author: str) -> bool:
    address = address_of(author).casefold()
    return not addresses or any(
        address.endswith(each.casefold()) if each.startswith("@") else address == each.casefold() for each in addresses
    )


def _targets(watch: ListWatch, series: ListedSeries, propose: Propose) -> Taken | Refused:
    """Return what a watch measures of a series: what it names, or what the lab proposes."""
    if not watch.what_it_touches:
        return Taken(watch, tuple(watch.targets))
    proposed = propose(series.touched)
    allowed = [target for target in proposed if not watch.targets or target in watch.targets]
    if not proposed:
        return Refused(watch, DecisionReason.PATHS, "the lab has no plan for the files and functions that it changes")
    if not allowed:
        detail = f"of its changes the lab would measure {', '.join(proposed)}, and `targets` has none of these"
        return Refused(watch, DecisionReason.PATHS, detail)
    return Taken(watch, tuple(allowed[:_TARGETS_LIMIT]))
