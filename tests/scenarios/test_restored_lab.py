"""A backup is taken while submissions run, and restored into a new lab: both labs end them with the same verdict."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from wqlab_contracts.enums import EventKind

from .chaos import EQUAL, WORSE, Ending, missing_or_repeated, wait_for_free_devices
from .conftest import NOOP, SERIES, Lab, running_lab

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]


def require_endings(lab: Lab, equal: int, worse: int) -> None:
    lab.wqlab("watch", str(equal), codes=(0, 1, 3, 4))
    lab.wqlab("watch", str(worse), codes=(0, 1, 3, 4))
    client = lab.client()
    reports = [client.report(submission) for submission in (equal, worse)]
    assert [Ending.of(report) for report in reports] == [EQUAL, WORSE], [r.submission.failure for r in reports]
    assert [missing_or_repeated(client, report) for report in reports] == [{}, {}]
    wait_for_free_devices(lab)


def test_restored_lab_ends_the_submissions(lab: Lab) -> None:
    """The restored lab starts while the other one still measures; each has its own devices."""
    target = ("--target", "xfs-fsync@fragile", "--blocks", "2")
    equal = lab.submit("--mbox", str(NOOP), *target)
    worse = lab.submit("--mbox", str(SERIES / "inverted.mbox"), *target)
    with tempfile.TemporaryDirectory(prefix="wqlab-e2e-", dir="/tmp") as folder:
        file, state = Path(folder) / "backup", Path(folder) / "state"
        for event in lab.client().events(equal, give_up_s=600):
            if event.kind is EventKind.SAMPLES:
                break
        subprocess.run(["wqlab-lab", "backup", file], env=lab.environment, check=True)
        environment = {**os.environ, "WQLAB_STATE": str(state), "WQLAB_DATA_DIR": str(lab.data)}
        subprocess.run(["wqlab-lab", "restore", file], env=environment, check=True)
        with running_lab(state, lab.data, {}) as restored:
            assert restored.url != lab.url
            for submission in (equal, worse):
                assert restored.client().submission(submission).finished_at is None
            require_endings(restored, equal, worse)
    require_endings(lab, equal, worse)
