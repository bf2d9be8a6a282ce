"""A real LAVA beside a lab, for tests and trials: `lab/lava/run.sh` started and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from .paths import free_port

RUN = Path(__file__).resolve().parents[1] / "lava" / "run.sh"
START_S = 900.0
"""Most of it is for making its root, the first time on a busy machine."""
PORTS = 4
"""That LAVA takes, from its web server's on."""


class LavaNotStarted(Exception):
    """The text has LAVA's own last words."""


class TrialLava:
    """LAVA with QEMU devices of these names; what it keeps is in `state`, so that it can be stopped and started."""

    def __init__(self, state: Path, devices: Sequence[str]) -> None:
        state.mkdir(parents=True, exist_ok=True)
        (state / "devices").write_text("".join(f"{name}\n" for name in devices))
        self.state = state
        self.port = _free_ports()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token_file(self) -> Path:
        return self.state / "token"

    @property
    def token(self) -> str:
        return self.token_file.read_text().strip()

    @property
    def other_token(self) -> str:
        """Of a LAVA user that has nothing to do with us."""
        return (self.state / "other-token").read_text().strip()

    def start(self) -> None:
        """Returns at once; `wait` for it. Making its root takes two minutes the first time."""
        (self.state / "ready").unlink(missing_ok=True)
        with (self.state / "run.log").open("ab") as log:
            self._process = subprocess.Popen(
                # Whatever becomes of this process, LAVA does not outlive it.
                ["setpriv", "--pdeathsig", "KILL", str(RUN), "serve", str(self.state), str(self.port)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def wait(self) -> None:
        """Until jobs can be submitted. Raises LavaNotStarted."""
        deadline = time.monotonic() + START_S
        while not (self.state / "ready").exists():
            # Its start has no event for others: ask.
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise LavaNotStarted((self.state / "run.log").read_text(errors="replace")[-2000:])
            time.sleep(0.2)

    def stop(self) -> None:
        """Like a machine that is switched off: everything of it ends at once, jobs too."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop()
        subprocess.run([str(RUN), "remove", str(self.state)], check=True)


def _free_ports() -> int:
    """The first of PORTS that follow each other."""
    while True:
        first = free_port(0)
        try:
            if all(free_port(first + more) == first + more for more in range(1, PORTS)):
                return first
        except (OSError, OverflowError):
            continue
