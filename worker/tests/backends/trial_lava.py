"""Start and stop a real LAVA server, with `lab/lava/run.sh`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from wqlab_lab.paths import free_port

RUN = Path(__file__).resolve().parents[3] / "lab" / "lava" / "run.sh"
START_TIMEOUT_S = 900.0
"""Most of this time is for building its root filesystem, the first time on a busy machine."""
PORT_COUNT = 4
"""Number of consecutive ports that LAVA uses, starting with its web server's."""


class LavaNotStarted(Exception):
    """LAVA did not start; the text has the end of its log."""


class TrialLava:
    """LAVA server with QEMU devices of the given names; its data in `state` survives a stop."""

    def __init__(self, state: Path, devices: Sequence[str]) -> None:
        state.mkdir(parents=True, exist_ok=True)
        (state / "devices").write_text("".join(f"{name}\n" for name in devices))
        self.state = state
        self.port = _first_free_port()
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
        """Token of a LAVA user who is not the lab's."""
        return (self.state / "other-token").read_text().strip()

    def start(self) -> None:
        """Start LAVA without waiting (see `wait`); the first start builds its root filesystem in about 2 minutes."""
        (self.state / "ready").unlink(missing_ok=True)
        with (self.state / "run.log").open("ab") as log:
            self._process = subprocess.Popen(
                # LAVA ends with this process, however that ends.
                ["setpriv", "--pdeathsig", "KILL", str(RUN), "serve", str(self.state), str(self.port)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def wait(self) -> None:
        """Wait until jobs can be submitted. Raises LavaNotStarted."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not (self.state / "ready").exists():
            # LAVA sends no event when it has started, so poll.
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise LavaNotStarted((self.state / "run.log").read_text(errors="replace")[-2000:])
            time.sleep(0.2)

    def stop(self) -> None:
        """Kill all of LAVA's processes at once, jobs included, as switching off its machine would."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop()
        subprocess.run([str(RUN), "remove", str(self.state)], check=True)


def _first_free_port() -> int:
    """Return the first of PORT_COUNT consecutive free ports."""
    while True:
        first = free_port(0)
        try:
            if all(free_port(first + more) == first + more for more in range(1, PORT_COUNT)):
                return first
        except (OSError, OverflowError):
            continue
