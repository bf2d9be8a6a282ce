"""Read the mails of a thread and choose a revision. A program for the sandbox; `fetch_thread` runs it.

    python -m wqlab_worker.intake.parse_thread query MESSAGE_ID
    python -m wqlab_worker.intake.parse_thread select MESSAGE_ID [REVISION]
    python -m wqlab_worker.intake.parse_thread inspect
    python -m wqlab_worker.intake.parse_thread ids

`query` reads /in/thread.mbox and writes the search for other revisions to /out/query. `select` also reads
/in/results.mbox, if it exists, and writes the chosen mails to /out/series.mbox and their description to
/out/selection.json. `inspect` describes /out/series.mbox in /out/inspection.json, and `ids` writes the Message-IDs in
/in/thread.mbox to /out/ids, one a line. What the mails are to blame for is
written to /out/problem.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from wqlab_contracts.mail import source_of
from wqlab_contracts.mails import mbox
from wqlab_contracts.mails.canonical_mails import canonical_mbox
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.mails.mbox import Mail
from wqlab_contracts.mails.revision_mails import Selection, date_of, trailers_of
from wqlab_contracts.mails.thread_series import (
    MAIL_LIMIT,
    Thread,
    ThreadProblem,
    revision_query,
    select,
)
from wqlab_contracts.messages.base import TITLE_LIMIT, cut
from wqlab_contracts.messages.threads import LISTED_REPLIES, REVISION_LIMIT, ThreadMail, ThreadSelection
from wqlab_contracts.text import valid_text


def main(folder_in: Path = Path("/in"), folder_out: Path = Path("/out")) -> None:
    command, *arguments = sys.argv[1:]
    try:
        _COMMANDS[command](folder_in, folder_out, arguments)
    except ThreadProblem as problem:
        told = {"summary": printable(str(problem)), "advice": printable(problem.advice)}
        (folder_out / "problem.json").write_text(json.dumps(told))


def _query(folder_in: Path, folder_out: Path, arguments: list[str]) -> None:
    (folder_out / "query").write_text(printable(revision_query(_read(folder_in), arguments[0])))


def _select(folder_in: Path, folder_out: Path, arguments: list[str]) -> None:
    revision = int(arguments[1]) if len(arguments) > 1 else None
    chosen = select(_read(folder_in), arguments[0], revision)
    for mail in (*chosen.covers, *chosen.superseded, *chosen.patches):
        if (problem := mbox.header_problem(mail.text)) is not None:
            raise ThreadProblem(f"the mail {mail.effective_message_id} cannot be applied: {problem}")
    (folder_out / "series.mbox").write_text(canonical_mbox(chosen.chosen), encoding="utf-8", errors="replace")
    (folder_out / "selection.json").write_text(describe(chosen).model_dump_json())


def _inspect(folder_in: Path, folder_out: Path, arguments: list[str]) -> None:
    text = (folder_out / "series.mbox").read_bytes().decode("utf-8", errors="replace")
    (folder_out / "inspection.json").write_text(inspect(text).model_dump_json())


def _ids(folder_in: Path, folder_out: Path, arguments: list[str]) -> None:
    (folder_out / "ids").write_text("\n".join(map(valid_text, _read(folder_in).mails)))


_COMMANDS: dict[str, Callable[[Path, Path, list[str]], None]] = {
    "query": _query,
    "select": _select,
    "inspect": _inspect,
    "ids": _ids,
}


def _read(folder: Path) -> Thread:
    mails: list[Mail] = []
    for path in (folder / "thread.mbox", folder / "results.mbox"):
        if path.exists():
            text = path.read_bytes().decode("utf-8", errors="surrogateescape")
            number = len(mails) + text.count("\nFrom ")
            if number > MAIL_LIMIT:
                raise ThreadProblem(
                    f"the thread has more than {MAIL_LIMIT} mails",
                    "Save the mails of the series with `b4 am`, and submit them as an mbox.",
                )
            mails += mbox.parse_mails(text, escaped=True)
    return Thread(mails)


def describe(chosen: Selection) -> ThreadSelection:
    """Return the description of a selection. Bytes that are no UTF-8 are replaced."""
    replies = [mail for mail in chosen.replies if trailers_of(mail)][:LISTED_REPLIES]
    heads = [*chosen.covers, *chosen.superseded, *chosen.patches]
    return ThreadSelection(
        revision=min(chosen.revision, REVISION_LIMIT),
        revisions=chosen.revisions[-1000:],
        subject=printable(chosen.subject),
        author=printable(chosen.author),
        series_key=printable(chosen.series_key),
        mails=[_describe_mail(mail, chosen) for mail in (*heads, *replies)],
        replies=len(chosen.replies),
        notes=[printable(note) for note in chosen.notes],
        source=source_of(valid_text((chosen.covers or chosen.patches)[0].text)),
    )


def _describe_mail(mail: Mail, chosen: Selection) -> ThreadMail:
    reply = mail in chosen.replies
    superseded = mail in chosen.superseded
    return ThreadMail(
        role="reply" if reply else "superseded" if superseded else "cover" if mail.is_cover else "patch",
        subject=printable(mail.subject),
        author=printable(mail.author),
        date=date_of(mail),
        message_id=printable(mail.effective_message_id)[:1000],
        trailers=[printable(trailer) for trailer in trailers_of(mail)] if reply else [],
    )


def printable(text: str) -> str:
    """Return a short text without bytes that are no UTF-8."""
    return cut(valid_text(text), TITLE_LIMIT * 3)


if __name__ == "__main__":
    main()
