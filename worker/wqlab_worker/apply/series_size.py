"""Limit what a series adds to a tree, before anything writes it out.

Sizes come from object headers, which git compares with the content when it reads an object.
"""

from __future__ import annotations

from collections.abc import Callable

from ..failures import UserError
from ..sandbox import MIB
from .confined_git import ConfinedGit, size_text

FILE_BYTES = 64 * MIB
"""Largest new file."""
NEW_BYTES = 512 * MIB
"""Total size of the objects that a series adds to the repository."""
NEW_OBJECTS = 200_000
CHECKOUT_BYTES = 512 * MIB
"""Total size of the files in which the result differs from its base; copies count in full."""
TREE_FILES = 500_000
"""Files in the result; Linux has 90 000."""
TREE_BYTES = 4096 * MIB
"""Total size of the files of a whole tree of a user's repository; Linux has 1,500 MiB."""
CHANGED_FILES = 20_000
"""Files in which the result differs from its base."""
PATCH_BYTES = 64 * MIB
"""Total size of the patches, in which renamed and copied files are written in full."""
_LINE_BYTES = 64
"""Longest line of `git cat-file --batch-check` here."""


def check_changes(git: ConfinedGit, base: str, commit: str) -> str:
    """Return the id of the commit's files. Raises UserError if they are those of `base`."""
    tree_oid = git.tree(commit)
    if tree_oid == git.tree(base):
        raise UserError(
            f"the series changes nothing: its files are the same as those of {base[:12]}",
            advice="To compare settings only, submit without a series.",
        )
    return tree_oid


def check_size(git: ConfinedGit, base: str, commit: str, on_tick: Callable[[], None] = lambda: None) -> None:
    """Raise UserError, which names the limit, if the commits `base..commit` expand to more than a limit."""
    _check_objects(git, base, commit, on_tick)
    _check_tree(git, commit, on_tick)
    _check_files(git, base, commit, on_tick)


def _check_objects(git: ConfinedGit, base: str, commit: str, on_tick: Callable[[], None]) -> None:
    """Check the new objects. Each counts once, however many trees name it."""
    count = total = 0

    def add(line: str) -> None:
        nonlocal count, total
        size = _size(line)
        count, total = count + 1, total + size
        if size > FILE_BYTES:
            raise UserError(f"the series has a file of {size} bytes; at most {size_text(FILE_BYTES)} are allowed")
        if total > NEW_BYTES:
            raise UserError(f"the series adds more than {size_text(NEW_BYTES)} of files")
        if count > NEW_OBJECTS:
            raise UserError(f"the series adds more than {NEW_OBJECTS} objects to the repository")

    git.pipeline(
        ["git", "rev-list", "--objects", "--no-object-names", f"{base}..{commit}"],
        ["git", "cat-file", "--batch-check=%(objectsize)"],
        output_bytes=NEW_OBJECTS * _LINE_BYTES,
        on_tick=on_tick,
        on_line=add,
    )


def _check_tree(git: ConfinedGit, commit: str, on_tick: Callable[[], None]) -> None:
    """Check the number of files before `git diff-tree`, which keeps all differences in memory until it prints them."""
    count = 0

    def add(_: str) -> None:
        nonlocal count
        count += 1
        if count > TREE_FILES:
            raise UserError(f"with the series, the tree has more than {TREE_FILES} files")

    listing = ["git", "ls-tree", "-r", "--object-only", commit]
    git.pipeline(listing, output_bytes=2 * TREE_FILES * _LINE_BYTES, on_tick=on_tick, on_line=add)


def check_whole_tree(git: ConfinedGit, commit: str) -> None:
    """Raise UserError, which names the limit, if all files of a commit are more or larger than those of a kernel."""
    count = total = 0

    def add(line: str) -> None:
        nonlocal count, total
        size = _size(line.strip())
        count, total = count + 1, total + size
        if count > TREE_FILES:
            raise UserError(f"{commit[:12]} has more than {TREE_FILES} files")
        if size > FILE_BYTES:
            raise UserError(f"{commit[:12]} has a file of {size} bytes; at most {size_text(FILE_BYTES)} are allowed")
        if total > TREE_BYTES:
            raise UserError(f"the files of {commit[:12]} have more than {size_text(TREE_BYTES)}")

    listing = ["git", "ls-tree", "-r", "--format=%(objectsize)", commit]
    git.pipeline(listing, output_bytes=2 * TREE_FILES * _LINE_BYTES, on_line=add)


def _check_files(git: ConfinedGit, base: str, commit: str, on_tick: Callable[[], None]) -> None:
    """Check the files that differ between base and result. A blob counts for each path that has it."""
    count = total = 0

    def add(line: str) -> None:
        nonlocal count, total
        count, total = count + 1, total + _size(line)
        if count > CHANGED_FILES:
            raise UserError(f"the series changes more than {CHANGED_FILES} files")
        if total > CHECKOUT_BYTES:
            raise UserError(f"the files that the series changes have more than {size_text(CHECKOUT_BYTES)}")

    git.pipeline(
        ["git", "diff-tree", "-r", "--no-renames", base, commit],
        ["cut", "--delimiter= ", "--fields=4"],  # the new object
        ["git", "cat-file", "--batch-check=%(objectsize)", "--buffer"],
        output_bytes=2 * CHANGED_FILES * _LINE_BYTES,
        on_tick=on_tick,
        on_line=add,
    )


def _size(line: str) -> int:
    """Return the size in a line of --batch-check; 0 for the null object of a removed file and for a submodule."""
    return int(line) if line.isascii() and line.isdigit() and len(line) < 20 else 0
