"""The clock is stepped by an hour, forward and backward, while submissions run, and no verdict changes.

Only the lab's programs see the step, through a preloaded library: the machine's own clock belongs to others, too. Times
that the kernel sets, such as those of files, do not change.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wqlab_contracts.enums import EventKind
from wqlab_lab.supervision import Supervisor

from .chaos import EQUAL, WORSE, Ending, missing_or_repeated, wait_for_free_devices
from .conftest import NOOP, SERIES, Lab, make_data, running_lab, write_fragile_devices
from .mounts import Volume, mount_namespace
from .processes import descendants

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

HOUR_S = 3600
SOURCE = Path(__file__).with_name("stepped_clock.c")


class Clock:
    """The wall clock of a lab."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "offset"
        self.set(0)
        self.library = folder / "stepped_clock.so"
        command = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", f'-DOFFSET_FILE="{self._file}"']
        subprocess.run([*command, "-o", self.library, SOURCE, "-ldl"], check=True)

    def set(self, offset_s: int) -> None:
        """Set the clock to `offset_s` after the machine's clock."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("l", offset_s))


@pytest.fixture(scope="module")
def stepped() -> Iterator[tuple[Lab, Clock]]:
    """Start a lab whose programs all have the preloaded library."""
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    data = make_data(state)
    write_fragile_devices(data)
    (folder := state / "clock").mkdir()
    clock = Clock(folder)
    preload = [f"cp {clock.library} /etc/stepped_clock.so", "echo /etc/stepped_clock.so > /etc/ld.so.preload"]
    with (
        mount_namespace([Volume(Path("/etc"), 1, over=True)], preload) as place,
        running_lab(state, data, {}, place) as lab,
    ):
        yield lab, clock


def database_time(lab: Lab) -> float:
    run = Path(lab.environment["WQLAB_STATE"]) / "run"
    query = ["psql", "-h", str(run), "-d", "wqlab", "-XAtc", "SELECT extract(epoch FROM clock_timestamp())"]
    return float(subprocess.run(query, env=lab.environment, check=True, text=True, stdout=subprocess.PIPE).stdout)


def kill_lab_worker(lab: Lab) -> None:
    worker = Supervisor(Path(lab.environment["WQLAB_STATE"]) / "run/supervisor.sock").pids()["devices"]
    for process in (worker, *descendants(worker)):
        os.kill(process, signal.SIGKILL)


def test_clock_steps_change_no_verdict(stepped: tuple[Lab, Clock]) -> None:
    """Step forward, back, and back again, each during a boot; the lab worker dies after the last step."""
    lab, clock = stepped
    client = lab.client()
    equal = lab.submit("--mbox", str(NOOP), "--target", "xfs-fsync@fragile", "--blocks", "3")
    worse = lab.submit("--mbox", str(SERIES / "inverted.mbox"), "--target", "xfs-fsync@fragile", "--blocks", "2")
    steps, boots = [HOUR_S, 0, -HOUR_S], set[int | None]()
    for event in client.events(equal, give_up_s=900):
        if event.kind is EventKind.SAMPLES and event.boot_id not in boots and steps:
            boots.add(event.boot_id)
            clock.set(offset_s := steps.pop(0))
            assert abs(database_time(lab) - time.time() - offset_s) < 60
            if not steps:
                kill_lab_worker(lab)
    assert not steps, "the submission ended before the last step"
    lab.wqlab("watch", str(worse), codes=(0, 1))
    reports = [client.report(submission) for submission in (equal, worse)]
    assert [Ending.of(report) for report in reports] == [EQUAL, WORSE]
    assert [missing_or_repeated(client, report) for report in reports] == [{}, {}]
    wait_for_free_devices(lab)
