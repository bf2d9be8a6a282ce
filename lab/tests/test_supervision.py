"""Stop programs with a real supervisord."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wqlab_lab.paths import LabPaths
from wqlab_lab.services import Service, supervisor_config
from wqlab_lab.supervision import Supervisor, SupervisorError

STARTS = 5
"""supervisord by itself gives a program up after four failed starts."""

IGNORES_TERM = "trap '' TERM"
SLOW = "trap 'sleep 0.2; echo slow >> ended; exit' TERM"
QUICK = "trap 'echo quick >> ended; exit' TERM"
SUPERVISOR_KILLER = "trap 'kill -9 $PPID' TERM"


class Programs:
    """Programs under one supervisord."""

    def __init__(self, folder: Path) -> None:
        self.paths = LabPaths(folder, folder / "cache", folder / "state")
        self.paths.create()
        self.supervisor = Supervisor(self.paths.run / "supervisor.sock")
        self._ends: dict[str, int] = {}

    def start(self, stop_wait_s: int = 1000, **traps: str) -> None:
        """Start the programs and wait until each has set its trap."""
        state = self.paths.state
        programs = [
            Service(
                name,
                ["/bin/sh", "-c", f"{trap}; echo $$ > {name}.ready; while :; do sleep 60 & wait; done"],
                {},
                state,
                stop_wait_s=stop_wait_s,
            )
            for name, trap in traps.items()
        ]
        config = self.paths.run / "supervisord.conf"
        config.write_text(supervisor_config(self.paths, programs))
        subprocess.run(["supervisord", "-c", config], check=True, cwd=state)
        self._ends["supervisord"] = os.pidfd_open(self.supervisor.pid())
        for name in traps:
            os.mkfifo(ready := state / f"{name}.ready")
            self.supervisor.start(name)
            self._ends[name] = os.pidfd_open(int(ready.read_text()))

    def running(self) -> set[str]:
        """Return the programs that still run, after waiting for supervisord to end."""
        select.select([self._ends["supervisord"]], [], [])
        return self._ends.keys() - self._ended()

    def _ended(self) -> set[str]:
        ended = select.select(self._ends.values(), [], [], 0)[0]
        return {name for name, end in self._ends.items() if end in ended}

    def kill(self) -> None:
        for name in self._ends.keys() - self._ended():
            signal.pidfd_send_signal(self._ends[name], signal.SIGKILL)
        for end in self._ends.values():
            os.close(end)


@pytest.fixture
def programs() -> Iterator[Programs]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        found = Programs(Path(folder))
        yield found
        found.kill()


def test_groups_end_in_order_and_supervisord_last(programs: Programs) -> None:
    programs.start(slow=SLOW, quick=QUICK)
    programs.supervisor.end(({"slow"}, {"quick"}), 3600)
    assert not programs.running()
    assert (programs.paths.state / "ended").read_text() == "slow\nquick\n"


def test_programs_of_a_group_end_in_parallel(programs: Programs) -> None:
    programs.start(slow=SLOW, quick=QUICK)
    programs.supervisor.end(({"slow", "quick"},), 3600)
    assert (programs.paths.state / "ended").read_text() == "quick\nslow\n"


def test_program_that_ignores_sigterm_is_killed(programs: Programs) -> None:
    programs.start(stop_wait_s=1, ignoring=IGNORES_TERM)
    programs.supervisor.end(({"ignoring"},), 3600)
    assert not programs.running()


def test_program_that_does_not_end_is_named(programs: Programs) -> None:
    programs.start(ignoring=IGNORES_TERM)
    with pytest.raises(SupervisorError, match="ignoring does not end"):
        programs.supervisor.end(({"ignoring"},), 0.1)
    assert programs.running() == {"ignoring"}, "it is not restarted"


def test_killed_supervisord_is_not_waited_for(programs: Programs) -> None:
    programs.start(killer=SUPERVISOR_KILLER)
    with pytest.raises(SupervisorError, match=r"supervisord (has been killed|does not answer)"):
        programs.supervisor.end(({"killer"},), 600)
    assert programs.running() == {"killer"}


def test_program_that_cannot_start_for_a_while_comes_back(programs: Programs) -> None:
    state = programs.paths.state
    os.mkfifo(attempts := state / "attempts")
    command = ["/bin/sh", "-c", "echo start > attempts; test -e space && exec sleep 60"]
    config = programs.paths.run / "supervisord.conf"
    config.write_text(supervisor_config(programs.paths, [Service("store", command, {}, state)]))
    subprocess.run(["supervisord", "-c", config], check=True, cwd=state)
    try:
        programs.supervisor.start("store")
        for _ in range(STARTS):
            assert attempts.read_text() == "start\n"
        (state / "space").touch()
        assert attempts.read_text() == "start\n"
        assert programs.supervisor.pids()["store"]
    finally:
        programs.supervisor.end(({"store"},), 3600)
