"""Watched trees of the data folder: their schema, and what they refer to."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_contracts.loading import DataError, load_data
from wqlab_contracts.specs import Batch, WatchedTree

ROOT = Path(__file__).parents[2]
SPEC: dict[str, Any] = {
    "name": "next", "tree": "linux", "branches": ["for-next"], "targets": ["xfs-fsync@xeon-2s"], "owner": "ada",
}  # fmt: skip


def test_defaults_and_patterns() -> None:
    spec = WatchedTree.model_validate(SPEC | {"tags": ["v6.12.*"]})
    assert (spec.batch, spec.every_minutes, spec.priority, spec.enabled) == (Batch.NEWEST, 60, 30, True)
    assert spec.ref_patterns == ["refs/heads/for-next", "refs/tags/v6.12.*"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"branches": []}, "name branches, tags or both"),
        ({"branches": ["a", "a"]}, "lists a name twice"),
        ({"branches": ["a..b"]}, "no name of a branch"),
        ({"branches": ["--upload-pack=x"]}, "pattern"),
        ({"tags": ["for-next"]}, "are equal"),
        ({"targets": ["xfs-fsync"]}, "pattern"),
        ({"targets": []}, "at least 1"),
        ({"every_minutes": 1}, "greater than or equal to 5"),
        ({"batch": "some"}, "'all', 'newest' or 'range'"),
        ({"interval": 5}, "Extra inputs"),
        ({"quiet_hours": [{"begins": "08:00", "ends": "08:00"}]}, "no time at all"),
    ],
)
def test_mistakes_are_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        WatchedTree.model_validate(SPEC | change)


def test_file_is_loaded_and_its_references_are_checked(tmp_path: Path) -> None:
    for folder in ("device-types", "kernels", "testplans", "intake"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "kernels/trees.yaml").write_text(
        "default: linux\ntrees:\n"
        "  - {name: linux, summary: s, url: 'https://git.example.org/linux.git'}\n"
        "  - {name: debian, summary: s, debian_source: linux-source-6.12}\n"
    )
    file = tmp_path / "intake/watched-trees.yaml"
    file.write_text(
        "watched_trees:\n"
        "  - {name: next, tree: linux, branches: [for-next], targets: [xfs-fsync@xeon-2s], owner: ada}\n"
    )
    assert [each.name for each in load_data(tmp_path).watched_trees] == ["next"]
    file.write_text(
        "watched_trees:\n"
        "  - {name: next, tree: linus, branches: [a], targets: [xfs-fsync@xeon-2s], owner: ada}\n"
        "  - {name: next, tree: debian, branches: [a], targets: [fsync@xeon-3s], owner: ada}\n"
    )
    with pytest.raises(DataError) as failed:
        load_data(tmp_path)
    text = str(failed.value)
    for problem in ("no tree 'linus'", "next is defined twice", "source package", "no plan 'fsync'", "'xeon-3s'"):
        assert problem in text
    assert "intake/watched-trees.yaml:3" in text
