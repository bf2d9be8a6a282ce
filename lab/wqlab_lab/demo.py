"""The demo: what a newcomer runs first. It knows the lab only by the `wqlab` command, as any user does."""

from __future__ import annotations

import json
import subprocess

from .paths import Layout

EXAMPLE = "kernels/examples/flush-lock-runs.mbox"
SERIES_TARGET = "xfs-fsync@xeon-2s"
SETTINGS_TARGET = "dm-crypt-affinity@ryzen-3900x"


def submit_examples(layout: Layout) -> list[int]:
    """Submits the example series and a settings study; returns their submission ids."""
    return [
        # Six boots decide; one of the plan's three scenarios keeps each of them short.
        _submit(layout, "--settings-only", "--target", SETTINGS_TARGET, "--scenario", "HIGH"),
        _submit(layout, "--mbox", str(layout.data / EXAMPLE), "--target", SERIES_TARGET),
    ]


def watch(layout: Layout, submission: int) -> int:
    """Live progress until the submission ends; returns its exit code."""
    return subprocess.run(["wqlab", "watch", str(submission)], env=layout.user_environment(), check=False).returncode


def print_report(layout: Layout, submission: int) -> None:
    subprocess.run(["wqlab", "report", str(submission)], env=layout.user_environment(), check=True)


def _submit(layout: Layout, *arguments: str) -> int:
    answer = subprocess.run(
        ["wqlab", "submit", "--json", *arguments],
        env=layout.user_environment(),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(json.loads(answer.stdout)["id"])
