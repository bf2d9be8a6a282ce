"""Versions of a series, and the range-diff of two versions."""

from __future__ import annotations

import httpx
import pytest
from pydantic import TypeAdapter
from sqlalchemy import select

from wqlab_contracts.api.steps import PatchPair, SubmissionVersion
from wqlab_contracts.enums import Arm, ArtifactKind
from wqlab_server.models import Apply
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.scene import REQUEST, Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


def versions(client: httpx.Client, number: int) -> list[SubmissionVersion]:
    answer = client.get(f"{URL}/{number}/versions")
    assert answer.status_code == 200, answer.text
    return TypeAdapter(list[SubmissionVersion]).validate_json(answer.content)


@pytest.fixture
def two(scene: Scene, sessions: SessionFactory) -> tuple[int, int]:
    """v1 improved; v2, with another base commit, did not."""
    scene.devices()
    numbers = []
    for candidate in (5.0, 40.0):
        number = scene.submission()
        scene.builds(number)
        scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: candidate})
        scene.finish(number)
        numbers.append(number)
    with transaction(sessions) as session:
        apply = session.scalars(select(Apply).where(Apply.submission_id == numbers[1])).one()
        assert apply.result is not None
        assert apply.result.baseline is not None
        moved = apply.result.baseline.model_copy(update={"base_commit": "e" * 40})
        apply.result = apply.result.model_copy(update={"baseline": moved})
    return numbers[0], numbers[1]


def test_versions_of_a_series_are_listed(client: httpx.Client, scene: Scene, two: tuple[int, int]) -> None:
    study = scene.submission(request=REQUEST | {"series": None})
    other = scene.submission(request=REQUEST | {"series": {"git": {"url": "https://example.org/x.git", "ref": "x"}}})
    found = versions(client, two[0])
    assert [version.id for version in found] == [two[1], two[0]]
    assert [version.base_commit for version in found] == ["e" * 40, "a" * 40]
    assert {version.tree_oid for version in found} == {"c" * 40}
    assert [version.id for version in versions(client, study)] == [study], (
        "settings studies are not versions of each other"
    )
    assert [version.id for version in versions(client, other)] == [other]
    assert client.get(f"{URL}/9999/versions").status_code == 404


def test_series_of_two_versions_are_compared_patch_by_patch(
    client: httpx.Client, scene: Scene, two: tuple[int, int], sessions: SessionFactory
) -> None:
    diff = "\n\n---\n a | 1 +\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@ f()\n x\n+{}\n y\n"
    mail = "From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH {}] {}"
    gone, new = ("\n+".join(f"{word} {n}" for n in range(20)) for word in ("gone", "new"))
    texts = (
        f"{mail.format('1/2', 'wq: one')}{diff.format('one')}\n{mail.format('2/2', 'wq: gone')}{diff.format(gone)}",
        f"{mail.format('v2 1/2', 'wq: one')}{diff.format('uno')}\n{mail.format('v2 2/2', 'wq: new')}{diff.format(new)}",
    )
    for number, text in zip(two, texts, strict=True):
        mbox = scene.artifact(ArtifactKind.SERIES, "series.mbox", text)
        with transaction(sessions) as session:
            apply = session.scalars(select(Apply).where(Apply.submission_id == number)).one()
            assert apply.result is not None
            apply.result = apply.result.model_copy(update={"series_mbox": mbox})
    answer = client.get(f"{URL}/{two[0]}/range-diff/{two[1]}")
    assert answer.status_code == 200, answer.text
    found = TypeAdapter(list[PatchPair]).validate_json(answer.content)
    assert [(each.first, each.second, each.change, each.subject) for each in found] == [
        (1, 1, "!", "wq: one"), (None, 2, ">", "wq: new"), (2, None, "<", "wq: gone"),
    ]  # fmt: skip
    assert found[0].difference[-4:] == ["  x", "-+one", "++uno", "  y"]
    assert client.get(f"{URL}/{two[0]}/range-diff/9999").status_code == 404
