"""The API is away for a minute, and a device is flaky: every submission ends as its undisturbed twin.

`make chaos` does the same at random moments. In the nightly suite, because together they take minutes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import EventKind
from wqlab_lab.supervision import Supervisor

from .chaos import AWAY_S, EQUAL, FLAKY, WORSE, Ending, missing_or_repeated, wait_for_free_devices
from .conftest import NOOP, SERIES, Lab

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]


def submit(lab: Lab, series: Path, blocks: int = 2) -> int:
    return lab.submit("--mbox", str(series), "--target", "xfs-fsync@fragile", "--blocks", str(blocks))


def require_ending(lab: Lab, expected: dict[int, Ending]) -> None:
    """Require that each submission ended so, with each row recorded once and no device leased."""
    client = lab.client()
    reports = {submission: client.report(submission) for submission in expected}
    assert {submission: Ending.of(report) for submission, report in reports.items()} == expected
    damage = {submission: missing_or_repeated(client, report) for submission, report in reports.items()}
    assert not any(damage.values()), damage
    wait_for_free_devices(lab)


def test_api_away_for_a_minute(lab: Lab) -> None:
    """Both the worker, with a lease of half a minute, and the client wait for it."""
    supervisor = Supervisor(Path(lab.environment["WQLAB_STATE"]) / "run/supervisor.sock")
    equal, worse = submit(lab, NOOP), submit(lab, SERIES / "inverted.mbox")
    is_away = False
    for event in lab.client().events(equal, give_up_s=600):
        if event.kind is EventKind.SAMPLES and not is_away:
            is_away = True
            supervisor.stop("api")
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"{lab.url}/healthz")
            time.sleep(AWAY_S)  # the length of the outage
            supervisor.start("api")
    assert is_away
    lab.wqlab("watch", str(worse), codes=(1,))
    require_ending(lab, {equal: EQUAL, worse: WORSE})


@pytest.fixture
def flaky_devices(lab: Lab) -> Iterator[None]:
    for device in ("fragile-1", "fragile-2"):
        lab.fault(device, FLAKY)
    yield
    for device in ("fragile-1", "fragile-2"):
        lab.fault(device)


@pytest.mark.usefixtures("flaky_devices")
def test_device_that_is_dead_one_boot_in_three(lab: Lab) -> None:
    equal, worse = submit(lab, NOOP, blocks=3), submit(lab, SERIES / "inverted.mbox", blocks=3)
    lab.wqlab("watch", str(equal))
    lab.wqlab("watch", str(worse), codes=(1,))
    assert any(lab.client().report(submission).attempts for submission in (equal, worse)), "a block met the fault"
    require_ending(lab, {equal: EQUAL, worse: WORSE})
