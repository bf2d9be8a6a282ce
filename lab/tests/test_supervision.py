"""The lab's processes are ended by a real supervisord."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wqlab_lab.paths import Layout
from wqlab_lab.services import Service, supervisor_config
from wqlab_lab.supervision import Supervisor, SupervisorError

DEAF = "trap '' TERM"
SLOW = "trap 'sleep 0.2; echo slow >> ended; exit' TERM"
QUICK = "trap 'echo quick >> ended; exit' TERM"
MURDERER = "trap 'kill -9 $PPID' TERM"


class Programs:
    """Under one supervisord."""

    def __init__(self, folder: Path) -> None:
        self.layout = Layout(folder, folder / "cache", folder / "state")
        self.layout.create()
        self.supervisor = Supervisor(self.layout.run / "supervisor.sock")
        self._ends: dict[str, int] = {}

    def start(self, stop_wait_s: int = 1000, **traps: str) -> None:
        """Returns when every program has set its trap."""
        state = self.layout.state
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
        config = self.layout.run / "supervisord.conf"
        config.write_text(supervisor_config(self.layout, programs))
        subprocess.run(["supervisord", "-c", config], check=True, cwd=state)
        self._ends["supervisord"] = os.pidfd_open(self.supervisor.pid())
        for name in traps:
            os.mkfifo(ready := state / f"{name}.ready")
            self.supervisor.start(name)
            self._ends[name] = os.pidfd_open(int(ready.read_text()))

    def left(self) -> set[str]:
        """A signal that was just sent may be on its way to supervisord."""
        select.select([self._ends["supervisord"]], [], [], 10)
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


def test_groups_end_one_after_the_other_and_supervisord_last(programs: Programs) -> None:
    programs.start(slow=SLOW, quick=QUICK)
    programs.supervisor.end(({"slow"}, {"quick"}), 30)
    assert not programs.left()
    assert (programs.layout.state / "ended").read_text() == "slow\nquick\n"


def test_the_programs_of_a_group_end_side_by_side(programs: Programs) -> None:
    programs.start(slow=SLOW, quick=QUICK)
    programs.supervisor.end(({"slow", "quick"},), 30)
    assert (programs.layout.state / "ended").read_text() == "quick\nslow\n"


def test_what_does_not_hear_is_killed_by_supervisord(programs: Programs) -> None:
    programs.start(stop_wait_s=1, deaf=DEAF)
    programs.supervisor.end(({"deaf"},), 30)
    assert not programs.left()


def test_a_program_that_does_not_end_is_named(programs: Programs) -> None:
    programs.start(deaf=DEAF)
    with pytest.raises(SupervisorError, match="deaf does not end"):
        programs.supervisor.end(({"deaf"},), 0.1)
    assert programs.left() == {"deaf"}, "and nobody starts it again"


def test_nobody_waits_for_a_supervisord_that_was_killed(programs: Programs) -> None:
    programs.start(murderer=MURDERER)
    with pytest.raises(SupervisorError, match=r"supervisord (has been killed|does not answer)"):
        programs.supervisor.end(({"murderer"},), 600)
    assert programs.left() == {"murderer"}
