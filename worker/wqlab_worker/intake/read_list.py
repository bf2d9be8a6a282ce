"""Read the new mails of a mailing list from the git repositories of its archive.

public-inbox keeps each mail as a commit, in a repository for each epoch of a list, so that git's own protocol tells
what is new. The repositories are fetched outside the sandbox, with limits; their commits and mails are read inside it
(`read_commits`).
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import wqlab_contracts
import wqlab_worker
from wqlab_contracts.messages.list_mails import MAILS_A_READ, ListMail, ListMails, ListPosition, ListSource

from ..apply.fetch import Limits as FetchLimits
from ..apply.fetch import as_infrastructure, fetch, resolve_remote
from ..apply.git import Git, create_bare, git_environment
from ..failures import InfrastructureError, UserError
from ..limits import GIB, MIB, Limits
from ..sandbox import TOOLS, Sandbox, interpreter, limit_error
from ..workspace import Progress, Workspace, collect, no_progress
from .read_commits import BRANCH

_FETCH = FetchLimits(wall_s=900.0, file_bytes=2 * GIB, memory_bytes=2 * GIB)
_LIMITS = Limits(wall_s=300.0, disk_bytes=64 * MIB, memory_bytes=2 * GIB, log_bytes=MIB, processes=32)
_CODE = "/code"
_READER = "wqlab_worker.intake.read_commits"
_EPOCH_LIMIT = 1_000
PREVIEW_BYTES = 16_000_000
"""Maximum size in bytes, as JSON, of the mails that a preview sends; it is below the server's BODY_LIMIT."""
_NOTHING_SINCE = ("no commits selected for shallow requests", "error processing shallow info")
"""Errors of git for an epoch without a mail of the wanted time, from the server or from the client."""


def read_list(
    source: ListSource, workspace: Workspace, progress: Progress = no_progress, *, limit: int = MAILS_A_READ
) -> ListMails:
    """Return at most `limit` mails behind the position of a list.

    Safe to call from several processes and to interrupt at any point: the position decides, not what was fetched. If
    the archive no longer has the position, or its history was rewritten, mails are returned again; none is left out.
    Raises InfrastructureError if the archive does not answer.
    """
    reader = _Reader(source, workspace, progress)
    with workspace.lock(reader.folder.name):
        position = source.position or ListPosition(epoch=reader.last_epoch())
        found = reader.read(position, limit)
        if not found.is_complete or not reader.has_epoch(position.epoch + 1):
            return found
        # An archive adds nothing to an epoch once the next exists; it may have done so since the fetch.
        rest = reader.read(found.position or position, limit)
        if rest.position != found.position:
            return rest.model_copy(
                update={
                    "mails": [*found.mails, *rest.mails][:limit],
                    "replies": [*found.replies, *rest.replies][:limit],
                    "removed": [*found.removed, *rest.removed],
                    "unread": found.unread + rest.unread,
                    "is_complete": False,
                }
            )
        return found.model_copy(update={"position": ListPosition(epoch=position.epoch + 1), "is_complete": False})


def read_for_preview(
    source: ListSource, workspace: Workspace, progress: Progress = no_progress, *, limit: int
) -> ListMails:
    """Return the cover letters and patches that the list's last epoch has received since the source's time.

    At most `limit`, the oldest, and those that fit into PREVIEW_BYTES; `is_complete` is then False. Raises
    InfrastructureError if the archive does not answer.
    """
    heads: list[ListMail] = []
    removed: list[str] = []
    unread, size = 0, 0
    while True:
        found = read_list(source, workspace, progress)
        for mail in (mail for mail in found.mails if mail.is_head):
            size += len(mail.model_dump_json())
            if len(heads) == limit or size > PREVIEW_BYTES:
                return ListMails(
                    position=found.position, mails=heads, removed=removed[:limit], unread=unread, is_complete=False
                )
            heads.append(mail)
        removed += found.removed
        unread += found.unread
        if found.is_complete or found.position is None or found.position == source.position:
            return ListMails(position=found.position, mails=heads, removed=removed[:limit], unread=unread)
        source = source.model_copy(update={"position": found.position})
        progress(f"{len(heads)} cover letters and patches of {source.archive.name} read", 0, 0)


class _Reader:
    """The clones of a list's epochs. The caller holds the lock of the list."""

    def __init__(self, source: ListSource, workspace: Workspace, progress: Progress) -> None:
        self._archive = source.archive
        self._since = f"{source.since.timestamp():.0f}"
        self._workspace = workspace
        self._progress = progress
        # Another URL is another list.
        digest = hashlib.sha256((self._archive.epochs or "").encode()).hexdigest()[:8]
        self.folder = workspace.mirrors / f"list-{self._archive.name}-{digest}"

    def last_epoch(self) -> int:
        """Return the number of the last epoch. An archive has all epochs from 0, so it is found by halving."""
        self._progress(f"looking for the last epoch of {self._archive.name}", 0, 0)
        if not self.has_epoch(0):
            raise InfrastructureError(
                f"archive {self._archive.name} has no repository {self._archive.epoch(0)}",
                advice="Check `epochs` of the archive in intake/archives.yaml with: git ls-remote URL",
            )
        known, beyond = 0, 1
        while beyond < _EPOCH_LIMIT and self.has_epoch(beyond):
            known, beyond = beyond, beyond * 2
        while beyond - known > 1:
            middle = (known + beyond) // 2
            known, beyond = (middle, beyond) if self.has_epoch(middle) else (known, middle)
        return known

    def has_epoch(self, epoch: int) -> bool:
        """Return True if the archive has a repository for the epoch.

        Raises InfrastructureError if it does not answer.
        """
        archive = self._archive
        try:
            resolve_remote(archive.epoch(epoch), self._workspace, private_network=archive.private, http=archive.private)
        except UserError:
            return False
        return True

    def read(self, position: ListPosition, limit: int) -> ListMails:
        """Return at most `limit` mails of the position's epoch behind it."""
        git = self._fetch(position.epoch, needs_older=position.commit is None)
        behind, notes = position.commit, []
        if behind is not None and git.commit(behind) is None:
            behind = None
            notes = ["the archive no longer has the last mail that was read; earlier mails are read again"]
        with self._workspace.temporary("list") as folder:
            (folder / "out").mkdir()
            self._run(git, [behind or "-", self._since, f"{limit}"], folder / "out")
            found = ListMails.model_validate_json(_collected(folder, "mails.json"))
            commit = _collected(folder, "commit") or behind
        return found.model_copy(update={"position": ListPosition(epoch=position.epoch, commit=commit), "notes": notes})

    def _fetch(self, epoch: int, *, needs_older: bool) -> Git:
        """Return the clone of an epoch with all new commits; at first only with those since the time of interest."""
        archive = self._archive
        url = archive.epoch(epoch)
        self.folder.mkdir(exist_ok=True)
        self._workspace.use(self.folder)
        git = create_bare(self._workspace, self.folder / f"{epoch}.git")
        for leftover in (*git.directory.glob("objects/pack/tmp_*"), *git.directory.glob("**/*.lock")):
            leftover.unlink(missing_ok=True)  # of a killed git
        attempts: list[tuple[str, ...]] = [(f"--shallow-since={self._since}",), ("--depth=1",)]
        if git.commit(BRANCH) is not None:
            # A fetch with a later time would cut off commits that were not read yet.
            attempts = attempts[:1] if needs_older and self._lacks_older(git) else [()]
        for options in attempts:
            try:
                fetch(
                    *(git, url, [f"+{BRANCH}:{BRANCH}"]),
                    private_network=archive.private,
                    limits=_FETCH,
                    on_tick=lambda: self._progress(f"fetching {url}", 0, 0),
                    http=archive.private,
                    options=options,
                )
                break
            except UserError as error:
                text = error.failure.excerpt or ""
                if options == attempts[-1] or not any(each in text for each in _NOTHING_SINCE):
                    raise as_infrastructure(error) from error
        return git

    def _lacks_older(self, git: Git) -> bool:
        """Return True if the clone begins with a mail that the archive received after the time of interest."""
        if not (git.directory / "shallow").exists():
            return False
        boundary = git.run("rev-list", "--max-parents=0", "--format=%ct", BRANCH).split()
        return min((int(word) for word in boundary[2::3]), default=0) > int(self._since)

    def _run(self, git: Git, arguments: list[str], out: Path) -> None:
        """Run `read_commits` in the sandbox; it writes to `out`. Raises InfrastructureError if it fails."""
        packages = {module.__name__: Path(module.__file__ or "").parent for module in (wqlab_contracts, wqlab_worker)}
        outside = git_environment(self._workspace)
        log = io.BytesIO()
        sandbox = Sandbox(
            read_only={
                str(git.directory): git.directory,
                outside["GIT_CONFIG_GLOBAL"]: Path(outside["GIT_CONFIG_GLOBAL"]),
                **{f"{_CODE}/{name}": path for name, path in packages.items()},
                **interpreter(),
            },
            writable={"/out": out},
            environment={
                "PYTHONPATH": _CODE,
                "PYTHONDONTWRITEBYTECODE": "1",
                **{name: value for name, value in outside.items() if name.startswith("GIT_")},
            },
            limits=_LIMITS,
        )
        finished = sandbox.run(
            [f"{TOOLS}/bin/python", "-m", _READER, str(git.directory), *arguments],
            log=log,
            on_tick=lambda: self._progress(f"reading mails of {self._archive.name}", 0, 0),
        )
        text = log.getvalue().decode(errors="replace")
        what = f"the mails of {self._archive.name} cannot be read"
        if finished.stopped is not None:
            raise limit_error(finished.stopped, "reading mails of a list", text)
        if finished.exit_code:
            raise InfrastructureError(what, excerpt=text or f"exit code {finished.exit_code}")


def _collected(folder: Path, name: str) -> str:
    target = folder / name
    try:
        collect(folder / "out", name, target, _LIMITS.disk_bytes)
        return target.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InfrastructureError("the mails of the list cannot be read", excerpt=str(error)) from error
