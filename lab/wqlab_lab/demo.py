"""Submit the demo's examples and print their reports, with the `wqlab` command as any user would."""

from __future__ import annotations

import json
import subprocess

from .paths import LabPaths

EXAMPLE = "kernels/examples/pwqs-by-pool.mbox"
SERIES_TARGET = "xfs-fsync@xeon-2s"
SETTINGS_TARGET = "dm-crypt-affinity@ryzen-3900x"
COUNTED_TARGET = "xfs-fsync@instrumented-2s"


def submit_to_emulated(paths: LabPaths) -> list[int]:
    """Submit a settings study and the example series to emulated devices; return the numbers of the submissions."""
    return [
        # One of the plan's three scenarios keeps each boot short, and without traced boots the study has ten.
        _submit(paths, "--settings-only", "--target", SETTINGS_TARGET, "--scenario", "HIGH", "--no-trace"),
        _submit(paths, "--mbox", str(paths.data / EXAMPLE), "--target", SERIES_TARGET),
    ]


def submit_to_instrumented(paths: LabPaths) -> int:
    """Submit the example series to an instrumented device; return the number of the submission.

    Its emulators use all cores, with the lowest priority: beside other devices it takes half as long again.
    """
    # A short window is enough to see where the counts come from.
    window = ("--param", "file_kib=640")
    return _submit(paths, "--mbox", str(paths.data / EXAMPLE), "--target", COUNTED_TARGET, *window)


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
