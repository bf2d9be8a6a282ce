"""Number of blocks from the size of the family of tests, with the repository's own plans and device types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wqlab_comparison import ALPHA, blocks_of_family
from wqlab_comparison.significance import LEAST_PATTERNS
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.loading import load_data
from wqlab_server.submissions import planned_blocks

LOADED = load_data(Path(__file__).resolve().parents[3])
RYZEN = LOADED.device_type("ryzen-3900x").model_copy(update={"emulation": None})
"""The device type as a machine."""
DATA = replace(LOADED, device_types={**LOADED.device_types, RYZEN.name: RYZEN})
MBOX = {"mbox": {"text": "From 1 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\ndiff --git a/a b/a\n"}}
CRYPT = {"plan": "dm-crypt-affinity", "device_type": "ryzen-3900x"}
FSYNC = {"plan": "xfs-fsync", "device_type": "ryzen-3900x"}
COUNTED = {"plan": "xfs-fsync", "device_type": "tiny"}
SEEDS = {"plan": "xfs-fsync", "device_type": "instrumented-tiny"}
TWO = ["scope=system,strict=0", "scope=cache,strict=0"]


def request(*targets: dict[str, Any], series: bool = True, **more: Any) -> SubmissionRequest:
    return SubmissionRequest.model_validate(
        {"tree": next(iter(DATA.trees)), "series": MBOX if series else None, "targets": list(targets), **more}
    )


@pytest.mark.parametrize(
    ("targets", "series", "family"),
    [
        ([FSYNC], True, 1),
        ([CRYPT], True, 3 * 8),  # scenarios x settings
        ([CRYPT], False, 3 * 7),  # each setting but the reference
        ([CRYPT | {"scenarios": ["HIGH"], "settings": TWO}], True, 2),
        ([CRYPT | {"scenarios": ["HIGH"], "settings": TWO}], False, 1),
        ([CRYPT, FSYNC], True, 3 * 8 + 1),
        ([FSYNC, COUNTED], True, 1),  # equal counts need no test
        ([FSYNC, SEEDS], True, 1),  # another family
    ],
)
def test_family_has_every_primary_test_of_the_larger_question(
    targets: list[dict[str, Any]], series: bool, family: int
) -> None:
    assert planned_blocks.family_size(DATA, request(*targets, series=series), boots=2, like=RYZEN) == family


@pytest.mark.parametrize(
    ("device_type", "blocks", "asked", "layouts"),
    [
        ("instrumented-tiny", 6, None, 6),
        ("instrumented-tiny", 13, None, 8),
        ("instrumented-tiny", 13, 4, 4),
        ("tiny", 6, None, 1),
        ("tiny", 6, 2, 2),
    ],
)
def test_each_block_of_an_instrumented_device_has_a_layout(
    device_type: str, blocks: int, asked: int | None, layouts: int
) -> None:
    options = request(FSYNC, layouts=asked)
    assert options.layouts_on(LOADED.device_type(device_type), blocks) == layouts


def test_each_patch_of_a_walk_is_a_test() -> None:
    walk = request(FSYNC, walk=True)
    size = planned_blocks.family_size(DATA, walk, boots=4, like=RYZEN)
    assert size == 4, "three patches and the whole series"


@pytest.mark.parametrize(("family", "blocks"), [(1, 6), (2, 10), (6, 11), (18, 13), (100, 15)])
def test_exact_test_has_steps_enough_for_the_family(family: int, blocks: int) -> None:
    assert blocks_of_family(family) == blocks
    if family > 1:
        assert 2 ** (blocks - 1) * ALPHA / family >= LEAST_PATTERNS > 2 ** (blocks - 2) * ALPHA / family


@pytest.mark.parametrize(("blocks", "warned"), [(2, False), (6, True), (12, True), (13, False)])
def test_stated_blocks_that_are_too_few_for_the_exact_test_are_named(blocks: int, warned: bool) -> None:
    text = planned_blocks.warning(18, blocks)
    assert ("18 tests share the level of 5 %, which takes 13 blocks" in text) is warned
    assert planned_blocks.warning(1, blocks) == ""


@pytest.mark.parametrize(
    ("spread", "family", "blocks", "text"),
    [
        (None, 1, 6, ""),
        (None, 18, 13, "18 tests share the level"),
        (0.002, 1, 6, ""),
        (0.009, 1, 9, "they show an effect of twice the threshold in four cases of five"),
        (0.1, 1, 16, "more than 16 are planned only if you ask for them"),
    ],
)
def test_noise_of_the_devices_adds_blocks(spread: float | None, family: int, blocks: int, text: str) -> None:
    plan = DATA.plans["xfs-fsync"]
    metric = planned_blocks.primary_metric(plan, emulated=False)
    assert metric is not None
    profile = plan.hardware.model_copy(update={"spreads": {} if spread is None else {metric.name: spread}})
    chosen = planned_blocks.choose(None, plan, RYZEN, profile, family)  # type: ignore[arg-type]
    assert (chosen.blocks, text in chosen.why) == (blocks, True)
