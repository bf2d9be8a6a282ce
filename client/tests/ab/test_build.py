"""Kernels that are built from commits: the modules of a build."""

from __future__ import annotations

import tarfile
from pathlib import Path

from wqlab_client.ab.build import _modules
from wqlab_contracts.enums import ArtifactKind
from wqlab_worker.workspace import Workspace


def test_modules_of_a_build_are_unpacked_once(tmp_path: Path) -> None:
    workspace, archive = Workspace(tmp_path / "cache"), tmp_path / "cache" / "modules.tar"
    (tmp_path / "modules.dep").touch()
    archive.parent.mkdir()
    with tarfile.open(archive, "w") as packed:
        packed.add(tmp_path / "modules.dep", "lib/modules/6.12.1/modules.dep")
    kept = {ArtifactKind.MODULES: workspace.keep(archive, ArtifactKind.MODULES, "modules.tar")}
    folder = _modules(kept, "6.12.1", workspace)
    assert folder is not None and (folder / "modules.dep").exists()
    assert _modules(kept, "6.12.1", workspace) == folder
    assert _modules({}, "6.12.1", workspace) is None
