"""Write files into an ext4 file system without mounting it, with debugfs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


class Ext4Error(Exception):
    """A file cannot be written; the message has debugfs's output."""


def write(image: Path, files: Mapping[str, Path], folder: Path) -> None:
    """Write `files` (absolute path in the file system -> source) into the file system `image`, readable by root only.

    The target folders must exist, and the target files must not. debugfs reads its commands from a file in `folder`.
    Raises Ext4Error.
    """
    lines = []
    for target, source in files.items():
        parent, _, name = target.rpartition("/")
        lines += [f'cd "{parent}"', f'write "{source}" "{name}"']
        lines += [f'set_inode_field "{target}" {field}' for field in ("mode 0100600", "uid 0", "gid 0")]
    commands = folder / "debugfs"
    commands.write_text("".join(f"{line}\n" for line in lines))
    done = subprocess.run(
        ["debugfs", "-w", "-f", str(commands), str(image)], capture_output=True, text=True, check=False
    )
    # debugfs goes on after an error and ends with success. Its first line is its version.
    errors = done.stderr.splitlines()[1:]
    if done.returncode or errors:
        raise Ext4Error(f"debugfs cannot write to {image}: {'; '.join(errors) or done.stderr.strip()}")
