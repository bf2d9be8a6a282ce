"""The big.LITTLE board: arm64, emulated, with everything cross-built. For the night: its kernels take ten minutes."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest

from .conftest import NOOP, ROOT, Lab, comparisons

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(3600)]

BOARD = "chromebook-biglittle"


@pytest.fixture(scope="module")
def submissions(lab: Lab) -> dict[str, int]:
    shutil.copy(ROOT / f"device-types/{BOARD}.yaml", lab.data / "device-types")
    subprocess.run(["wqlab-lab", "up"], env=lab.environment, check=True)
    return {
        "noop": lab.submit("--mbox", str(NOOP), "--target", f"xfs-fsync@{BOARD}", "--blocks", "2"),
        "study": lab.submit(
            *("--settings-only", "--target", f"dm-crypt-affinity@{BOARD}", "--scenario", "HIGH", "--blocks", "3"),
            *("--param", "total_ios=64", "--param", "traced_ios=400"),
        ),
    }


def target(lab: Lab, submission: int) -> dict[str, Any]:
    [found] = lab.finish(submission)["targets"]
    return dict(found)


def test_the_kernel_sees_two_clusters_of_different_strength(lab: Lab, submissions: dict[str, int]) -> None:
    topology = target(lab, submissions["study"])["environment"]["topology"]
    assert topology["capacity"] == [400] * 4 + [1024] * 4
    assert topology["l3"] == [0] * 4 + [1] * 4
    assert topology["last_level"] == "L2"


def test_work_stays_within_its_cluster_when_the_scope_is_strict(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["study"])
    shares = {c["setting"]: c["candidate"]["mean"] for c in comparisons(report, metric="local_l3_share")}
    assert shares["scope=cache,strict=1"] == 100
    [system] = {c["baseline"]["mean"] for c in comparisons(report, metric="local_l3_share")}
    assert 30 < system < 75, "two clusters: about half by chance"


def test_locks_that_are_inlined_are_said_to_be_unmeasured(lab: Lab, submissions: dict[str, int]) -> None:
    found = target(lab, submissions["noop"])
    assert found["outcome"] == "passed"
    [locks] = [c for c in found["comparisons"] if c["metric"] == "locks_per_flush"]
    assert locks["verdict"] == "unsupported"
    assert "inlined" in locks["reason"]
