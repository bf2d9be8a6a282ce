"""Quotes from the lab's current state."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import PAIR
from wqlab_server.models import Submission
from wqlab_server.storage.db import transaction
from wqlab_server.submissions.quote_service import make_quote

from ..support.scene import REQUEST, Scene

pytestmark = pytest.mark.integration


def test_quote_leaves_out_targets_with_mistakes_and_writes_nothing(scene: Scene) -> None:
    scene.devices()
    targets = [{"plan": "flush", "device_type": "tiny"}, {"plan": "flush", "device_type": "huge"}]
    request = SubmissionRequest.model_validate(REQUEST | {"targets": targets})
    with transaction(scene.sessions) as session:
        quote = make_quote(session, scene.data.current(), scene.settings, request, "ada")
        assert session.scalar(select(func.count(Submission.id))) == 0
    assert [target.index for target in quote.targets] == [0]
    assert [error.pointer for error in quote.errors] == ["/targets/1/device_type"]


def test_build_time_of_one_arm_is_used_for_the_other(scene: Scene) -> None:
    scene.devices()
    scene.builds(scene.submission())
    request = SubmissionRequest.model_validate(REQUEST)
    with transaction(scene.sessions) as session:
        quote = make_quote(session, scene.data.current(), scene.settings, request, "ada")
    (build,) = quote.builds
    assert (build.kernels, build.build_s, build.measured_builds) == (len(PAIR), 120.0, 2)


def test_walk_has_a_boot_for_the_base_and_for_each_patch(scene: Scene) -> None:
    scene.devices()
    patches = [
        f"From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH {number}/5] x\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n"
        for number in range(1, 6)
    ]
    by_mail = REQUEST | {"series": {"mbox": {"text": "\n".join(patches)}}, "walk": True, "blocks": 4}
    git = {"git": {"url": "https://git.example.org/linux.git", "ref": "wq"}}
    by_branch = REQUEST | {"series": git, "walk": True, "blocks": 4}
    with transaction(scene.sessions) as session:
        mailed, branch = (
            make_quote(session, scene.data.current(), scene.settings, SubmissionRequest.model_validate(each), "ada")
            for each in (by_mail, by_branch)
        )
    assert (mailed.errors, mailed.targets[0].boots, mailed.builds[0].kernels) == ([], 4 * 6, 6)
    assert not any("number of patches" in note for note in mailed.targets[0].notes)
    assert any("number of patches is known once" in note for note in branch.targets[0].notes)
