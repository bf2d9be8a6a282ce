"""Requests with a sweep: their topologies, mistakes and targets."""

from __future__ import annotations

from typing import Any

import pytest

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.api.sweeps import SweepRequest


def sweep(vary: str = "l3", values: list[int] | None = None, **base: int) -> SweepRequest:
    content = {"vary": vary, "values": values if values is not None else [1, 2, 4, 8], "base": base}
    return SweepRequest.model_validate(content)


def test_one_dimension_varies_and_the_others_stay() -> None:
    assert [each.name for each in sweep(values=[8, 1, 2]).topologies()] == [
        "instrumented-16c-1l3-1n", "instrumented-16c-2l3-1n", "instrumented-16c-8l3-1n",
    ]  # fmt: skip
    assert [each.name for each in sweep("nodes", [1, 2], cpus=32, l3=8).topologies()] == [
        "instrumented-32c-8l3-1n", "instrumented-32c-8l3-2n",
    ]  # fmt: skip
    assert [each.name for each in sweep("cpus", [8, 64]).topologies()] == [
        "instrumented-8c-4l3-1n", "instrumented-64c-4l3-1n",
    ]  # fmt: skip
    assert not list(sweep().mistakes())


@pytest.mark.parametrize(
    ("given", "pointer", "detail"),
    [
        (sweep(values=[4]), "/values", "l3 has 1 value; name 2 to 8 values"),
        (sweep(values=[]), "/values", "l3 has 0 values; name 2 to 8 values"),
        (
            sweep("cpus", list(range(4, 40, 4))),
            "/values",
            "cpus has 9 values; name 2 to 8 values, or make several submissions",
        ),
        (sweep(values=[1, 2, 1]), "/values/2", "l3=1 is listed twice"),
        (sweep(values=[1, 2], l3=4), "/base/l3", "l3 varies, so it cannot stay; leave it out of the base"),
        (sweep("cpus", [8, 128]), "/values/1", "cpus=128: an instrumented device has at most 64 CPUs"),
    ],
)
def test_mistakes_have_a_place_and_a_fix(given: SweepRequest, pointer: str, detail: str) -> None:
    assert (pointer, detail) in list(given.mistakes())


def test_every_impossible_point_is_a_mistake() -> None:
    assert [pointer for pointer, _ in sweep(values=[1, 3, 4, 5]).mistakes()] == ["/values/1", "/values/3"]
    assert [pointer for pointer, _ in sweep("nodes", [8, 1], l3=4).mistakes()] == ["/values/0"]


def test_target_without_device_type_becomes_one_for_each_point() -> None:
    content: dict[str, Any] = {
        "series": None,
        "tree": "linux",
        "targets": [{"plan": "xfs-fsync", "settings": [""]}, {"plan": "dm-crypt"}],
        "sweep": {"vary": "l3", "values": [1, 2]},
    }
    request = SubmissionRequest.model_validate(content)
    assert [(index, each.plan, each.device_type) for index, each in request.indexed_targets()] == [
        (0, "xfs-fsync", "instrumented-16c-1l3-1n"),
        (0, "xfs-fsync", "instrumented-16c-2l3-1n"),
        (1, "dm-crypt", "instrumented-16c-1l3-1n"),
        (1, "dm-crypt", "instrumented-16c-2l3-1n"),
    ]
    expanded = request.expanded()
    assert [each.settings for each in expanded.targets] == [[""], [""], None, None]
    assert expanded.expanded() == expanded, "a retry expands a stored request again"
    assert SubmissionRequest.model_validate_json(expanded.model_dump_json()) == expanded
