"""Say what the lab would apply of mails, without a lab. Pure."""

from __future__ import annotations

from pydantic import Field

from .api.series import FileChange, SeriesProblem
from .mails import mbox
from .mails.canonical_mails import canonical_mbox
from .mails.inspection import choose_patches
from .mails.thread_series import Thread, ThreadProblem, select
from .messages import Message
from .reply_commands import commands_of


class OfflinePatch(Message):
    """A patch that the lab would apply."""

    message_id: str | None
    title: str
    author: str
    files: list[FileChange]


class ReplyCommands(Message):
    """Commands to the lab in a reply."""

    message_id: str | None
    commands: list[str]


class OfflineInspection(Message):
    """What the lab would do with mails."""

    patches: list[OfflinePatch] = Field(default_factory=list)
    """In the order of application; of a refused series those that were found."""
    version: int | None = None
    subject: str = ""
    series_key: str = ""
    base: str | None = None
    refusal: str | None = None
    """Why the lab would refuse the series; null if it would apply it."""
    problems: list[SeriesProblem] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    commands: list[ReplyCommands] = Field(default_factory=list)


def inspect_offline(data: bytes, message_id: str | None = None, revision: int | None = None) -> OfflineInspection:
    """Inspect an mbox or a raw mail as an upload or, with a Message-ID, as the thread of that mail."""
    raw = data.decode("utf-8", errors="surrogateescape")
    commands = _commands(raw)
    notes: list[str] = []
    key = ""
    try:
        if message_id is None:
            text = mbox.decode(data)
        else:
            chosen = select(Thread(mbox.parse_mails(raw, escaped=True)), message_id, revision)
            text, notes, key = canonical_mbox(chosen.chosen), chosen.notes, chosen.series_key
    except ThreadProblem as error:
        return OfflineInspection(refusal=f"{error}. {error.advice}".removesuffix(". "), commands=commands)
    except ValueError as error:
        return OfflineInspection(refusal=str(error), commands=commands)
    if "\0" in text:
        return OfflineInspection(refusal="it has a NUL byte; patches are text", notes=notes, commands=commands)
    if (problem := mbox.header_problem(text)) is not None:
        return OfflineInspection(refusal=problem, notes=notes, commands=commands)
    found = choose_patches(text).inspection
    errors = [problem.detail for problem in found.problems if problem.severity == "error"]
    return OfflineInspection(
        patches=[
            OfflinePatch(message_id=each.message_id, title=each.subject, author=each.author, files=each.files)
            for each in found.patches
        ],
        version=found.version if found.patches else None,
        subject=found.subject,
        series_key=key or found.series_key,
        base=found.base_commit,
        refusal=errors[0] if errors else None,
        problems=found.problems,
        notes=notes,
        commands=commands,
    )


def _commands(text: str) -> list[ReplyCommands]:
    """Return the commands in the replies, which the lab takes only of senders who may give them."""
    mails = mbox.parse_mails(text) if len(mbox.split(text)) <= mbox.MAIL_LIMIT else []
    found = [
        (mail.message_id, list(commands_of(mail.body))) for mail in mails if mail.in_reply_to and not mail.has_patch
    ]
    return [ReplyCommands(message_id=message_id, commands=each) for message_id, each in found if each]
