"""Read the mails of an epoch's commits. A program for the sandbox; `read_list` runs it.

    python -m wqlab_worker.intake.read_commits REPOSITORY BEHIND SINCE LIMIT

REPOSITORY is the bare clone of an epoch. BEHIND is the last commit that was read, or `-`; SINCE, a Unix time, is then
the first time of interest. Writes the mails of the next LIMIT commits to /out/mails.json (`ListMails` without
position), and the last of these commits to /out/commit.

A commit adds a mail as the file `m`, or removes one, which is then the file `d`
(https://public-inbox.org/public-inbox-v2-format.html).
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from wqlab_contracts.api.series import FileChange
from wqlab_contracts.diffstat import changed_files
from wqlab_contracts.mails import mbox
from wqlab_contracts.mails.mbox import Mail
from wqlab_contracts.mails.revision_mails import date_of
from wqlab_contracts.messages.list_mails import (
    PATH_LENGTH,
    PATH_LIMIT,
    REPLY_BYTES,
    SYMBOL_LIMIT,
    ArchivedReply,
    ListMail,
    ListMails,
)
from wqlab_contracts.text import control_character

from .parse_thread import printable

BRANCH = "refs/heads/master"
MAIL_BYTES = 2 << 20
"""Size of the largest mail that is read; a patch of a series is smaller."""
READ_BYTES = 8_000_000
"""Size in bytes, as JSON, of the returned mails at which a read ends although `limit` is not reached."""
_ADDED, _REMOVED = "m", "d"
_FIRST_LINE = "From mboxrd@z Thu Jan  1 00:00:00 1970\n"
_FROM = re.compile(r"^(>*From )", re.MULTILINE)
_ASKS = re.compile(r"^wqlab:[ \t]*test[ \t\r]*$", re.MULTILINE)


def main(out: Path = Path("/out")) -> None:
    repository, behind, since, limit = sys.argv[1:]
    commits = _commits(repository, None if behind == "-" else behind, int(since))
    is_complete = len(commits) <= int(limit)
    commits = commits[: int(limit)]
    size = 0
    mails: list[ListMail] = []
    replies: list[ArchivedReply] = []
    removed: list[str] = []
    unread = 0
    with _Contents(repository) as contents:
        for place, (commit, archived_at) in enumerate(commits):
            if size > READ_BYTES:
                commits, is_complete = commits[:place], False
                break
            data = contents.read(f"{commit}:{_ADDED}")
            mail = _parse(data)
            found_mail = None if mail is None else _described(mail, archived_at)
            gone = None if mail else _parse(contents.read(f"{commit}:{_REMOVED}"))
            if mail is not None and found_mail is not None:
                mails.append(found_mail)
                size += len(found_mail.model_dump_json())
                if data is not None and is_command(mail, data):
                    replies.append(ArchivedReply.of(mails[-1].message_id, data))
                    size += len(replies[-1].raw)
            elif gone is not None:
                removed.append(gone.effective_message_id[:1000])
            else:
                unread += 1
    found = ListMails(
        position=None, mails=mails, replies=replies, removed=removed, unread=unread, is_complete=is_complete
    )
    (out / "mails.json").write_text(found.model_dump_json())
    (out / "commit").write_text(commits[-1][0] if commits else "")


def _parse(data: bytes | None) -> Mail | None:
    """Return the mail of an archive's file; None if anything about it cannot be read, so that a list never stops."""
    try:
        return parse_archived(data)
    except Exception as error:
        sys.stderr.write(f"a mail cannot be read: {error!r}\n")
        return None


def _described(mail: Mail, archived_at: datetime) -> ListMail | None:
    """Return what watches look at; None if the mail cannot be described."""
    try:
        return describe(mail, archived_at)
    except Exception as error:
        sys.stderr.write(f"a mail cannot be described: {error!r}\n")
        return None


def is_command(mail: Mail, data: bytes) -> bool:
    """Return True if a mail may command the lab: a reply without a patch, with a line `wqlab: ...`."""
    return (
        mail.in_reply_to is not None
        and not mail.has_patch
        and len(data) <= REPLY_BYTES
        and any(line.strip().lower().startswith("wqlab:") for line in mail.body.splitlines())
    )


def describe(mail: Mail, archived_at: datetime) -> ListMail:
    """Return what watches look at. Bytes that are no UTF-8 are replaced."""
    number, total = mail.counter or (None, None)
    changes = changed_files(mail.body)
    names = (name for change in changes for name in (change.old_path, change.path) if name)
    paths = dict.fromkeys(name for name in names if _is_kept(name))
    return ListMail(
        message_id=printable(mail.effective_message_id)[:1000],
        in_reply_to=None if mail.in_reply_to is None else printable(mail.in_reply_to)[:1000],
        references=[printable(each)[:1000] for each in mail.references[-50:]],
        subject=printable(mail.subject),
        author=printable(mail.author),
        date=date_of(mail),
        archived_at=archived_at,
        is_reply=mail.is_reply,
        has_patch=mail.has_patch,
        version=min(mail.version, 9999),
        number=number,
        total=total,
        paths=[printable(path) for path in list(paths)[:PATH_LIMIT]],
        symbols=_symbols(changes) if mail.has_patch and not mail.is_reply else {},
        asks=_ASKS.search(mail.body) is not None,
    )


def _is_kept(path: str) -> bool:
    """Return False for names that no file of a kernel has."""
    return len(path) <= PATH_LENGTH and control_character(path) is None


def _symbols(changes: Sequence[FileChange]) -> dict[str, list[str]]:
    """Return path -> symbols of the files that a patch changes, within the limits of a ListMail."""
    found: dict[str, list[str]] = {}
    left = SYMBOL_LIMIT
    for change in changes[:PATH_LIMIT]:
        taken = change.symbols[:left]
        left -= len(taken)
        if taken and _is_kept(change.path):
            found[printable(change.path)] = taken
    return found


def _commits(repository: str, behind: str | None, since: int) -> list[tuple[str, datetime]]:
    """Return commits and the times at which the archive received them, oldest first."""
    chosen = [f"{behind}..{BRANCH}"] if behind else [f"--since={since}", BRANCH]
    command = ["git", f"--git-dir={repository}", "log", "--reverse", "--first-parent", "--format=%H %ct", *chosen]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    pairs = [line.split() for line in listed if line]
    return [(commit, datetime.fromtimestamp(int(seconds), UTC)) for commit, seconds in pairs]


def parse_archived(data: bytes | None) -> Mail | None:
    """Return the mail of an archive's file; None if there is none, or if it cannot be read."""
    if data is None:
        return None
    # An archive keeps mails as they came: a line of the text may look like the beginning of another mail.
    text = _FROM.sub(r">\1", data.decode("utf-8", errors="surrogateescape"))
    mails = mbox.parse_mails(f"{_FIRST_LINE}{text}", escaped=True)
    return mails[0] if len(mails) == 1 and mails[0].readable else None


class _Contents:
    """The files of a repository, read by one git process."""

    def __init__(self, repository: str) -> None:
        command = ["git", f"--git-dir={repository}", "cat-file", "--batch-command"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> _Contents:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def read(self, name: str) -> bytes | None:
        """Return a file; None if there is none, or if it is larger than MAIL_BYTES."""
        answer = self._ask("info", name)
        if len(answer) != 3 or answer[1] != "blob" or int(answer[2]) > MAIL_BYTES:
            return None
        size = int(self._ask("contents", name)[2])
        return _pipe(self._process.stdout).read(size + 1)[:size]

    def _ask(self, command: str, name: str) -> list[str]:
        """Return the words of the answer's first line: object, type and size, or `NAME missing`."""
        stdin = _pipe(self._process.stdin)
        stdin.write(f"{command} {name}\n".encode())
        stdin.flush()
        return _pipe(self._process.stdout).readline().decode().split()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("not a pipe")
    return stream


if __name__ == "__main__":
    main()
