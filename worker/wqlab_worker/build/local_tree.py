"""Read commits of a repository on this machine, such as the one that a developer works in, without copying objects."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wqlab_contracts.messages import Source
from wqlab_contracts.specs import Tree

from ..apply.git import create_bare
from ..apply.mirror import URL_FILE, mirror_folder, open_mirror, source_at
from ..failures import UserError
from ..workspace import Workspace

NAME = "here"
"""Name of the tree of a repository on this machine."""


def local_source(folder: Path, revision: str, workspace: Workspace) -> Source:
    """Return the Source of a commit of the repository that `folder` is in.

    The mirror of the tree borrows the repository's objects, so they must stay while the kernel is built. Raises
    UserError if there is no repository or no such commit.
    """
    common = Path(_git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    commit = _git(folder, "rev-parse", "--verify", f"{revision}^{{commit}}")
    tree = Tree(name=NAME, summary=f"the repository {common}", url=str(common))
    mirror = mirror_folder(tree, workspace)
    workspace.use(mirror)
    with workspace.lock(f"mirror-{mirror.stem}", lambda: None):
        create_bare(workspace, mirror, [common])
        (mirror / URL_FILE).write_text(str(common))
    return source_at(tree, open_mirror(tree, workspace), commit)


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"git does not run: {error}", advice="Install git.") from error
    if done.returncode:
        said = done.stderr.strip().rpartition("\n")[2].removeprefix("fatal: ")
        raise UserError(
            f"{arguments[-1].removesuffix('^{commit}')} in {folder}: {said}",
            advice="Go to a clone of the kernel, and name commits that `git log` shows.",
        )
    return done.stdout.strip()
