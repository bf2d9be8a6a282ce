"""Run functions of the plans' scripts without a device."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from wqlab_contracts.plan_file import read_plan
from wqlab_contracts.specs import TestPlan
from wqlab_worker.measure.collect import Records, read_records

PLANS = Path(__file__).parents[3] / "testplans"
NAMES = sorted(path.parent.name for path in PLANS.glob("*/plan.yaml"))
SHELL = shutil.which("dash") or "/bin/sh"
AWKS = ["/usr/bin/mawk", "busybox awk"]


@functools.cache
def plan(name: str) -> TestPlan:
    document = read_plan(PLANS / name / "plan.yaml", name)
    found = document.validate_as(TestPlan)
    assert found is not None, document.problems
    return found


def script(name: str) -> Path:
    return PLANS / (plan(name).files_of or name) / plan(name).script


def call(name: str, command: str, tmp_path: Path, **environment: str) -> Records:
    """Run `command` with the functions of a plan's script; the tracer is a folder with recorded text."""
    folder = tmp_path / "plan"
    folder.mkdir(exist_ok=True)
    for common in ("beside-works", "device", "dm-crypt", "events", "knobs", "steady-state", "wakeups"):
        shutil.copy(PLANS / "common" / f"{common}.sh", folder)
    body, dispatch = script(name).read_text().split("\ncase ${1:-} in\n")
    assert "setup|measure|teardown" in dispatch
    (folder / "functions.sh").write_text(f"{body}\n{command}\n")
    result = subprocess.run(
        [SHELL, folder / "functions.sh"],
        env={
            "PATH": "/usr/sbin:/usr/bin:/bin",
            "TRACING": str(tmp_path / "tracing"),
            "WORK": str(tmp_path / "work"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return read_records(result.stdout)


def trace(tmp_path: Path, text: str, cpu_files: dict[int, str] | None = None) -> None:
    folder = tmp_path / "tracing"
    folder.mkdir()
    (folder / "trace").write_text(text)
    for cpu, lines in (cpu_files or {}).items():
        (folder / "per_cpu" / f"cpu{cpu}").mkdir(parents=True)
        (folder / "per_cpu" / f"cpu{cpu}" / "trace").write_text(lines)
