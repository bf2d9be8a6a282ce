"""The emulated arm64 big.LITTLE device, with everything cross-compiled. In the nightly suite, for its kernel builds."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import BIG_LITTLE, NOOP, Lab, comparisons

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]


@pytest.fixture(scope="module")
def study(lab: Lab, big_little: int) -> dict[str, Any]:
    return lab.finish(big_little)


def test_kernel_reports_two_clusters_of_different_capacity(study: dict[str, Any]) -> None:
    topology = study["targets"][0]["environment"]["topology"]
    assert topology["capacity"] == [400] * 4 + [1024] * 4
    assert topology["l3"] == [0] * 4 + [1] * 4
    assert topology["last_level"] == "L2"


def test_strict_scope_keeps_work_in_its_cluster(study: dict[str, Any]) -> None:
    [share] = comparisons(study, metric="local_l3_share", question="setting")
    assert share["candidate"]["mean"] == 100
    assert 30 < share["baseline"]["mean"] < 75, "two clusters: about half by chance"


def test_inlined_locks_are_reported_as_unmeasured(lab: Lab) -> None:
    report = lab.finish(lab.submit("--mbox", str(NOOP), "--target", f"xfs-fsync@{BIG_LITTLE}", "--blocks", "1"))
    [found] = report["targets"]
    assert found["outcome"] == "passed"
    [locks] = [c for c in found["comparisons"] if c["metric"] == "locks_per_flush"]
    assert locks["verdict"] == "unsupported"
    assert "inlined" in locks["reason"]
