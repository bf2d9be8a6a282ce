"""Read a commit of a repository on a forge: its merge base, the changed files and its `.wqlab.yaml`.

Commits are fetched under the same rules as a submitted branch, and read in the sandbox.
"""

from __future__ import annotations

from pathlib import Path

from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages.forge_readings import PATH_LIMIT, ForgeReadingJob, ForgeReadingResult
from wqlab_contracts.touches import touched_files
from wqlab_contracts.tree_config import FILE, SIZE_LIMIT, read_tree_config

from ..failures import UserError
from ..workspace import Progress, Workspace, no_progress
from .branch import check_count, source_reference
from .confined_git import ConfinedGit, ConfinedGitError, create_confined, limits_text
from .fetch import fetch
from .inspect_commits import inspect_commits
from .mirror import update_mirror
from .series_size import check_size

PATHS_BYTES = 1 << 20
"""Bytes that are read of the list of changed files."""
_HEAD = "refs/fetched/head"
_BASE = "refs/fetched/base"
_REGULAR = frozenset({"100644", "100755"})


def read_forge_head(job: ForgeReadingJob, workspace: Workspace, progress: Progress = no_progress) -> ForgeReadingResult:
    """Fetch the commit and read it. Raises UserError if it cannot be fetched or read, InfrastructureError for a
    failure of the lab."""
    mirror = update_mirror(job.tree, workspace, progress)
    with workspace.temporary("forge") as folder:
        git = create_confined(workspace, folder, "git", [], mirror.git.directory)
        _fetch(git, job, progress)
        head, base = git.commit(_HEAD), git.commit(_BASE) if job.base_branch else mirror.head
        if head is None or base is None:
            raise UserError(f"{job.url} has no commit {job.head[:12]}, or no branch {job.base_branch}")
        merge_base = _merge_base(git, job, head, base)
        paths, complete = _changed_paths(git, merge_base, head)
        config = _config(git, head if job.config_from == "head" else base)
        return ForgeReadingResult(
            outcome=Outcome.PASSED,
            merge_base=merge_base,
            config=config,
            paths=paths,
            paths_complete=complete,
            touched=_touched(git, merge_base, head, folder, progress)
            if paths and _asks_what_it_touches(config)
            else None,
        )


def _fetch(git: ConfinedGit, job: ForgeReadingJob, progress: Progress) -> None:
    refspecs = [f"+{job.head}:{_HEAD}"]
    if job.base_branch:
        refspecs.append(f"+refs/heads/{source_reference(job.base_branch)}:{_BASE}")
    fetch(
        *(git.fetching(), job.url, refspecs),
        private_network=False,
        on_tick=lambda: progress(f"fetching {job.head[:12]} of {job.url}", 0, 0),
    )


def _merge_base(git: ConfinedGit, job: ForgeReadingJob, head: str, base: str) -> str:
    try:
        return git.run("merge-base", head, base).strip()
    except ConfinedGitError:
        of = f"branch {job.base_branch}" if job.base_branch else f"tree {job.tree.name}"
        raise UserError(
            f"{job.head[:12]} and {of} have no commit in common",
            advice="Rebase the branch; or the lab's operator names another tree for this repository.",
        ) from None


def _changed_paths(git: ConfinedGit, base: str, head: str) -> tuple[list[str], bool]:
    """Return the changed files, and whether these are all."""
    listing = ["git", "diff-tree", "-r", "-z", "--no-renames", "--name-only", base, head]
    # head(1) ends early and git then by a signal, which is no failure.
    text = git.pipeline(listing, ["head", f"--bytes={PATHS_BYTES}"], check=False)
    paths = text.split("\0")[:-1]
    return paths[:PATH_LIMIT], len(paths) <= PATH_LIMIT and len(text.encode()) < PATHS_BYTES


def _config(git: ConfinedGit, commit: str) -> str | None:
    """Return the text of the commit's `.wqlab.yaml`; None without one. Raises UserError if it is not a small file."""
    entry = git.run("ls-tree", "-l", commit, "--", FILE).split()
    if not entry:
        return None
    mode, _, oid, size = entry[:4]
    if mode not in _REGULAR:
        raise UserError(f"{FILE} is not a regular file", advice="Commit the file itself, not a link or a folder.")
    if int(size) > SIZE_LIMIT:
        raise UserError(f"{FILE} has {size} bytes; at most {SIZE_LIMIT} are read")
    text = git.run("cat-file", "blob", oid)
    if "\0" in text:
        raise UserError(f"{FILE} contains a NUL byte; it must be YAML in UTF-8")
    return text


def _asks_what_it_touches(config: str | None) -> bool:
    """Return True if a `.wqlab.yaml` asks for what the commits touch. The server reports mistakes in the file."""
    try:
        return config is not None and read_tree_config(config).what_it_touches
    except ValueError:
        return False


def _touched(git: ConfinedGit, base: str, head: str, folder: Path, progress: Progress) -> list[TouchedFile]:
    """Return the files and functions that the commits change. Raises UserError if the commits are more or larger than a
    series may be."""
    try:
        check_count(git, base, head)
        check_size(git, base, head, lambda: progress("measuring the series", 0, 0))
        return touched_files(inspect_commits(git, base, head, folder, progress))[:PATH_LIMIT]
    except ConfinedGitError as error:
        raise UserError("git cannot process the commits", excerpt=str(error), advice=limits_text()) from error
