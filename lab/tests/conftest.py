from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_lab.paths import LabPaths, Serving


@pytest.fixture
def paths(tmp_path: Path) -> LabPaths:
    paths = LabPaths(Path("/checkout with space/50%"), tmp_path / "cache", tmp_path / "state")
    paths.create()
    paths.golden.write_text('{"kernel": "/k", "rootfs": "/r", "key": "x"}')
    (paths.keys / "worker.token").write_text("secret\n")
    return paths


@pytest.fixture
def served(paths: LabPaths, tmp_path: Path) -> LabPaths:
    """Paths of a lab that labs on other machines can reach."""
    return replace(paths, serving=Serving("lab.test", tmp_path / "tls"))
