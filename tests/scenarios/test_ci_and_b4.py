"""The GitHub Action and b4's check command, with a running lab and its kernel tree."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from wqlab_contracts.mails import mbox

from .conftest import EXAMPLE, INSTRUMENTED, ROOT, SERIES, Lab
from .user_git import Topic

pytestmark = pytest.mark.scenario
ACTION = ROOT / "deploy/ci/github"


def checkout(lab: Lab, folder: Path) -> tuple[Path, str]:
    """Return a repository of the lab's tree with one commit more, and the commit below it."""
    topic = Topic(lab, SERIES / "changes-a-comment.mbox", folder / "linux.git")
    clone = folder / "linux"
    command = ["git", "clone", "--quiet", "--shared", "--no-checkout", "--branch", "topic", topic.path, clone]
    subprocess.run(command, check=True)
    return clone, topic.base


def run_action(lab: Lab, folder: Path, temporary: Path, inputs: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the steps of action.yml as a runner does, and return the last one."""
    document = yaml.safe_load((ACTION / "action.yml").read_text())
    values = {f"inputs.{name}": each.get("default", "") for name, each in document["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in inputs.items()} | {"github.action_path": str(ACTION)}
    files = {name: str(temporary / name) for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for step in document["runs"]["steps"]:
        given = {name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found[1]], text)
                 for name, text in step.get("env", {}).items()}  # fmt: skip
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(temporary),
            "RUNNER_TEMP": str(temporary),
            **given,
            **files,
        }
        done = subprocess.run(
            [step["shell"], "-e", "-c", step["run"]], cwd=folder, env=environment, text=True, capture_output=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{step['name']}: {done.stdout}{done.stderr}"
    return done


def test_action_measures_the_commit_of_a_branch(lab: Lab, tmp_path: Path) -> None:
    folder, base = checkout(lab, tmp_path)
    inputs = {
        "url": lab.url, "token": lab.environment["WQLAB_TOKEN"], "base": base, "key": "run-1",
        "targets": "xfs-fsync@tiny",
    }  # fmt: skip
    done = run_action(lab, folder, tmp_path, inputs)
    number = int((tmp_path / "GITHUB_OUTPUT").read_text().strip().removeprefix("submission="))
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    assert f"{lab.url}/r/{number}" in summary
    assert "the kernels are byte-identical" in summary
    assert (folder / "wqlab-junit.xml").read_text().startswith("<?xml")
    assert [line for line in done.stdout.splitlines() if not line.startswith("::")] == []


def b4_check(lab: Lab, mail: str) -> tuple[list[dict[str, Any]], str]:
    """Return what `wqlab b4-check` answers and notes about a mail; it must pass."""
    done = subprocess.run(
        ["wqlab", "b4-check"], env=lab.environment, input=mail, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done
    return json.loads(done.stdout), done.stderr


def test_b4_gets_the_result_of_a_series_and_nothing_of_other_mails(lab: Lab, counted: int) -> None:
    lab.finish(counted)
    before = len(lab.client().submissions_page().items)
    *_, patch = mbox.parse_mails(EXAMPLE.read_text())
    (result,), _ = b4_check(lab, patch.text)
    assert (result["tool"], result["url"]) == ("wqlab", f"{lab.url}/r/{counted}")
    assert result["summary"].startswith(f"xfs-fsync on {INSTRUMENTED} (emulated): ")
    unseen = patch.text.replace("flush-lock-runs", "another").replace("Subject: ", "Subject: another ")
    found, note = b4_check(lab, unseen)
    assert (found, "the lab has not seen this mail" in note) == ([], True)
    assert len(lab.client().submissions_page().items) == before, "nothing is submitted"
