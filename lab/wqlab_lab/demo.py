"""Submit the demo's examples and print their reports, with the `wqlab` command as any user would."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from .paths import LabPaths

EXAMPLE = "kernels/examples/pwqs-by-pool.mbox"
SERIES_TARGET = "xfs-fsync@xeon-2s"
SETTINGS_TARGET = "dm-crypt-affinity@ryzen-3900x"
WAKE_SERIES = "kernels/examples/wake-inside-lock.mbox"
"""Takes back a change of Linux 7.3, the default tree, so that its effect is known from publications."""
MODELLED_TARGET = "queue-rate@modelled-xeon-2s-8c-1l3-1n"
MODELLED_SETTINGS = ("scope=cpu", "scope=cache")
"""A pool for each CPU, whose lock has no waiters, and one for all."""


def submit_to_emulated(paths: LabPaths) -> list[int]:
    """Submit a settings study and the example series to emulated devices; return the numbers of the submissions."""
    return [
        # One of the plan's three scenarios keeps each boot short, and without traced boots the study has ten.
        _submit(paths, "--settings-only", "--target", SETTINGS_TARGET, "--scenario", "HIGH", "--no-trace"),
        _submit(paths, "--mbox", str(paths.data / EXAMPLE), "--target", SERIES_TARGET),
    ]


def submit_to_modelled(paths: LabPaths) -> int:
    """Submit a series with a known effect to a modelled device; return the number of the submission.

    Its emulators use all cores, with the lowest priority: beside other devices it takes half as long again.
    """
    settings = [word for setting in MODELLED_SETTINGS for word in ("--setting", setting)]
    # Linking another layout of both kernels for each seed takes longer than the boots.
    layouts = ("--layouts", "1")
    return _submit(paths, "--mbox", str(paths.data / WAKE_SERIES), "--target", MODELLED_TARGET, *settings, *layouts)


def wait_for_model(paths: LabPaths, report: Callable[[str], None]) -> bool:
    """Wait until QEMU for modelled devices is built, passing its progress to `report`; return False on failure."""
    build = subprocess.Popen(
        ["python", "-u", "-m", "wqlab_bench.model.build_qemu"],
        env=paths.environment(),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    with build:
        # It prints nothing if it has nothing to do.
        for line in build.stdout or ():
            report(line.strip())
    return build.returncode == 0


def watch(paths: LabPaths, submission: int) -> int:
    """Show progress until the submission is finished; return its exit code."""
    return subprocess.run(["wqlab", "watch", str(submission)], env=paths.user_environment(), check=False).returncode


def print_report(paths: LabPaths, submission: int) -> None:
    subprocess.run(["wqlab", "report", str(submission)], env=paths.user_environment(), check=True)


def _submit(paths: LabPaths, *arguments: str) -> int:
    answer = subprocess.run(
        ["wqlab", "submit", "--json", *arguments],
        env=paths.user_environment(),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(json.loads(answer.stdout)["id"])
