"""An idle device compares its kernel with itself, and gives way to a submission in the middle of a boot."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from wqlab_contracts.enums import DeviceHealth, Outcome, RunPurpose

from .conftest import Lab, make_data, running_lab, write_device_type

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

DEVICE = "lone-1"
SETTINGS = {"WQLAB_CANARIES": "600", "WQLAB_IDLE_CHECK_AFTER_S": "5"}


@pytest.fixture(scope="module")
def idle_lab() -> Iterator[Lab]:
    """A lab with one emulated device and canaries."""
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    data = make_data(state)
    write_device_type(data, "lone", (1, 1, 2, 1, 1, "contiguous"))
    with running_lab(state, data, SETTINGS) as lab:
        yield lab


def history(lab: Lab) -> list[dict[str, Any]]:
    """Return the attempts on the device, newest first."""
    headers = {"Authorization": f"Bearer {lab.environment['WQLAB_TOKEN']}"}
    answer = httpx.get(f"{lab.url}/api/v1/devices/{DEVICE}/history", headers=headers, timeout=None)
    if answer.status_code == 404:  # the first tick has not read the device yet
        return []
    runs: list[dict[str, Any]] = answer.raise_for_status().json()["runs"]["items"]
    return runs


def wait_for(condition: Callable[[], bool]) -> float:
    """Wait for a condition, and return the time (seconds) until it was true."""
    began = time.monotonic()
    while not condition():
        time.sleep(0.5)
    return time.monotonic() - began


def test_canary_runs_on_an_idle_device_and_gives_way(idle_lab: Lab) -> None:
    def is_booting() -> bool:
        runs = history(idle_lab)
        return bool(runs) and runs[0]["purpose"] == RunPurpose.CANARY and runs[0]["boots"] > 0

    wait_for(is_booting)
    canary = history(idle_lab)[0]
    submission = idle_lab.submit(
        *("--settings-only", "--target", "dm-crypt-affinity@lone", "--scenario", "HIGH", "--blocks", "1"),
        *("--setting", "scope=system,strict=0", "--setting", "scope=cache,strict=1"),
    )

    def stopped() -> dict[str, Any]:
        attempts = [run for run in history(idle_lab) if run["run_id"] == canary["run_id"]]
        return attempts[-1]

    took = wait_for(lambda: stopped()["finished_at"] is not None)
    assert stopped()["outcome"] == Outcome.CANCELED
    # A heartbeat (a quarter of the lease of 30 s) and switching the device off; a boot takes as long, and a block four
    # times as long.
    assert took < 60
    report = idle_lab.finish(submission)
    assert report["submission"]["outcome"] == Outcome.PASSED
    [target] = report["targets"]
    assert target["blocks_completed"] == 1
    assert idle_lab.client().device(DEVICE).health is DeviceHealth.GOOD

    def continues() -> bool:
        return sum(run["run_id"] == canary["run_id"] for run in history(idle_lab)) == 2

    wait_for(continues)
    assert [each.id for each in idle_lab.client().submissions()] == [submission], "a canary is no submission"
