"""Find the finished builds that this machine keeps, and describe the files of a build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import structlog

from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.messages import BuildResult
from wqlab_contracts.specs import CpuArch

from ..sandbox import GIB
from ..workspace import Workspace, has_hash
from . import source_archive
from .reproduce import BUILD, OUT

log = structlog.get_logger()

IMAGE: dict[CpuArch, str] = {"x86_64": "arch/x86/boot/bzImage", "arm64": "arch/arm64/boot/Image.gz"}


@dataclass(frozen=True)
class Product:
    """A file of a finished build."""

    folder: str
    """Folder in the sandbox."""
    path: str
    """Path below that folder."""
    kind: ArtifactKind
    name: str
    """Name in the folder of the build."""
    limit: int
    """Largest size in bytes."""
    required: bool = True


def products(arch: CpuArch) -> list[Product]:
    """Return the files of a build for `arch`."""
    return [
        Product(BUILD, IMAGE[arch], ArtifactKind.KERNEL, "kernel", GIB),
        Product(BUILD, "vmlinux", ArtifactKind.VMLINUX, "vmlinux", 4 * GIB),
        Product(BUILD, "System.map", ArtifactKind.SYSTEM_MAP, "System.map", GIB),
        Product(BUILD, ".config", ArtifactKind.CONFIG, "config", 4 << 20),
        Product(OUT, "metadata.json", ArtifactKind.METADATA, "metadata.json", 4 << 20),
        Product(OUT, "modules.tar", ArtifactKind.MODULES, "modules.tar", GIB, required=False),
        Product(
            OUT, source_archive.NAME, ArtifactKind.SOURCES, source_archive.NAME, source_archive.LIMIT, required=False
        ),
    ]


def build_folder(workspace: Workspace, key: str) -> Path:
    """Return the folder with the files of the build with this key; it exists once the build has passed."""
    return workspace.builds / key


def finished_build(workspace: Workspace, key: str) -> BuildResult | None:
    """Return the result of an earlier build with this key on this machine, marked as reused; None if there is none.

    A build with an unreadable result or with a missing or damaged file does not count. Damaged files are removed, so
    that the next build can keep its own.
    """
    stored = build_folder(workspace, key) / "result.json"
    try:
        result = BuildResult.model_validate_json(stored.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.error("stored build is damaged; building it again", path=str(stored), error=repr(error))
        return None
    required = {product.kind for product in products("x86_64") if product.required}
    if result.outcome is not Outcome.PASSED or not required <= {artifact.kind for artifact in result.artifacts}:
        log.error("stored build is incomplete; building it again", path=str(stored))
        return None
    artifacts = [*result.artifacts, *(each for layout in result.layouts for each in layout.artifacts)]
    damaged = [artifact for artifact in artifacts if not has_hash(workspace.path_of(artifact), artifact.sha256)]
    for artifact in damaged:
        log.error("stored build is damaged; building it again", path=str(stored), file=artifact.name)
        workspace.path_of(artifact).unlink(missing_ok=True)
    return None if damaged else result.model_copy(update={"reused": True})
