"""Resolve a submission to a base commit and a candidate: fetch or apply the series, run checkpatch and bundle it.

Mail is split, applied and checked in the sandbox, in a temporary repository. Its result is one git bundle, which a
clean repository then reads while it checks every object, also in the sandbox (see `confined_git`).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts import mbox
from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.messages import (
    ApplyJob,
    ApplyResult,
    Artifact,
    MboxSeries,
    Source,
    normalised_subject,
)

from ..build.toolchain import toolchain_identity
from ..failures import InfrastructureError, JobError, UserError
from ..linear_patterns import LinearPattern
from ..sandbox import GIB, MIB, TOOLS, Finished, Limits, Sandbox, interpreter, limit_error
from ..workspace import Progress, Workspace, collect, no_progress
from .branch import fetch_branch
from .checkout import BUNDLE_REFERENCE, base_files, unbundle
from .checkpatch import checkpatch
from .confined_git import ConfinedGit, ConfinedGitError, create_confined, exceeded_limit, limits_text
from .mirror import Mirror, release_of, source_at, update_mirror
from .patch_summaries import patch_summaries
from .series_size import NEW_BYTES, PATCH_BYTES, check_size
from .touched_functions import touched_functions

_LIMITS = Limits(
    wall_s=600.0,
    disk_bytes=2 * GIB,
    file_bytes=NEW_BYTES,
    memory_bytes=4 * GIB,
    log_bytes=4 * MIB,
    processes=128,
)
_BUNDLE_LIMIT = 1 * GIB
_MBOX_LIMIT = 64 * MIB
_B4 = "from b4.command import cmd; cmd()"


@dataclass(frozen=True)
class _Candidate:
    """A series as commits `base..commit` in `git`, a clean repository that borrows the mirror's objects."""

    git: ConfinedGit
    base: str
    commit: str
    title: str
    texts: list[str]
    """Mails or commit messages, in which a change-id may be written."""
    message_ids: tuple[str | None, ...] = ()
    """Message-id of each patch, in order, if the series came by mail."""


def apply(job: ApplyJob, workspace: Workspace, progress: Progress = no_progress) -> ApplyResult:
    """Resolve the base commit and, if the job has a series, the candidate.

    `workspace.path_of` finds the bundle and the mbox of the series by their hash. A failure is returned in the result;
    only exceptions of `progress` are propagated.
    """
    try:
        toolchain = toolchain_identity(job.toolchain)
        mirror = update_mirror(job.tree, workspace, progress)
        if job.series is None:
            return ApplyResult(
                outcome=Outcome.PASSED,
                baseline=source_at(job.tree, mirror.git, mirror.head),
                title=f"settings of {job.tree.name}",
                series_key=f"settings of {job.tree.name}",
                toolchain=toolchain,
            )
        with workspace.temporary("apply") as folder:
            if job.series.git is not None:
                candidate = _Candidate(*fetch_branch(job.series.git, job, mirror, folder, progress))
            elif job.series.mbox is not None:
                candidate = _from_mbox(job.series.mbox, job, mirror, folder, progress)
            else:
                raise UserError("the series is neither a git branch nor an mbox")
            return _result(candidate, job, mirror, folder, toolchain=toolchain, progress=progress)
    except JobError as error:
        return ApplyResult(outcome=Outcome.FAILED, failure=error.failure)
    except ConfinedGitError as error:
        failure = UserError("git cannot process the series", excerpt=str(error), advice=limits_text()).failure
        return ApplyResult(outcome=Outcome.FAILED, failure=failure)


# --- an mbox ----------------------------------------------------------------------------------------------------


def read_mbox(text: str) -> list[mbox.Mail]:
    """Return the messages of an mbox or of a single raw message. Raises UserError if there is no patch in it."""
    if (problem := mbox.header_problem(text)) is not None:
        raise UserError(f"the mbox cannot be applied: {problem}")
    mails = mbox.parse_mails(text)
    if not any(mail.has_patch for mail in mails):
        raise UserError(
            "the mbox holds no patch",
            excerpt=text[:500],
            advice="Send what `git format-patch --stdout --base=auto` prints, or a thread saved by `b4 mbox`.",
        )
    return mails


def check_complete(mails: list[mbox.Mail]) -> None:
    """Raise UserError, naming the missing patches, unless [PATCH 1/N] to [PATCH N/N] are all there."""
    missing = mbox.missing(mails)
    if missing:
        raise UserError(f"the series is incomplete: patch {', '.join(missing[:10])} is missing")


def _from_mbox(series: MboxSeries, job: ApplyJob, mirror: Mirror, folder: Path, progress: Progress) -> _Candidate:
    received = read_mbox(series.text)
    progress("applying the series", 0, 0)
    for name in ("in", "out", "work"):
        (folder / name).mkdir()
    (folder / "in" / "received.mbox").write_text(mbox.add_message_ids(received), errors="surrogateescape")
    ordered = _ordered_patches(folder)
    (folder / "in" / "series.mbox").write_text(ordered, errors="surrogateescape")
    patches = read_mbox(ordered)
    check_complete(patches)
    if len(patches) > mbox.PATCH_LIMIT:
        raise UserError(f"the series has {len(patches)} patches; at most {mbox.PATCH_LIMIT} are allowed")
    version = mbox.select_version(received, patches)
    base, advice = _choose_base(version, job, mirror)
    _git_am(mirror, base, folder, patches, advice)
    git = create_confined(mirror.git.workspace, folder, "git", [], mirror.git.directory)
    try:
        collect(folder / "out", "series.bundle", folder / "series.bundle", _BUNDLE_LIMIT)
    except OSError as error:
        raise UserError("applying the series left no usable result", excerpt=str(error)) from error
    unbundle(git, folder / "series.bundle", BUNDLE_REFERENCE)
    commit = git.commit(BUNDLE_REFERENCE)
    if commit is None:
        raise InfrastructureError("the applied series has no commit")
    cover = mbox.cover_letter(version)
    title = (cover or patches[0]).title
    sent = {mail.message_id for mail in received}
    ids = tuple(mail.message_id if mail.message_id in sent else None for mail in patches)
    return _Candidate(git, base, commit, title, [mail.body for mail in version], ids)


def _choose_base(version: Sequence[mbox.Mail], job: ApplyJob, mirror: Mirror) -> tuple[str, str]:
    """Return the base-commit named by the series if the tree has it, else the tree's head.

    The second item is the advice to show if the series does not apply there.
    """
    named = mbox.base_commit([mail.body for mail in version])
    if named is None:
        return mirror.head, (
            f"The series names no base-commit, so it was applied to {job.tree.name} at {mirror.head[:12]}."
            " Rebase it on that commit, or name its base: git format-patch --base=COMMIT."
        )
    if mirror.git.commit(named) is not None:
        return named, f"The series was applied to its base-commit, {named[:12]}. Rebase it on that commit."
    return mirror.head, (
        f"Tree {job.tree.name} does not have the base-commit of the series, {named[:12]}, so the series was applied to"
        f" {mirror.head[:12]}. Rebase it on that commit, or submit it as a branch."
    )


def _ordered_patches(folder: Path) -> str:
    """Return b4's mbox of the series: the patches of the latest version in order, with trailers from replies."""
    command = [f"{TOOLS}/bin/python", "-c", _B4, "am", "-m", "/in/received.mbox", "-o", "/out", "-n", "series"]
    finished, output = _run_sandboxed(
        command, {"/in": folder / "in", **interpreter()}, {"/out": folder / "out"}, {"PYTHONDONTWRITEBYTECODE": "1"}
    )
    ordered = folder / "ordered.mbox"
    try:
        if finished.exit_code == 0:
            collect(folder / "out", "series.mbx", ordered, _MBOX_LIMIT)
    except OSError as error:
        raise UserError("b4 finds no series in the mbox", excerpt=f"{output}\n{error}") from error
    if not ordered.exists():
        raise UserError("b4 finds no series in the mbox", excerpt=output)
    return ordered.read_text(errors="surrogateescape")


# Borrows the mirror's objects and checks out only files that the patches change.
_AM = """\
set -e
git init -q --template= --initial-branch=series work && cd work
echo /mirror/objects > .git/objects/info/alternates
git config core.sparseCheckout true && git config core.sparseCheckoutCone false
mkdir -p .git/info && echo /.nothing > .git/info/sparse-checkout
git update-ref refs/heads/series "$BASE"
git read-tree -m -u HEAD
git am --keep-non-patch --whitespace=nowarn /in/series.mbox || {
    status=$?
    [ $status -le 128 ] || exit $status # killed
    git am --show-current-patch=diff > /out/failed.diff
    exit 9
}
git bundle create -q /out/series.bundle refs/heads/series "^$BASE"
"""


def _git_am(mirror: Mirror, base: str, folder: Path, patches: Sequence[mbox.Mail], advice: str) -> None:
    environment = {
        "BASE": base,
        "GIT_COMMITTER_NAME": "wqlab",
        "GIT_COMMITTER_EMAIL": "wqlab@localhost",
        "GIT_COMMITTER_DATE": "@1767225600 +0000",  # fixed, so that the same series gives the same commit
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_CONFIG_KEY_1": "gc.auto",
        "GIT_CONFIG_VALUE_1": "0",
    }
    finished, output = _run_sandboxed(
        ["sh", "-c", _AM],
        {"/in": folder / "in", "/mirror": mirror.git.directory},
        {"/out": folder / "out", "/work": folder / "work"},
        environment,
        "/work",
    )
    if finished.exit_code == 0:
        return
    reason = exceeded_limit(finished, _LIMITS)
    output = "\n".join(line for line in output.splitlines() if not line.startswith("hint: "))
    if reason:
        raise UserError(f"applying the series exceeded the limit of {reason}", excerpt=output)
    raise _conflict_error(output, folder, patches, advice)


_FAILED_AT = LinearPattern(r"(?m)^Patch failed at (\d{1,9}) (.*)$")
_REJECTED = LinearPattern(r"(?m)^error: (?:patch failed: (?P<file>.+):(?P<line>\d{1,9})|(?P<missing>.+): (?P<why>.+))$")


def _conflict_error(output: str, folder: Path, patches: Sequence[mbox.Mail], advice: str) -> UserError:
    """Describe why `git am` failed, with the patch, the file and the hunk."""
    failed = folder / "failed.diff"
    try:
        collect(folder / "out", "failed.diff", failed, _MBOX_LIMIT)
        diff = failed.read_text(errors="replace")
    except OSError:
        diff = ""
    at = _FAILED_AT.search(output)
    number = int(at[1]) if at else 1
    name = f"patch {number}/{len(patches)} ({at[2]})" if at else "the series"
    if at:
        output = output[: at.end()]  # git's instructions about its own work folder follow
    rejected = _REJECTED.search(output)
    if rejected is None:
        return UserError(f"{name} does not apply", excerpt=output, advice=advice)
    if rejected["file"] is None:
        return UserError(
            f"{name} does not apply: {rejected['missing']}: {rejected['why']}", excerpt=output, advice=advice
        )
    hunk = find_hunk(diff, rejected["file"], int(rejected["line"]))
    where = f"{rejected['file']}, the hunk at line {rejected['line']}"
    return UserError(f"{name} does not apply: {where}", excerpt=f"{hunk}\n\n{output}".strip(), advice=advice)


def find_hunk(diff: str, file: str, line: int) -> str:
    """Return the text of the hunk of `file` whose old side starts at `line`; empty if there is none."""
    current = ""
    hunk: list[str] = []
    for text in diff.splitlines():
        if text.startswith("--- "):
            if hunk:
                break
            current = text[4:].split("\t")[0].removeprefix("a/")
        elif text.startswith("@@ "):
            if hunk:
                break
            if current == file and text.startswith((f"@@ -{line},", f"@@ -{line} ")):
                hunk.append(text)
        elif text.startswith("diff --git ") and hunk:
            break
        elif hunk and text[:1] in (" ", "+", "-", "\\", ""):
            hunk.append(text)
    return "\n".join(hunk)


def _run_sandboxed(
    command: Sequence[str],
    read_only: dict[str, Path],
    writable: dict[str, Path],
    environment: dict[str, str],
    working_directory: str = "/out",
) -> tuple[Finished, str]:
    """Run `command` in a sandbox and return how it ended and what it printed.

    Raises UserError if it exceeds a limit.
    """
    log = io.BytesIO()
    sandbox = Sandbox(read_only=read_only, writable=writable, environment=environment, limits=_LIMITS)
    finished = sandbox.run(command, log=log, working_directory=working_directory)
    output = log.getvalue().decode(errors="replace")
    if finished.stopped is not None:
        raise limit_error(finished.stopped, "applying the series", output)
    return finished, output


# --- the result -------------------------------------------------------------------------------------------------


def _result(
    candidate: _Candidate, job: ApplyJob, mirror: Mirror, folder: Path, *, toolchain: str, progress: Progress
) -> ApplyResult:
    git, base, workspace = candidate.git, candidate.base, mirror.git.workspace
    tree_oid = git.tree(candidate.commit)
    if tree_oid == git.tree(base):
        raise UserError(
            f"the series changes nothing: its files are the same as those of {base[:12]}",
            advice="To compare settings only, submit without a series.",
        )
    check_size(git, base, candidate.commit, lambda: progress("measuring the series", 0, 0))
    patches = patch_summaries(git, base, candidate.commit)
    if len(candidate.message_ids) == len(patches):
        pairs = zip(patches, candidate.message_ids, strict=True)
        patches = [patch.model_copy(update={"message_id": message_id}) for patch, message_id in pairs]
    progress("checking the patches", 0, len(patches))
    files = _patch_files(git, base, candidate.commit, folder)
    checked = checkpatch(base_files(mirror.git, base, workspace, progress), files)
    source = Source(
        tree=job.tree,
        base_commit=base,
        tree_oid=tree_oid,
        commit=candidate.commit,
        bundle=_bundle(git, base, candidate.commit, folder, mirror.git.directory),
        release=release_of(git, candidate.commit),
    )
    return ApplyResult(
        outcome=Outcome.PASSED,
        baseline=source_at(job.tree, mirror.git, base),
        candidate=source,
        title=candidate.title,
        series_key=mbox.change_id(candidate.texts) or normalised_subject(candidate.title),
        patches=patches,
        checkpatch=checked.findings,
        checkpatch_skipped=checked.skipped,
        series_mbox=_series_mbox(files, folder, workspace),
        touched=touched_functions(file.read_text(errors="replace") for file in files),
        toolchain=toolchain,
    )


def _bundle(git: ConfinedGit, base: str, commit: str, folder: Path, mirror: Path) -> Artifact:
    workspace = git.workspace
    git.run("update-ref", BUNDLE_REFERENCE, commit)
    path = folder / "clean.bundle"
    git.run("bundle", "create", "--quiet", str(path), BUNDLE_REFERENCE, f"^{base}", timeout_s=600.0)
    # Every machine that fetches the bundle checks its objects, and would refuse it later.
    unbundle(create_confined(workspace, folder, "checked", [], mirror), path, BUNDLE_REFERENCE)
    return workspace.keep(path, ArtifactKind.BUNDLE, "series.bundle")


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
