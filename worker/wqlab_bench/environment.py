"""What commands of the bench are given: folders and the lab in the environment, golden systems and a key in files."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from wqlab_contracts.specs import CpuArch

from .qemu import Golden


class GoldenFiles(BaseModel):
    """An entry of the file given with `serve --golden`. Paths are absolute."""

    kernel: Path
    rootfs: Path


class UsageError(Exception):
    """The caller must set or create something, which the message names."""


def folder(variable: str) -> Path:
    """Return the folder that a variable names. Raises UsageError if it is not set."""
    value = os.environ.get(variable)
    if not value:
        raise UsageError(f"{variable} is not set")
    return Path(value).absolute()


def lab() -> str:
    """Return the name of the lab."""
    return os.environ.get("WQLAB_LAB", "local")


def golden_systems(file: Path, ssh_key: Path) -> dict[CpuArch, Golden]:
    """Return the golden system of each architecture, which accepts this public key.

    Raises UsageError if the key or the file is invalid, if x86_64 is missing, or a kernel or root filesystem.
    """
    key = _key_blob(ssh_key)
    try:
        systems = TypeAdapter(dict[CpuArch, GoldenFiles]).validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"{file} has no valid list of golden systems: {error}") from error
    if "x86_64" not in systems:
        raise UsageError(f"{file} has no golden system for x86_64")
    for files in systems.values():
        for path in (files.kernel, files.rootfs):
            if not path.is_file():
                raise UsageError(f"file {path} does not exist")
    return {arch: Golden(files.kernel, files.rootfs, key) for arch, files in systems.items()}


def _key_blob(path: Path) -> str:
    try:
        kind, blob = path.read_text().split()[:2]
    except (OSError, ValueError) as error:
        raise UsageError(f"no SSH public key in {path}: {error}") from error
    if kind != "ssh-ed25519":
        raise UsageError(f"{path} is a {kind} key; devices need an ed25519 key")
    return blob
