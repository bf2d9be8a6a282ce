"""Find a series by Message-ID, or a Patchwork's by its number, in the configured archives, and keep one revision.

The mails are downloaded outside the sandbox (`archive`, `patchwork`) and read inside it (`parse_thread`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from wqlab_contracts.api.series import SeriesInspection
from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import ThreadSeries
from wqlab_contracts.messages.threads import TakenThread, ThreadMail, ThreadSelection
from wqlab_contracts.specs import Archive

from ..failures import InfrastructureError, UserError
from ..workspace import Progress, Workspace, collect, no_progress
from .archive import ArchiveClient, ArchiveUnavailable, TooLarge
from .mail_parser import LIMITS, MailParser
from .patchwork import PatchworkSeries, download, find_number

THREAD_MBOX = "thread.mbox"
"""Name of the artifact with the mails as taken."""
_MBOX_ADVICE = "Save the mails of the series with `b4 am`, and submit them as an mbox."


@dataclass(frozen=True)
class _Thread:
    """A job's folder with the mails of a thread, found in an archive."""

    folder: Path
    archive: Archive
    series: ThreadSeries
    progress: Progress
    on_patchwork: PatchworkSeries | None = None

    @property
    def message_id(self) -> str:
        """Message-ID of a mail of the series."""
        return self.series.message_id if self.on_patchwork is None else self.on_patchwork.message_id

    def page(self, mail: ThreadMail) -> str:
        return self.archive.page(mail.message_id) if self.on_patchwork is None else self.on_patchwork.page(mail)

    @property
    def parser(self) -> MailParser:
        return MailParser(self.folder, "the thread", self.progress, advice=_MBOX_ADVICE)

    def query(self) -> str:
        self.parser.run("query", self.message_id)
        return self.parser.text("query")

    def select(self) -> ThreadSelection:
        """Choose the mails of the revision. Raises UserError if that is not possible."""
        revision = [] if self.series.revision is None else [f"{self.series.revision}"]
        self.parser.run("select", self.message_id, *revision)
        return ThreadSelection.model_validate_json(self.parser.text("selection.json"))

    def inspect(self) -> SeriesInspection:
        return self.parser.inspect()

    def series_mbox(self) -> Path:
        target = self.folder / THREAD_MBOX
        target.unlink(missing_ok=True)
        collect(self.folder / "out", "series.mbox", target, LIMITS.disk_bytes)
        return target


@dataclass(frozen=True)
class Fetched:
    """A revision of a series, with its mails in the workspace."""

    taken: TakenThread
    inspection: SeriesInspection | None
    """None unless it was asked for."""


def fetch_thread(
    series: ThreadSeries,
    archives: Sequence[Archive],
    workspace: Workspace,
    client: ArchiveClient,
    progress: Progress = no_progress,
    *,
    inspected: bool = False,
) -> Fetched:
    """Find the series and keep the mails of its revision in the workspace.

    The archives are asked in order. Raises UserError if none has the message, or the series cannot be taken, and
    InfrastructureError if an archive does not answer.
    """
    with workspace.temporary("thread") as folder:
        for name in ("in", "out"):
            (folder / name).mkdir()
        try:
            found = _find(series, archives, client, folder, progress)
            selection = _choose_revision(found, client)
            page, archive = found.page, found.archive
            taken = TakenThread(
                **{
                    **{name: getattr(selection, name) for name in ThreadSelection.model_fields},
                    "mails": [mail.model_copy(update={"url": page(mail)}) for mail in selection.mails],
                },
                message_id=found.message_id,
                archive=archive.name,
                url=page(selection.mails[0]) if found.on_patchwork is None else found.on_patchwork.url,
                taken_at=datetime.now(UTC),
                mbox=workspace.keep(found.series_mbox(), ArtifactKind.SERIES, THREAD_MBOX),
            )
            return Fetched(taken, found.inspect() if inspected else None)
        except ValidationError as error:
            raise InfrastructureError("the thread cannot be read", excerpt=str(error)) from error


def _find(
    series: ThreadSeries, archives: Sequence[Archive], client: ArchiveClient, folder: Path, progress: Progress
) -> _Thread:
    """Return the mails of the first archive that has the series, in /in/thread.mbox of the folder."""
    named, path = series.message_id, folder / "in" / "thread.mbox"
    if (address := series.patchwork_series) is not None:
        archives = [archive for archive in archives if archive.series_number(address) is not None]
    unavailable: ArchiveUnavailable | UserError | None = None
    for archive in archives:
        progress(f"looking for {named} in {archive.name}", 0, 0)
        try:
            if archive.kind == "patchwork":
                number = archive.series_number(address) if address else find_number(archive, named, client, folder)
                if number is not None:
                    listed = download(archive, number, client, path)
                    found = _Thread(folder, archive, series, progress, listed)
                    listed.check(found.parser)
                    return found
            elif client.thread(archive, named, path):
                return _Thread(folder, archive, series, progress)
        except ArchiveUnavailable as error:
            unavailable = unavailable if isinstance(unavailable, ArchiveUnavailable) else error
        except UserError as error:
            # A Patchwork may lack patches that the next archive has.
            unavailable = unavailable or error
        except TooLarge as error:
            raise UserError(f"the thread of {named} has more than {error}", advice=_MBOX_ADVICE) from error
    if unavailable is not None:
        raise unavailable
    names = ", ".join(archive.name for archive in archives) or "none is configured"
    raise UserError(
        f"no archive has a message {named} (asked: {names})",
        advice="Check the Message-ID. An archive may need some minutes until it has a mail that was just sent.",
    )


def _choose_revision(thread: _Thread, client: ArchiveClient) -> ThreadSelection:
    """Choose the revision, after a search for revisions in other threads unless the named one is in this thread."""
    if thread.series.revision is not None:
        try:
            return thread.select()
        except UserError as error:
            first_reason = error
    else:
        first_reason = None
    if thread.archive.search is None:
        if first_reason is not None:
            raise first_reason
        chosen = thread.select()
        if thread.series.patchwork_series is not None:
            return chosen  # a series of a Patchwork is one revision
        note = f"archive {thread.archive.name} has no search, so later revisions in other threads are not known"
        return chosen.model_copy(update={"notes": [*chosen.notes, note]})
    thread.progress(f"looking for other revisions in {thread.archive.name}", 0, 0)
    query = thread.query()
    try:
        if query:
            client.search(thread.archive, query, thread.folder / "in" / "results.mbox")
    except TooLarge as error:
        raise UserError(
            f"the search for other revisions gives more than {error}",
            advice="Name the revision of the thread itself, or submit the series as an mbox.",
        ) from error
    return thread.select()
