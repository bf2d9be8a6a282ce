"""The big.LITTLE board: arm64, emulated, with everything cross-built."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest

from .conftest import NOOP, ROOT, Lab, comparisons

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

BOARD = "chromebook-biglittle"


@pytest.fixture(scope="module")
def board(lab: Lab) -> str:
    """Joins the running lab."""
    shutil.copy(ROOT / f"device-types/{BOARD}.yaml", lab.data / "device-types")
    subprocess.run(["wqlab-lab", "up"], env=lab.environment, check=True)
    return BOARD


@pytest.fixture(scope="module")
def study(lab: Lab, board: str) -> dict[str, Any]:
    settings = [word for setting in ("system,strict=0", "cache,strict=1") for word in ("--setting", f"scope={setting}")]
    return lab.finish(
        lab.submit(
            *("--settings-only", "--target", f"dm-crypt-affinity@{board}", "--scenario", "HIGH", *settings),
            *("--blocks", "1", "--param", "total_ios=64", "--param", "traced_ios=400"),
        )
    )


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
def test_locks_that_are_inlined_are_said_to_be_unmeasured(lab: Lab, board: str) -> None:
    """By night: it takes a second arm64 kernel."""
    report = lab.finish(lab.submit("--mbox", str(NOOP), "--target", f"xfs-fsync@{board}", "--blocks", "2"))
    [found] = report["targets"]
    assert found["outcome"] == "passed"
    [locks] = [c for c in found["comparisons"] if c["metric"] == "locks_per_flush"]
    assert locks["verdict"] == "unsupported"
    assert "inlined" in locks["reason"]
