"""Resolve a submission to a base commit and a candidate: fetch or apply the series, run checkpatch and bundle it.

Mail is split, applied and checked in the sandbox, in a temporary repository. Its result is one git bundle, which a
clean repository then reads while it checks every object, also in the sandbox (see `confined_git`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.mails import mbox
from wqlab_contracts.messages import (
    ApplyJob,
    ApplyResult,
    Artifact,
    Source,
    TakenThread,
    ThreadSeries,
    normalised_subject,
)
from wqlab_contracts.messages.apply import DIFF_LIMIT
from wqlab_contracts.messages.base import cut

from ..build.toolchain import toolchain_identity
from ..failures import JobError, UserError
from ..intake.archive import ArchiveClient
from ..intake.fetch_thread import fetch_thread
from ..workspace import Progress, Workspace, no_progress
from .branch import fetch_branch
from .changed_lines import changed_lines, touched_functions
from .checkout import base_files, make_bundle
from .checkpatch import checkpatch
from .commit_pair import resolve_pair
from .confined_git import ConfinedGit, ConfinedGitError, limits_text
from .debian import package_of
from .mailed_series import Candidate, Mails, apply_mails
from .mirror import Mirror, release_of, source_at, update_mirror
from .newer_trees import newer_trees
from .patch_sources import check_walkable, patch_sources
from .patch_summaries import patch_summaries
from .prior_art import prior_art
from .series_size import PATCH_BYTES, check_changes, check_size


def apply(job: ApplyJob, workspace: Workspace, progress: Progress = no_progress) -> ApplyResult:
    """Resolve the base commit and, if the job has a series, the candidate.

    `workspace.path_of` finds the bundle and the mbox of the series by their hash. A failure is returned in the result;
    only exceptions of `progress` are propagated.
    """
    taken = job.thread.taken if job.thread is not None else None
    try:
        toolchain = toolchain_identity(job.toolchain)
        if job.series is not None and job.series.thread is not None and taken is None:
            taken = _fetch(job.series.thread, job, workspace, progress)
        mirror = update_mirror(job.tree, workspace, progress)
        if job.series is None:
            return ApplyResult(
                outcome=Outcome.PASSED,
                baseline=source_at(job.tree, mirror.git, mirror.head),
                title=f"settings of {job.tree.name}",
                series_key=f"settings of {job.tree.name}",
                toolchain=toolchain,
            )
        if job.series.commits is not None:
            return resolve_pair(job.series.commits, job, mirror, toolchain, progress)
        with workspace.temporary("apply") as folder:
            if job.series.git is not None:
                candidate = Candidate(*fetch_branch(job.series.git, job.tree, mirror, folder, progress))
            elif job.series.mbox is not None:
                candidate = apply_mails(Mails(job.series.mbox.text), job, mirror, folder, progress)
            elif taken is not None:
                candidate = apply_mails(Mails.of_thread(taken, workspace), job, mirror, folder, progress)
            else:
                raise UserError("the series is neither a git branch, nor an mbox, nor a thread, nor a pair of commits")
            result = _result(candidate, job, mirror, folder, toolchain=toolchain, progress=progress)
            return result.model_copy(update={"thread": taken})
    except JobError as error:
        return ApplyResult(outcome=Outcome.FAILED, failure=error.failure, thread=taken)
    except ConfinedGitError as error:
        failure = UserError("git cannot process the series", excerpt=str(error), advice=limits_text()).failure
        return ApplyResult(outcome=Outcome.FAILED, failure=failure, thread=taken)


def _fetch(series: ThreadSeries, job: ApplyJob, workspace: Workspace, progress: Progress) -> TakenThread:
    """Take the mails of a series from the archives of the job."""
    archives = job.thread.archives if job.thread is not None else []
    client = ArchiveClient(workspace, on_tick=lambda: progress(f"looking for {series.message_id}", 0, 0))
    return fetch_thread(series, archives, workspace, client, progress).taken


# --- the result -------------------------------------------------------------------------------------------------


def _result(
    candidate: Candidate, job: ApplyJob, mirror: Mirror, folder: Path, *, toolchain: str, progress: Progress
) -> ApplyResult:
    git, base, workspace = candidate.git, candidate.base, mirror.git.workspace
    tree_oid = check_changes(git, base, candidate.commit)

    def tick() -> None:
        progress("measuring the series", 0, 0)

    check_size(git, base, candidate.commit, tick)
    commits = check_walkable(git, base, candidate.commit) if job.walk else []
    patches = patch_summaries(git, base, candidate.commit)
    if len(candidate.message_ids) == len(patches):
        pairs = zip(patches, candidate.message_ids, strict=True)
        patches = [patch.model_copy(update={"message_id": message_id}) for patch, message_id in pairs]
    progress("checking the patches", 0, len(patches))
    files = _patch_files(git, base, candidate.commit, folder)

    def search() -> None:
        progress("looking for the patches in the tree", 0, 0)

    search()
    touched = touched_functions(file.read_text(errors="replace") for file in files)
    diff = _difference(git, base, candidate.commit)
    newer = newer_trees(
        job.others, workspace, folder, mirror=mirror.git.directory, base=base, release=release_of(mirror.git, base),
        patches=files, changed=sorted({file for patch in patches for file in patch.files}), touched=touched,
    )  # fmt: skip
    earlier = prior_art(git, job.tree, patches, head=mirror.head, base=base, commit=candidate.commit, on_tick=search)
    checked = checkpatch(base_files(mirror.git, base, workspace, progress), files)
    source = Source(
        tree=job.tree,
        base_commit=base,
        tree_oid=tree_oid,
        commit=candidate.commit,
        bundle=make_bundle(git, base, candidate.commit, folder, mirror.git.directory),
        release=release_of(git, candidate.commit),
    )
    return ApplyResult(
        outcome=Outcome.PASSED,
        baseline=source_at(job.tree, mirror.git, base),
        candidate=source,
        title=candidate.title,
        series_key=mbox.change_id(candidate.texts) or normalised_subject(candidate.title),
        patches=patches,
        patch_sources=patch_sources(git, base, commits, source, tick) if commits else [],
        checkpatch=checked.findings,
        checkpatch_skipped=checked.skipped,
        prior_art=earlier.model_copy(update={"newer": newer}),
        base_package=package_of(mirror.git, job.tree, base),
        series_mbox=_series_mbox(files, folder, workspace),
        touched=touched,
        changed=changed_lines(diff),
        diff=cut(diff, DIFF_LIMIT),
        toolchain=toolchain,
    )


def _difference(git: ConfinedGit, base: str, commit: str) -> str:
    """Return the diff of the whole series. It is not longer than the patches, whose size is limited."""
    command = ["git", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", base, commit]
    return git.pipeline(command, output_bytes=PATCH_BYTES)


def _patch_files(git: ConfinedGit, base: str, commit: str, folder: Path) -> list[Path]:
    """Write each patch to a file, once it is known that they are no larger than PATCH_BYTES together."""
    command = ["git", "format-patch", "--quiet", "--no-signature"]
    git.pipeline([*command, "--stdout", f"{base}..{commit}"], output_bytes=PATCH_BYTES)
    patches = folder / "patches"
    git.pipeline([*command, "-o", str(patches), f"{base}..{commit}"])
    return sorted(patches.iterdir()) if patches.is_dir() else []


def _series_mbox(files: Sequence[Path], folder: Path, workspace: Workspace) -> Artifact:
    path = folder / "series.mbox"
    path.write_bytes(b"\n".join(file.read_bytes() for file in files))
    return workspace.keep(path, ArtifactKind.SERIES, "series.mbox")
