"""The table of testplans/touches.yaml, and what it refers to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from data_folder import problems, write

from wqlab_contracts.loading import load_data
from wqlab_contracts.touches_file import FILE, notes

ROW = """\
    touches:
      - name: wq
        paths: [kernel/workqueue.c]
        plans:
          - plan: {plan}
            {more}
            asks: Is anything different here?
    """


def add_plan(folder: Path) -> None:
    text = (folder / "testplans/health-check/plan.yaml").read_text()
    text = text.replace("checks_health: true\n", "").replace("name: health-check", "name: measure")
    write(folder, "testplans/measure/plan.yaml", text)
    write(folder, "testplans/measure/check.sh", "echo fine\n")


def test_folder_without_the_file_proposes_nothing(folder: Path) -> None:
    assert load_data(folder).touches == ()


def test_file_is_loaded(folder: Path) -> None:
    add_plan(folder)
    write(folder, FILE, ROW.format(plan="measure", more="settings: [strict=1]"))
    (row,) = load_data(folder).touches
    assert row.plans[0].settings == ["strict=1"]
    assert notes(load_data(folder)) == []


def test_unknown_plan_is_a_note_and_no_problem(folder: Path) -> None:
    write(folder, FILE, ROW.format(plan="to-come", more="devices: [multi_l3]"))
    expected = f"{FILE}: no plan 'to-come': rows wq do not propose it"
    assert notes(load_data(folder)) == [expected]
    command = [sys.executable, "-m", "wqlab_contracts.loading", str(folder)]
    assert f"note: {expected}" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("plan", "more", "problem"),
    [
        ("health-check", "devices: []", f"{FILE}:5: touches[0].plans[0].plan: plan health-check is a health check"),
        ("measure", "settings: [strict=2]", f"{FILE}:6: touches[0].plans[0].settings[0]: setting 'strict=2'"),
        ("measure", "devices: [instrumented]", f"{FILE}:6: touches[0].plans[0].devices: plan measure marks no window"),
        ("measure", "device: [smt]", f"{FILE}:6: touches[0].plans[0].device"),
    ],
)
def test_mistakes_have_file_line_and_key(folder: Path, plan: str, more: str, problem: str) -> None:
    add_plan(folder)
    write(folder, FILE, ROW.format(plan=plan, more=more))
    (found,) = problems(folder)
    assert found.startswith(problem)


def test_row_defined_twice(folder: Path) -> None:
    add_plan(folder)
    head, *row = ROW.format(plan="measure", more="devices: []").rstrip().splitlines(keepends=True)
    write(folder, FILE, "".join([head, *row, "\n", *row]))
    assert problems(folder) == [f"{FILE}:8: touches[1].name: wq is defined twice"]
