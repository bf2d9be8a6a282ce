"""A lab that watches a branch of a repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from wqlab_contracts.enums import UserRole
from wqlab_server.settings import Settings
from wqlab_worker.workspace import Workspace

from ..support.people import add_user
from ..support.watching import FILE, Upstream, WatchingLab


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "linux")


@pytest.fixture
def watching(
    settings: Settings, engine: Engine, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WatchingLab]:
    trees = f"default: lab-tree\ntrees: [{{name: lab-tree, summary: s, url: {upstream.path}}}]\n"
    (settings.data_dir / "kernels/trees.yaml").write_text(trees)
    lab = WatchingLab(settings.model_copy(update={"local_git_paths": str(upstream.path)}), engine)
    lab.configure(FILE)
    (tmp_path / "cache").mkdir()
    lab.workspace = Workspace(tmp_path / "cache", local_git_paths=(upstream.path,))
    lab.worker.on_apply = lab.apply_for_real
    with lab.client, lab.transaction() as session:
        add_user(session, "bot", UserRole.SUBMITTER)
    lab.mark_all_good()
    yield lab
