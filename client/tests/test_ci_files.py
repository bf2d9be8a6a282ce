"""The GitHub Action and the GitLab component of deploy/ci, by running their steps against a lab as the runners do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from commandline import TOKEN
from example_views import VIEWS
from fakelab import FakeLab, Reply, Request
from report_examples import improvement

from wqlab_contracts.api.submissions import SubmissionRequest

ROOT = Path(__file__).parents[2]
CI = ROOT / "deploy/ci"
FINISHED = VIEWS[-1]


@pytest.fixture
def branch(tmp_path: Path) -> Path:
    """A repository whose branch has one commit more than main."""
    folder = tmp_path / "project"
    folder.mkdir()

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "base")
    git("checkout", "-q", "-b", "topic")
    (folder / "a.c").write_text("int a;\n")
    git("add", "a.c")
    git("commit", "-q", "-m", "wq: take one lock")
    return folder


@pytest.fixture
def measured(lab: FakeLab) -> dict[str, Any]:
    """Let the lab finish what is submitted, with the exit code in the returned dictionary."""
    ending: dict[str, Any] = {"exit_code": 0}

    def create(_: Request) -> Reply:
        lab.show(FINISHED.model_copy(update=ending))
        return Reply(201, VIEWS[0])

    def report(request: Request) -> Reply:
        if request.query.get("format") == "json":
            return Reply(body=improvement())
        return Reply(body=f"<{request.query['format']}>".encode(), content_type="text/plain")

    lab.answers[("POST", "/api/v1/submissions")] = create
    lab.answers[("GET", "/api/v1/submissions/12/report")] = report
    return ending


def run(
    command: str, folder: Path, environment: Mapping[str, str], shell: str = "bash"
) -> subprocess.CompletedProcess[str]:
    """Run a step as the runners do, in an environment of its own."""
    base = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder.parent),
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        [shell, "-e", "-c", command],
        cwd=folder,
        env={**base, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def request_of(lab: FakeLab) -> SubmissionRequest:
    (sent,) = [each for each in lab.requests if each.method == "POST"]
    return SubmissionRequest.model_validate_json(sent.body)


# --- GitHub -----------------------------------------------------------------------------------------------------------


class Action:
    """Runs the steps of action.yml: expressions are replaced in `env` only, files of the runner are real."""

    def __init__(self, folder: Path, inputs: Mapping[str, str]) -> None:
        self.document = yaml.safe_load((CI / "github/action.yml").read_text())
        self.folder, self.inputs = folder, inputs
        self.files = {name: folder.parent / name for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in self.files.values():
            file.touch()

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run the steps in order, and return the last; a failed one ends the job."""
        for step in self.document["runs"]["steps"]:
            assert "${{" not in step["run"], "an expression in a script lets an input run commands"
            environment = {name: self._value(text) for name, text in step.get("env", {}).items()}
            environment |= {name: str(file) for name, file in self.files.items()}
            environment["RUNNER_TEMP"] = str(self.folder.parent)
            done = run(step["run"], self.folder, environment, step["shell"])
            if done.returncode:
                break
        return done

    def _value(self, text: str) -> str:
        declared = self.document["inputs"]

        def replaced(match: re.Match[str]) -> str:
            name = match[1]
            if name == "github.action_path":
                return str(CI / "github")
            field = name.removeprefix("inputs.")
            assert field in declared, f"{name} is not declared"
            given = self.inputs.get(field, declared[field].get("default"))
            assert given is not None, f"{field} is required"
            return given

        return re.sub(r"\$\{\{ ([a-z._-]+) \}\}", replaced, text)


def action(lab: FakeLab, branch: Path, **more: str) -> Action:
    given = {"url": lab.url, "token": TOKEN, "base": "main", "key": "job-1"}
    return Action(branch, {**given, **{name.replace("_", "-"): value for name, value in more.items()}})


def test_action_submits_annotates_and_summarizes(lab: FakeLab, branch: Path, measured: dict[str, Any]) -> None:
    ran = action(lab, branch, targets="xfs-fsync@xeon-2s\nlocks@tiny", tree="linux-6.12")
    done = ran.run()
    assert done.returncode == 0, done.stderr
    request = request_of(lab)
    assert [(each.plan, each.device_type) for each in request.targets] == [("xfs-fsync", "xeon-2s"), ("locks", "tiny")]
    assert request.tree == "linux-6.12"
    assert request.series is not None and request.series.mbox is not None
    assert "Subject: [PATCH] wq: take one lock" in request.series.mbox.text
    (sent,) = [each for each in lab.requests if each.method == "POST"]
    assert sent.headers["idempotency-key"] == "job-1"
    assert "::warning file=kernel/workqueue.c,line=3839," in done.stdout
    assert ran.files["GITHUB_STEP_SUMMARY"].read_text() == "<markdown>\n"
    assert ran.files["GITHUB_OUTPUT"].read_text() == "submission=12\n"
    assert ran.files["GITHUB_PATH"].read_text().strip().endswith("/bin")
    assert (branch / "wqlab-junit.xml").read_text() == "<junit>\n"


def test_files_of_the_commits_are_neither_run_nor_followed(
    lab: FakeLab, branch: Path, measured: dict[str, Any]
) -> None:
    """A job for pull requests has the lab's token, so it must not run files of the commits that it measures."""
    outside = branch.parent / "outside"
    outside.write_text("before")
    for name in ("json", "subprocess"):
        (branch / f"{name}.py").write_text("open('owned', 'w')\n")
    for name in ("wqlab-series.mbox", "wqlab-report.md", "wqlab-annotations"):
        (branch / name).symlink_to(outside)
    assert action(lab, branch, targets="xfs-fsync@xeon-2s", tree="t").run().returncode == 0
    assert not (branch / "owned").exists()
    assert outside.read_text() == "before"


def test_annotations_of_the_commits_are_not_printed(lab: FakeLab, branch: Path, measured: dict[str, Any]) -> None:
    (branch / "wqlab-annotations").write_text("::stop-commands::x\n")
    done = action(lab, branch, base="nowhere").run()
    assert done.returncode == 2
    assert "::stop-commands" not in done.stdout


def test_installation_runs_nothing_of_the_commits(branch: Path) -> None:
    (branch / "venv.py").write_text("open('owned', 'w')\n")
    programs = branch.parent / "programs"
    programs.mkdir()
    (programs / "python3").write_text('#!/bin/sh\nexec /usr/bin/python3 "$@" --without-pip\n')
    (programs / "python3").chmod(0o755)
    target = branch.parent / "made"
    run(f"sh {CI / 'install.sh'} {target}", branch, {"PATH": f"{programs}:/usr/bin:/bin"})
    assert not (branch / "owned").exists()
    assert (target / "bin/python3").exists()


@pytest.mark.parametrize("code", [1, 3, 4])
def test_action_ends_with_the_result_and_still_annotates(
    lab: FakeLab, branch: Path, measured: dict[str, Any], code: int
) -> None:
    measured["exit_code"] = code
    done = action(lab, branch, targets="xfs-fsync@xeon-2s", tree="t").run()
    assert done.returncode == code
    assert "::warning file=" in done.stdout


def test_inputs_run_no_commands(lab: FakeLab, branch: Path, measured: dict[str, Any]) -> None:
    done = action(lab, branch, targets="$(touch owned) * `touch owned`", tree="t").run()
    assert done.returncode == 2
    assert not (branch / "owned").exists()
    assert lab.paths("POST") == []


def test_nothing_is_submitted_without_commits(lab: FakeLab, branch: Path, measured: dict[str, Any]) -> None:
    done = action(lab, branch, base="topic", targets="xfs-fsync@xeon-2s").run()
    assert (done.returncode, lab.requests) == (0, [])
    assert "nothing to measure" in done.stderr


def test_a_shallow_clone_is_told_what_to_do(lab: FakeLab, branch: Path, measured: dict[str, Any]) -> None:
    done = action(lab, branch, base="0" * 40, targets="xfs-fsync@xeon-2s").run()
    assert done.returncode == 2
    assert "fetch the whole history" in done.stderr


# --- GitLab -----------------------------------------------------------------------------------------------------------


def component(**inputs: str) -> dict[str, Any]:
    """Return the job of the component with its inputs, as GitLab replaces them before it reads the YAML."""
    text = (CI / "gitlab/wqlab.yml").read_text()
    declared = yaml.safe_load(text.partition("\n---\n")[0])["spec"]["inputs"]

    def replaced(match: re.Match[str]) -> str:
        field = match[1]
        assert field in declared, f"{field} is not declared"
        given = inputs.get(field, declared[field].get("default"))
        assert given is not None, f"{field} is required"
        return json.dumps(given)

    job: dict[str, Any] = yaml.safe_load(
        re.sub(r"\$\[\[ inputs\.([a-z-]+) \]\]", replaced, text.partition("\n---\n")[2])
    )
    return job["wqlab"]


def test_component_runs_and_leaves_its_reports(
    lab: FakeLab, branch: Path, tmp_path: Path, measured: dict[str, Any]
) -> None:
    source = tmp_path / "source"
    subprocess.run(["git", "init", "-q", "-b", "main", source], check=True)
    (source / "deploy/ci").mkdir(parents=True)
    for name in ("install.sh", "measure.sh"):
        (source / "deploy/ci" / name).write_text((CI / name).read_text())
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", source, "add", "."], check=True)
    subprocess.run(["git", "-C", source, *who, "commit", "-q", "-m", "x"], check=True)
    measured["exit_code"] = 1
    job = component(url=lab.url, source=str(source), targets="xfs-fsync@xeon-2s", tree="t")
    base = subprocess.run(["git", "-C", branch, "rev-parse", "main"], check=True, capture_output=True, text=True).stdout
    environment = {
        **job["variables"], "WQLAB_TOKEN": TOKEN, "CI_MERGE_REQUEST_DIFF_BASE_SHA": base.strip(),
        "CI_BUILDS_DIR": str(tmp_path), "CI_JOB_ID": "7", "CI_PROJECT_ID": "1", "CI_PIPELINE_ID": "5",
        "CI_JOB_NAME": "wqlab",
    }  # fmt: skip
    done = run("\n".join(job["script"]), branch, environment)
    assert done.returncode == 1, done.stderr
    (sent,) = [each for each in lab.requests if each.method == "POST"]
    assert sent.headers["idempotency-key"] == "1-5-wqlab"
    reports = job["artifacts"]["reports"]
    assert (branch / reports["junit"]).read_text() == "<junit>\n"
    quality = json.loads((branch / reports["codequality"]).read_text())
    assert quality[0]["location"] == {"path": "kernel/workqueue.c", "lines": {"begin": 3839}}
    assert all((branch / path).is_file() for path in job["artifacts"]["paths"])
