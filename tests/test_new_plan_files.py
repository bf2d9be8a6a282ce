"""The files that `wqlab plans new NAME` creates pass the checks and tests of the checkout as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wqlab_client.new_plan import LONGEST_NAME, create
from wqlab_contracts.loading import load_data

ROOT = Path(__file__).resolve().parents[1]
NAME, MODULE = "futex-wake", "futex_wake"
COPIED = ("contracts", "docs", "testplans", "worker", "device-types", "kernels", "intake")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the parts of the checkout that a plan concerns, with a new plan."""
    folder = tmp_path_factory.mktemp("checkout")
    unused = shutil.ignore_patterns("__pycache__", ".*")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=unused, symlinks=True)
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, folder / name)
    create(folder, NAME)
    return folder


def run(checkout: Path, *command: str) -> None:
    """Run a program with the modules of the copied checkout. If it fails, its output is in the assertion."""
    path = os.pathsep.join(str(checkout / package) for package in ("contracts", "worker"))
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=checkout, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def python_files(checkout: Path) -> list[str]:
    return [str(path) for path in sorted(checkout.rglob(f"*{MODULE}.py"))]


def test_new_python_files_are_formatted_and_clean(checkout: Path) -> None:
    assert len(python_files(checkout)) == 2
    run(checkout, "ruff", "check", "--no-cache", *python_files(checkout))
    run(checkout, "ruff", "format", "--no-cache", "--check", *python_files(checkout))


@pytest.mark.parametrize("name", ["a", "w" * LONGEST_NAME, "w-" * (LONGEST_NAME // 2 - 1) + "ww"])
def test_python_files_of_the_shortest_and_the_longest_names_are_formatted(tmp_path: Path, name: str) -> None:
    assert len(name) in (1, LONGEST_NAME)
    shutil.copytree(ROOT / "testplans/skeleton", tmp_path / "testplans/skeleton")
    (tmp_path / "worker/wqlab_worker/measure/parsers").mkdir(parents=True)
    (tmp_path / "worker/tests/measure/parsers/recorded").mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    created = [str(path) for path in create(tmp_path, name) if path.suffix == ".py"]
    assert len(created) == 2
    run(tmp_path, "ruff", "check", "--no-cache", *created)
    run(tmp_path, "ruff", "format", "--no-cache", "--check", *created)


def test_new_script_passes_shellcheck(checkout: Path) -> None:
    script = checkout / "testplans" / NAME / f"{NAME}.sh"
    subprocess.run(["shellcheck", "-x", "-P", "SCRIPTDIR", script], check=True)


def test_new_plan_is_loaded(checkout: Path) -> None:
    data = load_data(checkout)
    assert NAME in data.plans and "skeleton" not in data.plans
    assert {"README.md", "device.sh", f"{NAME}.sh"} <= data.plan_files(NAME).keys()


def test_new_plan_passes_its_test_and_those_of_every_plan(checkout: Path) -> None:
    run(
        checkout, "pytest", "-q", "-p", "no:cacheprovider", "-k", f"{NAME} or {MODULE} or documentation",
        "worker/tests/plans", f"worker/tests/measure/parsers/test_{MODULE}.py",
    )  # fmt: skip


@pytest.mark.nightly  # reads the worker's modules for a minute
def test_new_parser_has_types(checkout: Path) -> None:
    cache = str(checkout / "mypy")
    run(checkout, "mypy", "--cache-dir", cache, f"worker/wqlab_worker/measure/parsers/{MODULE}.py")
