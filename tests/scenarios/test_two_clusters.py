"""The big.LITTLE device: arm64, emulated, with everything cross-built."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import BIG_LITTLE, NOOP, Lab, comparisons

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def study(lab: Lab, big_little: int) -> dict[str, Any]:
    return lab.finish(big_little)


def test_the_kernel_sees_two_clusters_of_different_strength(study: dict[str, Any]) -> None:
    topology = study["targets"][0]["environment"]["topology"]
    assert topology["capacity"] == [400] * 4 + [1024] * 4
    assert topology["l3"] == [0] * 4 + [1] * 4
    assert topology["last_level"] == "L2"


def test_work_stays_within_its_cluster_when_the_scope_is_strict(study: dict[str, Any]) -> None:
    [share] = comparisons(study, metric="local_l3_share", question="setting")
    assert share["candidate"]["mean"] == 100
    assert 30 < share["baseline"]["mean"] < 75, "two clusters: about half by chance"


@pytest.mark.nightly
def test_locks_that_are_inlined_are_said_to_be_unmeasured(lab: Lab) -> None:
    """By night: it takes a second arm64 kernel."""
    report = lab.finish(lab.submit("--mbox", str(NOOP), "--target", f"xfs-fsync@{BIG_LITTLE}", "--blocks", "1"))
    [found] = report["targets"]
    assert found["outcome"] == "passed"
    [locks] = [c for c in found["comparisons"] if c["metric"] == "locks_per_flush"]
    assert locks["verdict"] == "unsupported"
    assert "inlined" in locks["reason"]
