"""Apply a mailed series: b4 and `git am` in the sandbox, in a temporary repository. Conflicts name file and hunk."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.mails import mbox
from wqlab_contracts.mails.canonical_mails import ChosenMails, canonical_mbox
from wqlab_contracts.mails.inspection import choose_patches, texts_of
from wqlab_contracts.messages import ApplyJob, TakenThread
from wqlab_contracts.text import valid_text

from ..failures import InfrastructureError, UserError
from ..sandbox import GIB, MIB, TOOLS, Finished, Limits, Sandbox, interpreter, limit_error
from ..workspace import Progress, Workspace, collect
from .checkout import BUNDLE_REFERENCE, unbundle
from .confined_git import ConfinedGit, create_confined, exceeded_limit
from .git import borrowed_by
from .mirror import Mirror
from .prerequisites import commit_with_prerequisites
from .series_size import NEW_BYTES

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
class Candidate:
    """A series as commits `base..commit` in `git`, a clean repository that borrows the mirror's objects."""

    git: ConfinedGit
    base: str
    commit: str
    title: str
    texts: list[str]
    """Mails or commit messages, in which a change-id may be written."""
    message_ids: tuple[str | None, ...] = ()
    """Message-id of each patch, in order, if the series came by mail."""


@dataclass(frozen=True)
class Mails:
    """The mails of a series."""

    text: str
    """An mbox; bytes that are no UTF-8 are kept by `surrogateescape`."""
    escaped: bool = False
    """True if lines that begin with `From ` are escaped (mboxrd)."""
    revision: int | None = None
    """Revision to apply; None: the latest."""
    base: str | None = None
    """Commit to apply the series to; None: the commit that the mails name, else the head of the tree."""

    @classmethod
    def of_thread(cls, taken: TakenThread, workspace: Workspace) -> Mails:
        text = workspace.path_of(taken.mbox).read_bytes().decode("utf-8", errors="surrogateescape")
        return cls(text, escaped=True, revision=taken.revision)


def read_mbox(text: str, *, escaped: bool = False) -> list[mbox.Mail]:
    """Return the messages of an mbox or of a single raw message. Raises UserError if there is no patch in it."""
    if (problem := mbox.header_problem(text)) is not None:
        raise UserError(f"the mbox cannot be applied: {problem}")
    mails = mbox.parse_mails(text, escaped=escaped)
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


def choose_mails(text: str, *, escaped: bool = False, revision: int | None = None) -> ChosenMails:
    """Return the mails that an inspection chooses. Raises UserError for what it refuses, with its reasons."""
    read_mbox(text, escaped=escaped)
    found = choose_patches(text, escaped=escaped, version=revision)
    errors = [problem.detail for problem in found.inspection.problems if problem.severity == "error"]
    if errors or found.chosen is None:
        raise UserError(f"the series cannot be applied: {errors[0]}", excerpt="\n".join(errors))
    if revision is not None and found.chosen.version != revision:
        raise UserError(f"the mbox has no version {revision}; it has version {found.chosen.version}")
    return found.chosen


def apply_mails(series: Mails, job: ApplyJob, mirror: Mirror, folder: Path, progress: Progress) -> Candidate:
    chosen = choose_mails(series.text, escaped=series.escaped, revision=series.revision)
    progress("applying the series", 0, 0)
    for name in ("in", "out", "work"):
        (folder / name).mkdir()
    ordered = order_patches(chosen, folder)
    (folder / "in" / "series.mbox").write_text(ordered, errors="surrogateescape")
    patches = read_mbox(ordered)
    check_complete(patches)
    git = create_confined(mirror.git.workspace, folder, "git", [], mirror.git.directory)
    if series.base is not None:
        base, advice = series.base, f"It was applied to {series.base[:12]}, the requested base. Name the right commit."
    else:
        base, advice = _choose_base(texts_of(chosen), job, mirror, git, progress)
    _git_am(mirror, base, folder, patches, advice)
    try:
        collect(folder / "out", "series.bundle", folder / "series.bundle", _BUNDLE_LIMIT)
    except OSError as error:
        raise UserError("applying the series left no usable result", excerpt=str(error)) from error
    unbundle(git, folder / "series.bundle", BUNDLE_REFERENCE)
    commit = git.commit(BUNDLE_REFERENCE)
    if commit is None:
        raise InfrastructureError("the applied series has no commit")
    title = valid_text((chosen.cover or chosen.patches[0]).title)
    ids = tuple(mail.message_id for mail in chosen.patches)
    return Candidate(git, base, commit, title, [valid_text(text) for text in texts_of(chosen)], ids)


def _choose_base(
    texts: Sequence[str], job: ApplyJob, mirror: Mirror, git: ConfinedGit, progress: Progress
) -> tuple[str, str]:
    """Return the base-commit named by the series if the tree has it, else the tree's head.

    If the series has prerequisite patches, return the first commit that has them. The second item is the advice to show
    if the series does not apply there. Raises UserError if the tree lacks a prerequisite.
    """
    named = mbox.base_commit(list(texts))
    if needed := mbox.prerequisites(list(texts)):
        known = named if named is not None and mirror.git.commit(named) is not None else None
        base = commit_with_prerequisites(
            git, needed, tree=job.tree.name, named=known, head=mirror.head, progress=progress
        )
        return base, (
            f"The series was applied to {base[:12]}, the first commit of {job.tree.name} that has its prerequisite"
            " patches. Rebase it on that commit."
        )
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


def ordered_patches(folder: Path, revision: int | None) -> str:
    """Return the patches of a version of /in/received.mbox, as `order_patches`. None is the newest version."""
    text = (folder / "in" / "received.mbox").read_text(errors="surrogateescape")
    return order_patches(choose_mails(text, escaped=True, revision=revision), folder)


def order_patches(chosen: ChosenMails, folder: Path) -> str:
    """Return b4's mbox of the chosen patches in order, with trailers from replies.

    b4 reads them in canonical form. Raises UserError if it takes other patches than those that were chosen.
    """
    (folder / "in" / "chosen.mbox").write_text(canonical_mbox(chosen), errors="replace")
    ordered = _run_b4(folder, chosen.version)
    wanted = [mail.effective_message_id for mail in chosen.patches]
    taken = [mail.message_id for mail in mbox.parse_mails(ordered, escaped=True)]
    if taken != wanted:
        raise UserError(
            "b4 takes other patches than those that were chosen",
            excerpt=f"chosen: {', '.join(wanted)}\ntaken: {', '.join(str(each) for each in taken)}",
            advice="Submit the series as a branch, or as `git format-patch --stdout --base=auto` prints it.",
        )
    return ordered


def _run_b4(folder: Path, version: int) -> str:
    program = [f"{TOOLS}/bin/python", "-c", _B4, "--offline-mode"]
    command = [*program, "am", "-C", "-m", "/in/chosen.mbox", "-o", "/out", "-n", "series", "-v", f"{version}"]
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
        {
            "/in": folder / "in",
            "/mirror": mirror.git.directory,
            **{str(path): path for path in borrowed_by(mirror.git.directory)},
        },
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
    """Return the hunk of `file` that starts at line `line` of the original file; empty if there is none.

    `git apply` strips the first folder of a diff's paths, whatever its name.
    """
    names: tuple[str, ...] = ()
    hunk: list[str] = []
    for text in diff.splitlines():
        if text.startswith("--- "):
            if hunk:
                break
            path = text[4:].split("\t")[0]
            names = (path, path.partition("/")[2])
        elif text.startswith("@@ "):
            if hunk:
                break
            if file in names and text.startswith((f"@@ -{line},", f"@@ -{line} ")):
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
