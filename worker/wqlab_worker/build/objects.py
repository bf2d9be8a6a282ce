"""Keep the object files of base builds, so that a candidate compiles only what its series changes.

make compares modification times. Unchanged files of a candidate are those of its base (see `checkout`) and older than
their objects; files that git wrote for the series are newer. This is relied on only for changes of C and assembler
files, whose headers kbuild lists for each object. A series with any other change is built from scratch.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import structlog

from wqlab_contracts.keys import build_key
from wqlab_contracts.messages import BuildJob

from ..apply.checkout import Change, CheckedOut
from ..limits import GIB
from ..watch import disk_usage
from ..workspace import Workspace, remove_tree

log = structlog.get_logger()

KEPT_BYTES = 8 * GIB
_TRACKED = {".c", ".h", ".S"}
_BUILD_TOOLS = ("scripts/", "tools/")
"""Folders of programs that take part in the build of everything else."""


def keep(workspace: Workspace, key: str, build: Path) -> None:
    """Copy the folder of a trusted, passed build into the cache, and remove the least recently used folders.

    The modification times are copied too, which make compares.
    """
    size = disk_usage(build)
    if size > KEPT_BYTES:
        log.warning("object files are too large to be kept", build=key, bytes=size)
        return
    target = workspace.objects / key
    with workspace.temporary("objects") as old:
        command = ["cp", "-a", "--reflink=auto", "--", str(build), str(old / "new")]
        copied = subprocess.run(command, capture_output=True, text=True, check=False)
        if copied.returncode != 0:
            log.warning("object files cannot be kept", build=key, error=copied.stderr[-500:])
            return
        with workspace.lock("objects"):
            with suppress(FileNotFoundError):
                target.rename(old / key)
            (old / "new").rename(target)
            os.utime(target)
            kept = sorted(workspace.objects.iterdir(), key=lambda tree: tree.stat().st_mtime, reverse=True)
            total = 0
            for tree in kept:
                total += disk_usage(tree)
                if total > KEPT_BYTES:
                    tree.rename(old / tree.name)


def restore_base(workspace: Workspace, job: BuildJob, source: CheckedOut, build: Path) -> str:
    """Copy the object files of the candidate's base into the empty folder `build`.

    Returns the key of the base's build, or "" if no build can be used; `build` is then still empty. The configuration
    is copied too, and tuxmake keeps it.
    """
    # Another layout of the same tree has the same objects.
    tree = source.base_tree_oid or (job.source.tree_oid if job.layouts > 1 else "")
    if not tree or not all(_is_tracked(change, source.files) for change in source.changes):
        return ""
    key = build_key(tree, job.recipe, job.arch, job.fragments, job.toolchain, job.modules)
    kept = workspace.objects / key
    with workspace.lock("objects"):
        try:
            os.utime(kept)
        except FileNotFoundError:
            return ""
        copied = subprocess.run(
            ["cp", "-a", "--reflink=auto", "--", f"{kept}/.", build], capture_output=True, text=True, check=False
        )
    if copied.returncode != 0:
        log.warning("object files cannot be copied; building from scratch", build=key, error=copied.stderr[-500:])
        remove_tree(build)
        build.mkdir()
        return ""
    # The base may have been built after git wrote these files.
    for change in source.changes:
        os.utime(source.files / change.path, follow_symlinks=False)
    return key


def _is_tracked(change: Change, files: Path) -> bool:
    """Return True if the change is one whose effects kbuild tracks.

    A symbolic link is not: its target may be anywhere.
    """
    in_source = Path(change.path).suffix in _TRACKED and not change.path.startswith(_BUILD_TOOLS)
    return change.status == "M" and in_source and not (files / change.path).is_symlink()
