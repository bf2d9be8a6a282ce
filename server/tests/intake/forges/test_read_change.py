"""Whose branch the head of a pull request is."""

from __future__ import annotations

from typing import Any

import pytest

from wqlab_server.intake.forges.read_change import is_own_branch

OWN = {"label": "wake-one", "ref": "wake-one", "repo": {"full_name": "wq/linux"}}
AGIT = {"label": "", "ref": "refs/pull/7/head", "repo": {"full_name": "wq/linux"}}


@pytest.mark.parametrize(
    ("head", "more", "own"),
    [
        pytest.param(OWN, {}, True, id="branch of the repository"),
        pytest.param(OWN | {"repo": {"full_name": "WQ/Linux"}}, {"flow": 0}, True, id="other case"),
        pytest.param(OWN | {"label": "wq:wake-one"}, {}, True, id="branch on GitHub"),
        pytest.param(OWN | {"ref": "for/refs", "label": "for/refs"}, {}, True, id="branch with slashes"),
        pytest.param(OWN | {"repo": {"full_name": "mallory/linux"}}, {}, False, id="fork"),
        pytest.param(OWN | {"repo": None}, {}, False, id="deleted fork"),
        pytest.param(OWN | {"repo": {}}, {}, False, id="repository without a name"),
        pytest.param(AGIT, {}, False, id="AGit"),
        pytest.param(AGIT | {"label": "mallory/topic"}, {}, False, id="AGit with a label"),
        pytest.param(AGIT | {"ref": "mallory/topic"}, {}, False, id="AGit without a label"),
        pytest.param(OWN, {"flow": 1}, False, id="AGit by its flow"),
        pytest.param(OWN | {"ref": "refs/for/master/topic"}, {}, False, id="reference that is no branch"),
        pytest.param({"repo": OWN["repo"], "label": "x"}, {}, False, id="no reference"),
    ],
)
def test_only_the_head_of_a_branch_is_own(head: dict[str, Any], more: dict[str, Any], own: bool) -> None:
    assert is_own_branch({"head": head, **more}, "wq/linux") is own
