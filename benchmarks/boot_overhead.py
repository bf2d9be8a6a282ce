"""Measure the phases of a boot: golden system, kexec, workload, and the remaining overhead.

    python benchmarks/boot_overhead.py        # after `make demo`, as the lab's user

Reads the boots of the running lab through its API, and the steps in each session's log. The aim is an overhead
under 2 s a boot on an idle machine. Prints a line per boot and the medians.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from statistics import median

from wqlab_client import Client
from wqlab_contracts.api.runs import BootView
from wqlab_contracts.enums import Arm

COLUMNS = ("golden_s", "kexec_s", "workload_s", "overhead_s", "upload_s", "verify_s")


def main() -> int:
    state = Path(os.environ["WQLAB_STATE"])
    if not (state / "run/api.port").exists():
        print("no lab is running; start one with `make demo`", file=sys.stderr)
        return 2
    url = f"http://127.0.0.1:{(state / 'run/api.port').read_text()}"
    client = Client(url, (state / "keys/admin.token").read_text().strip())
    rows = []
    for submission in client.submissions():
        for run in client.submission(submission.id).runs:
            steps = logged_steps(state / "log/sessions", run.id)
            rows += [row(run.device_type, boot, steps) for boot in run.boots if boot.valid]
    if not rows:
        print("the lab has no finished boots yet", file=sys.stderr)
        return 2
    print(f"{'device':14}{'arm':10}" + "".join(f"{name:>12}" for name in COLUMNS))
    for device_type, arm, values in rows:
        print(f"{device_type:14}{arm:10}" + "".join(f"{value:12.2f}" for value in values))
    print(f"{'median':24}" + "".join(f"{median(column):12.2f}" for column in zip(*(r[2] for r in rows), strict=True)))
    return 0


def row(
    device_type: str, boot: BootView, steps: dict[tuple[int, str], dict[str, float]]
) -> tuple[str, Arm, list[float]]:
    step = steps.get((boot.block, boot.arm), {})
    measured = [
        boot.golden_s,
        boot.kexec_s,
        boot.workload_s,
        boot.overhead_s,
        step.get("upload_s"),
        step.get("verify_s"),
    ]
    return device_type, boot.arm, [float("nan") if value is None else value for value in measured]


def logged_steps(folder: Path, run_id: int) -> dict[tuple[int, str], dict[str, float]]:
    """Return (block, arm) -> the session's log entry of the boot's verification, of the last attempt."""
    found = {}
    for path in sorted(folder.glob(f"run-{run_id}-*.log")):
        for line in path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry.get("event") == "boot verified":
                found[entry["block"], entry["arm"]] = entry
    return found


if __name__ == "__main__":
    sys.exit(main())
