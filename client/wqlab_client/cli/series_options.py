"""Options that name the series of a command, and the series that they give."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from wqlab_contracts.mails import mbox
from wqlab_contracts.message_ids import find_message_id, find_series
from wqlab_contracts.messages import GitSeries, MboxSeries, Series, ThreadSeries

from ..errors import UsageError


@dataclass(frozen=True)
class SeriesOptions:
    """The options that name the series."""

    git: str | None = None
    ref: str | None = None
    base: str | None = None
    mbox: str | None = None
    message_id: str | None = None
    revision: int | None = None
    settings_only: bool = False


def parse_series(given: SeriesOptions) -> Series | None:
    """Parse the series from the options; None for a settings study.

    Raises UsageError unless exactly one of --git (with --ref), --mbox, --message-id and --settings-only is given.
    """
    kinds = {
        "--git": given.git,
        "--mbox": given.mbox,
        "--message-id": given.message_id,
        "--settings-only": given.settings_only,
    }
    named = [name for name, value in kinds.items() if value]
    if len(named) != 1:
        raise UsageError(
            f"{' and '.join(named)} exclude each other" if named else "nothing to test is given",
            "pass one of --git URL --ref BRANCH, --mbox FILE (- is standard input), --message-id ID, --settings-only",
        )
    if not given.git and (given.ref or given.base):
        raise UsageError(f"{'--ref' if given.ref else '--base'} needs --git", "pass --git URL, or omit it")
    if not given.message_id and given.revision is not None:
        raise UsageError("--revision needs --message-id", "pass --message-id ID, or omit it")
    if given.git:
        if not given.ref:
            raise UsageError("--git needs --ref", "name the branch or tag of the series: --ref my-branch")
        return Series(git=GitSeries(url=given.git, ref=given.ref, base=given.base))
    if given.message_id:
        if find_message_id(given.message_id) is None and find_series(given.message_id) is None:
            raise UsageError(
                f"--message-id: there is no Message-ID in {given.message_id[:200]!r}",
                "write the part between < and > of the mail's Message-ID header, the URL of the mail in an archive, or "
                "the URL or number of a Patchwork series",
            )
        return Series(thread=ThreadSeries(message_id=given.message_id, revision=given.revision))
    if not given.mbox:
        return None
    text = _read_mbox(given.mbox)
    try:
        return Series(mbox=MboxSeries(text=text))
    except ValidationError as error:
        raise usage_error("--mbox", error) from None


def _read_mbox(name: str) -> str:
    what = "standard input" if name == "-" else name
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = mbox.decode(data)
    except ValueError as error:
        raise UsageError(f"--mbox: {what}: {error}") from None
    except OSError as error:
        raise UsageError(f"--mbox: cannot read {what}: {error.strerror}") from None
    if not text.strip():
        raise UsageError(f"--mbox: {what} is empty", "create it with `git format-patch --stdout BASE..` or `b4 am`")
    return text


def usage_error(what: str, error: ValidationError) -> UsageError:
    """Return the error of an option that does not fit its model."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return UsageError(f"{what}: {where}: {first['msg']} (got {str(first['input'])[:60]!r})")
