"""Which trees are an operator's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.specs import Tree, TreeWatch

OWN = Tree(name="linux", summary="", url="https://git.example/linux.git")
PACKAGE = Tree(name="debian", summary="", debian_source="linux-source-6.1")
LISTED = TreeWatch(
    kind="tree",
    name="next",
    tree="linux",
    url="https://git.example/next.git",
    branches=["master"],
    targets=["locks@tiny"],
    owner="a",
)


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    empty = DataFolder(tmp_path, {}, {}, "linux", {}, {}, {}, {}, {}, {})
    return replace(empty, trees={"linux": OWN, "debian": PACKAGE}, watches={"next": LISTED})


@pytest.mark.parametrize(
    ("change", "origin"),
    [
        ({}, "operator"),
        ({"url": "https://git.example/next.git"}, "operator"),
        ({"url": "https://mallory.example/linux.git"}, "user"),
        ({"url": "https://git.example/linux.git/"}, "user"),
        ({"url": "git://127.0.0.1/linux"}, "user"),
        ({"url": None, "debian_source": "linux-source-6.1"}, "operator"),
        ({"url": None, "debian_source": "linux-source-9"}, "user"),
        ({"url": "https://mallory.example/linux.git", "origin": "operator"}, "user"),
    ],
)
def test_a_tree_is_an_operators_if_the_data_folder_lists_its_url(
    data: DataFolder, change: dict[str, str | None], origin: str
) -> None:
    assert data.with_origin(OWN.model_copy(update=change)).origin == origin
