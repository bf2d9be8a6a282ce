"""Watches of the data folder: their schema, and what they refer to."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.loading import DataError, load_data
from wqlab_contracts.specs import Archive, Batch, Tree, TreeWatch
from wqlab_contracts.watch_file import reference_problems, watch_of
from wqlab_contracts.yamlfile import Document

ROOT = Path(__file__).parents[2]
SPEC: dict[str, Any] = {
    "kind": "tree", "name": "next", "tree": "linux", "branches": ["for-next"], "targets": ["xfs-fsync@xeon-2s"],
    "owner": "ada",
}  # fmt: skip


def test_defaults_and_patterns() -> None:
    spec = TreeWatch.model_validate(SPEC | {"tags": ["v6.12.*"]})
    assert (spec.batch, spec.every_minutes, spec.priority, spec.enabled) == (Batch.NEWEST, 60, 30, False)
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
        TreeWatch.model_validate(SPEC | change)


TREE_FILE = """\
kind: tree
name: next
tree: linux
branches: [for-next]
targets: [xfs-fsync@xeon-2s]
owner: ada
"""
LIST_FILE = """\
kind: list
name: next
archive: ours
tree: linux
only_if_asked: true
targets: [xfs-fsync@xeon-2s]
owner: ada
"""


@pytest.fixture(scope="module")
def data() -> DataFolder:
    """The repository's data folder with two trees and two archives."""
    trees = (
        Tree(name="linux", summary="s", url="https://git.example.org/linux.git"),
        Tree(name="debian", summary="s", debian_source="linux-source-6.12"),
    )
    url = "https://lore.example.org/wq/{message_id}/"
    archives = (
        Archive(name="ours", summary="s", url=url, list="wq@example.org", epochs="https://lore.example.org/wq/{epoch}"),
        Archive(name="lore", summary="s", url=url),
    )
    return replace(load_data(ROOT), trees={tree.name: tree for tree in trees}, archives=archives)


def problems(text: str, data: DataFolder) -> list[str]:
    document = Document.parse(text, "next.yaml")
    watch = watch_of(document)
    found = [] if watch is None else [document.problem(*each) for each in reference_problems(watch, data)]
    return [str(each) for each in (*document.problems, *found)]


@pytest.mark.parametrize(
    ("text", "old", "new", "problem"),
    [
        (TREE_FILE, "kind: tree\n", "", "next.yaml:1: kind: must be list or tree"),
        (TREE_FILE, "kind: tree", "kind: [tree]", "next.yaml:1: kind: must be list or tree (not ['tree'])"),
        (TREE_FILE, TREE_FILE, "[tree]", "next.yaml:1: kind: must be list or tree"),
        (TREE_FILE, "branches", "branch", "next.yaml:4: branch: unknown field; did you mean branches?"),
        (TREE_FILE, "branches", "subjects", "next.yaml:4: subjects: unknown field"),
        (TREE_FILE, "tree: linux", "tree: linus", "next.yaml:3: tree: no tree 'linus'"),
        (TREE_FILE, "tree: linux", "tree: debian", "tree: debian is a source package, which has no branches"),
        (TREE_FILE, "xfs-fsync@", "fsync@", "next.yaml:5: targets[0]: no plan 'fsync'"),
        (TREE_FILE, "xeon-2s", "xeon-3s", "targets[0]: no device type 'xeon-3s'"),
        (LIST_FILE, "archive: ours", "archive: lore", "next.yaml:3: archive: archive 'lore' needs `epochs`"),
        (LIST_FILE, "archive: ours", "archive: our", "archive: no archive 'our'; did you mean ours?"),
        (LIST_FILE, "tree: linux", "tree: none", "next.yaml:4: tree: no tree 'none'"),
        (LIST_FILE, "only_if_asked: true", "only_if_asked: false", "would take every series of the list"),
    ],
)
def test_mistake_in_a_file_is_reported(data: DataFolder, text: str, old: str, new: str, problem: str) -> None:
    assert old in text
    assert any(problem in each for each in problems(text.replace(old, new, 1), data))


@pytest.mark.parametrize("text", [TREE_FILE, LIST_FILE, LIST_FILE.replace("tree: linux", "tree: debian")])
def test_file_without_mistake_has_no_problem(data: DataFolder, text: str) -> None:
    assert problems(text, data) == []


def test_files_are_loaded_by_name(tmp_path: Path) -> None:
    for name in ("device-types", "kernels", "testplans", "intake"):
        shutil.copytree(ROOT / name, tmp_path / name)
    files = tmp_path / "intake/watches"
    files.mkdir(exist_ok=True)
    (files / "other.yaml").write_text(TREE_FILE)
    with pytest.raises(DataError) as failed:
        load_data(tmp_path)
    text = str(failed.value)
    assert "intake/watches/other.yaml:2: name: is 'next', but the intake/watches file is called 'other'" in text
    assert "intake/watches/other.yaml:3: tree: no tree 'linux'" in text
    (files / "other.yaml").rename(files / "next.yaml")
    (tmp_path / "kernels/trees.yaml").write_text(
        "default: linux\ntrees:\n  - {name: linux, summary: s, url: 'https://git.example.org/linux.git'}\n"
    )
    watch = load_data(tmp_path).watches["next"]
    assert isinstance(watch, TreeWatch) and not watch.enabled
