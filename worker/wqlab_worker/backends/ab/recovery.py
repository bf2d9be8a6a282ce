"""Prepare a machine for a kernel that hangs or panics: its watchdog, and the log that its firmware keeps (pstore)."""

from __future__ import annotations

import shlex
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files

from ..answering_system import LOGIN_S, run
from ..console_tap import Wakeup
from ..ssh import SshConnection

FIRST_WATCHDOG_S = 300
"""Timeout in seconds of the watchdog during the first kexec. The distribution ends its services in this time too."""
START_WATCHDOGS = "wqlab.watchdog=1"
"""Kernel argument with which init starts the watchdogs. Whoever boots such a kernel must feed them."""
WATCHDOG_S = 180
"""Timeout of the watchdog in seconds under a kernel under test. The kernel argument watchdog.stop_on_reboot=0 keeps it
running during the next kexec, so that a kernel must come up within this time."""
_FEED = (
    f"status=1; for dog in /dev/watchdog[0-9]*; do "
    f"[ -c $dog ] && watchdog -T {WATCHDOG_S} -t {WATCHDOG_S // 4} $dog && status=0; done; exit $status"
)
"""All are fed: one of them runs since the first kexec, and another kernel may number them otherwise."""
BEAT_S = 30.0
"""Interval in seconds of the lines that say that this program and the network still work."""
_GUARD = f"busybox sh -c 'while read -t {4 * BEAT_S:.0f} _; do :; done; killall -9 watchdog'"
LOAD_S = 180.0
"""Longest time in seconds to load and unload drivers on a busy machine."""
_ARM, _DISARM = ((files(__package__) / "onboard" / f"{each}_watchdog.sh").read_text() for each in ("arm", "disarm"))
_LIST = "find /sys/fs/pstore /var/lib/systemd/pstore -type f -name 'dmesg*' 2>/dev/null"
"""systemd-pstore moves logs from the first folder to the second, where it joins their parts as dmesg.txt."""


def arm_watchdog(ssh: SshConnection, wakeup: Wakeup, modules: Sequence[str]) -> tuple[str, str]:
    """Start a hardware watchdog on the distribution. It keeps running during kexec, and resets a machine that hangs.

    `modules`: drivers that the kernels under test have too, because those kernels must feed the watchdog. Return the
    driver and an empty text, or an empty text and the reason why no watchdog runs.
    """
    command = shlex.join(["sh", "-s", str(FIRST_WATCHDOG_S), *modules])
    answer = run(ssh, wakeup, command, LOAD_S, _ARM.encode())
    if answer is None:
        return "", f"its drivers were not loaded in {LOAD_S:.0f} s"
    if answer.status:
        return "", answer.stderr_text.strip().rpartition("\n")[2]
    return answer.text.strip().rpartition("\n")[2], ""


def feed_watchdog(ssh: SshConnection, wakeup: Wakeup) -> bool:
    """Let the lab's system start and feed the watchdog; return False if there is none."""
    answer = run(ssh, wakeup, _FEED, LOGIN_S)
    return answer is not None and not answer.status


def disarm_watchdog(ssh: SshConnection, wakeup: Wakeup, module: str) -> None:
    """Feed a watchdog that `arm_watchdog` started until the machine restarts: the kernel under test does not start."""
    run(ssh, wakeup, shlex.join(["sh", "-s", str(FIRST_WATCHDOG_S), module]), LOAD_S, _DISARM.encode())


def kept_logs(ssh: SshConnection, wakeup: Wakeup) -> set[str]:
    """Return the paths of the crash logs on the machine."""
    answer = run(ssh, wakeup, _LIST, LOGIN_S)
    return set(answer.text.split()) if answer is not None else set()


def new_log(ssh: SshConnection, wakeup: Wakeup, known: set[str]) -> bytes:
    """Return the log of a crash that is not in the files `known`, without the levels of its lines; empty if none."""
    found = kept_logs(ssh, wakeup) - known
    # The last part of a log has the smallest number.
    names = sorted((each for each in found if each.endswith(".txt")), reverse=True) or sorted(found, reverse=True)
    if not names:
        return b""
    answer = run(ssh, wakeup, f"sed 's/^<[0-9]*>//' {shlex.join(names)}", LOGIN_S)
    return answer.stdout if answer is not None else b""


class Guard:
    """Stops the feeding of the watchdog once this program or the network of the machine is gone for some minutes, so
    that the machine restarts into its distribution then too."""

    def __init__(self, ssh: SshConnection) -> None:
        self._process = ssh.stream(_GUARD, subprocess.PIPE)
        self._ended = threading.Event()
        threading.Thread(target=self._beat, name="watchdog", daemon=True).start()

    def end(self) -> None:
        """Stop. The watchdog is not fed for long after that."""
        self._ended.set()
        self._process.kill()
        self._process.wait()

    def _beat(self) -> None:
        assert self._process.stdin  # noqa: S101 - a pipe
        with suppress(BrokenPipeError):
            while not self._ended.wait(BEAT_S):
                self._process.stdin.write(b"\n")
                self._process.stdin.flush()
