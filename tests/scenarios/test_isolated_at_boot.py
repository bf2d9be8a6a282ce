"""Plan isolation on a device whose boot arguments isolate a CPU, with a kernel that knows them."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import NOOP, Lab, make_data, running_lab, scenarios, write_device_type

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

LIVE = {"write_mean_us", "works_before", "hold_mean_us", "hold_max_us"}
"""Metrics of a change while works run, which these scenarios do not make."""


@pytest.fixture
def isolated_lab() -> Iterator[Lab]:
    """A lab with one emulated device, whose second CPU is isolated."""
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    data = make_data(state)
    boot = {"kernel_arguments": "isolcpus=domain,managed_irq,1 nohz_full=1"}
    write_device_type(data, "isolated", (1, 1, 2, 1, 1, "contiguous"), boot=boot)
    with running_lab(state, data, {}) as lab:
        yield lab


def test_no_work_starts_on_a_cpu_that_is_isolated_at_boot(isolated_lab: Lab) -> None:
    submission = isolated_lab.submit(
        *("--mbox", str(NOOP), "--blocks", "1", "--recipe", "isolation"),
        *("--target", "isolation@isolated", *scenarios("isolcpus", "nohz_full")),
    )
    (target,) = isolated_lab.finish(submission)["targets"]
    assert target["outcome"] == "passed"
    assert {each["metric"] for each in target["unsupported"]} == LIVE, "nothing changes live"
    rows = list(csv.DictReader(io.StringIO(isolated_lab.wqlab("samples", str(target["run_id"])))))
    found: dict[str, dict[str, set[float]]] = {}
    for row in rows:
        found.setdefault(row["metric"], {}).setdefault(row["scenario"], set()).add(float(row["value"]))
    assert found["works_on_isolated"] == {"isolcpus": {0}, "nohz_full": {0}}
    assert all(min(counts) > 0 for counts in found["works_while_isolated"].values())
