"""The object files of a base's build, kept, so that a series which edits some C files compiles those and what includes
them, and nothing else.

make tells what is out of date by time: a candidate's unchanged files are its base's own (see `checkout`), older than
their objects; what git wrote anew is younger. That is trusted only with edits of C and assembler files, whose headers
kbuild lists for each object. Whatever else a series does, its kernel is built from nothing.
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
from ..sandbox import GIB, disk_usage
from ..workspace import Workspace, remove_tree

log = structlog.get_logger()

KEPT_BYTES = 8 * GIB
_TRACKED = {".c", ".h", ".S"}
_OTHERS_TOOLS = ("scripts/", "tools/")
"""What is built there decides how everything else is built."""


def keep(workspace: Workspace, key: str, build: Path) -> None:
    """Takes the folder of a trusted build that has passed; the trees used least recently make room for it."""
    size = disk_usage(build)
    if size > KEPT_BYTES:
        log.warning("objects not kept: too large", build=key, bytes=size)
        return
    target = workspace.objects / key
    with workspace.lock("objects"), workspace.temporary("objects") as old:
        with suppress(FileNotFoundError):
            target.rename(old / key)
        build.rename(target)
        os.utime(target)
        kept = sorted(workspace.objects.iterdir(), key=lambda tree: tree.stat().st_mtime, reverse=True)
        total = 0
        for tree in kept:
            total += disk_usage(tree)
            if total > KEPT_BYTES:
                tree.rename(old / tree.name)


def begin_with(workspace: Workspace, job: BuildJob, source: CheckedOut, build: Path) -> str:
    """Fills the empty folder `build` with the objects of the base, configured as it was (tuxmake keeps what it finds);
    the key of that build, or "" when there is none to begin with and `build` is still empty."""
    if not source.base_tree_oid or not all(_is_edit(change, source.files) for change in source.changes):
        return ""
    key = build_key(source.base_tree_oid, job.recipe, job.arch, job.fragments, job.toolchain, job.modules)
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
        log.warning("objects not copied; building from nothing", build=key, error=copied.stderr[-500:])
        remove_tree(build)
        build.mkdir()
        return ""
    # The base may have been built since git wrote these.
    for change in source.changes:
        os.utime(source.files / change.path, follow_symlinks=False)
    return key


def _is_edit(change: Change, files: Path) -> bool:
    """A link counts by the file that it names, which may be anywhere: no edit."""
    tracked = Path(change.path).suffix in _TRACKED and not change.path.startswith(_OTHERS_TOOLS)
    return change.status == "M" and tracked and not (files / change.path).is_symlink()
