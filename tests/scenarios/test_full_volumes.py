"""Each volume of a lab is full for a while during a submission, and no verdict changes.

The volumes are small file systems in the memory of a mount namespace, so that ENOSPC is the kernel's.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from wqlab_contracts.enums import EventKind

from .chaos import EQUAL, WORSE, Ending, missing_or_repeated, wait_for_free_devices
from .conftest import NOOP, SERIES, Lab, make_data, running_lab, write_fragile_devices
from .mounts import MountNamespace, Volume, mount_namespace

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

FULL_S = 20.0
"""Seconds for which a volume is full, each time."""
SMALL_RESERVES = {"WQLAB_RESERVE_BYTES": str(8 << 20), "WQLAB_CACHE_RESERVE_BYTES": str(32 << 20)}
"""Free bytes at which the lab refuses uploads and cleans its cache."""


@dataclass(frozen=True)
class SmallLab:
    """A lab on small volumes."""

    lab: Lab
    place: MountNamespace
    volumes: dict[str, Path]
    """Name -> where the volume is mounted."""

    def fill_for_a_while(self, volume: str) -> None:
        filler = self.place.fill(self.volumes[volume])
        status = os.statvfs(filler)
        assert status.f_bavail == 0
        time.sleep(FULL_S)  # the length of the outage
        filler.unlink()


@pytest.fixture(scope="module")
def small() -> Iterator[SmallLab]:
    with tempfile.TemporaryDirectory(prefix="wqlab-e2e-", dir="/tmp") as folder:
        state = Path(folder) / "state"
        state.mkdir()
        data = make_data(Path(folder))
        write_fragile_devices(data)
        volumes = {
            "state": Volume(state, 400),
            "postgres": Volume(state / "postgres", 400),
            "artifacts": Volume(state / "artifacts", 400),
            "cache": Volume(Path(os.environ["WQLAB_CACHE"]), 1500, over=True),
        }
        with (
            mount_namespace(list(volumes.values())) as place,
            running_lab(state, data, SMALL_RESERVES, place) as lab,
        ):
            yield SmallLab(lab, place, {name: volume.path for name, volume in volumes.items()})


@pytest.mark.parametrize("volume", ["postgres", "artifacts", "cache", "state"])
def test_full_volume_changes_no_verdict(small: SmallLab, volume: str) -> None:
    """The volume is full when the submissions begin, and again while a boot is measured."""
    lab, client = small.lab, small.lab.client()
    target = ("--target", "xfs-fsync@fragile", "--blocks", "2")
    equal = lab.submit("--mbox", str(NOOP), *target)
    worse = lab.submit("--mbox", str(SERIES / "inverted.mbox"), *target)
    small.fill_for_a_while(volume)
    measured = False
    for event in client.events(equal, give_up_s=600):
        if event.kind is EventKind.SAMPLES and not measured:
            measured = True
            small.fill_for_a_while(volume)
    lab.wqlab("watch", str(worse), codes=(0, 1, 3, 4))
    reports = [client.report(submission) for submission in (equal, worse)]
    assert [Ending.of(report) for report in reports] == [EQUAL, WORSE], [r.submission.failure for r in reports]
    assert measured, "the volume was full during a boot"
    assert [missing_or_repeated(client, report) for report in reports] == [{}, {}]
    wait_for_free_devices(lab)
