"""The command against the real server and database, with a worker whose results each test chooses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from bundles import read_files, resigned, write_files
from commandline import CommandResult, Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.lab import LabUnderTest, ScriptedWorker, failed, oid, passing_apply
from wqlab_client import Client, RequestRefused
from wqlab_contracts.api.report import Report
from wqlab_contracts.api.submissions import SubmissionView
from wqlab_contracts.enums import Arm, ArtifactKind, EventKind, Outcome
from wqlab_contracts.messages import ApplyJob, ApplyResult

pytestmark = pytest.mark.integration

SERIES = ("--git", "https://git.example.org/dev/linux.git", "--ref", "flush-locks", "--tree", "lab-tree")


def ask_json(ask: Wqlab, *arguments: str) -> Any:
    ended = ask(*arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def submit_and_wait(lab: LabUnderTest, url: str, home: Path, *arguments: str) -> CommandResult:
    """Run `wqlab submit --wait` in another process, while this process does the lab's work."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "WQLAB_URL": url, "WQLAB_TOKEN": lab.token}
    process = subprocess.Popen(
        [sys.executable, "-c", "from wqlab_client.cli import main; main()", "submit", *arguments, "--wait"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    assert first == f"submission 1 at {url}\n", first + process.stderr.read()
    lab.mark_all_good()
    lab.until_idle()
    out, err = process.communicate()
    return CommandResult(process.returncode, out, first + err)


def test_submission_from_submit_to_report(
    real_lab: LabUnderTest,
    url: str,
    ask: Wqlab,
    home: Path,
    tmp_path: Path,
) -> None:
    ended = submit_and_wait(real_lab, url, home, *SERIES, "--target", "locks@device", "--blocks", "2")
    assert ended.code == 0, ended.err
    log = [line[10:] for line in ended.err.splitlines()[1:]]
    assert "tree lab-tree; locks on device" in log[0]
    assert any("apply: passed" in line for line in log)
    assert sum("(baseline x86_64 measure): passed" in line for line in log) == 1
    assert any("2/2 blocks" in line and "A B" in line and "B A" in line for line in log)
    assert log[-1] == "finished: passed; primary comparisons: improvement 1"
    assert "33" in ended.out and "5" in ended.out and "locks_per_flush" in ended.out

    (row,) = ask_json(ask, "list", "--plan", "locks", "--outcome", "passed", "-q", "fewer locks")["items"]
    assert (row["id"], row["owner"], row["verdicts"]) == (1, "dev", {"improvement": 1})
    assert ask_json(ask, "list", "--plan", "affinity")["items"] == []
    assert "workqueue: take fewer locks" in ask("list").out

    view = SubmissionView.model_validate(ask_json(ask, "show", "1"))
    assert (view.outcome, view.exit_code) == (Outcome.PASSED, 0)
    assert "2/2 blocks" in ask("show", "1").out

    report = Report.model_validate(ask_json(ask, "report", "1"))
    (primary,) = [c for c in report.targets[0].comparisons if c.metric == "locks_per_flush"]
    assert (primary.verdict, primary.baseline.mean, primary.candidate.mean) == ("improvement", 33, 5)  # type: ignore[union-attr]
    assert ask("report", "1").out == ended.out
    junit = tmp_path / "junit.xml"
    assert ask("report", "1", "--format", "junit", "-o", str(junit)).code == 0
    assert ElementTree.parse(junit).getroot().tag in {"testsuites", "testsuite"}
    assert "improvement" in ask("report", "1", "--format", "markdown").out.lower()
    assert ask("report", "1", "--format", "html").out.lower().startswith("<!doctype html")

    run = view.runs[0]
    file = tmp_path / "samples.csv"
    assert ask("samples", str(run.id), "-o", str(file)).code == 0
    offline = ask("compare", str(file))
    assert offline.code == 0
    assert "improvement" in offline.out.lower()
    assert len(ask_json(ask, "samples", str(run.id))) == file.read_text().count("\n") - 1
    assert [boot["block"] for boot in ask_json(ask, "console", str(run.id))] == [0, 0, 1, 1]
    assert ask("console", str(run.id)).code == 0
    assert "apply: passed" in ask("logs", "1").out

    events = [json.loads(line) for line in ask("watch", "1", "--json").out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert EventKind.REPORT_READY in {event["kind"] for event in events}
    last = ask("watch", "1", "--json", "--since", str(len(events)))
    assert (last.code, last.out) == (0, "")


def test_series_that_does_not_compile_exits_with_3(
    real_lab: LabUnderTest,
    url: str,
    home: Path,
) -> None:
    from wqlab_contracts.enums import ErrorKind
    from wqlab_contracts.messages import BuildJob, BuildResult

    passing = real_lab.worker.on_build

    def on_build(job: BuildJob, worker: Any) -> BuildResult:
        if job.trusted:
            return passing(job, worker)
        return BuildResult(
            outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "kernel/workqueue.c does not compile")
        )

    real_lab.worker.on_build = on_build
    ended = submit_and_wait(real_lab, url, home, *SERIES, "--target", "locks@device")
    assert ended.code == 3, ended.err
    assert "the series or request: kernel/workqueue.c does not compile" in ended.err
    assert "does not compile" in ended.out


def test_slower_candidate_exits_with_1(real_lab: LabUnderTest, url: str, home: Path) -> None:
    real_lab.worker.value = lambda arm, *_: 97.0 if arm is Arm.CANDIDATE else 33.0
    ended = submit_and_wait(real_lab, url, home, *SERIES, "--target", "locks@device")
    assert ended.code == 1, ended.err
    assert "primary comparisons: regression 1" in ended.err


def test_settings_study_runs_the_given_settings(real_lab: LabUnderTest, url: str, home: Path) -> None:
    ended = submit_and_wait(
        real_lab, url, home, "--settings-only", "--tree", "lab-tree", "--target", "affinity@single",
        "--setting", "scope=cache", "--setting", "scope=system", "--blocks", "2",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert "2/2 blocks  A  A" in ended.err
    assert real_lab.runs(1)[0].id


def test_refused_request_names_each_mistake(ask: Wqlab) -> None:
    ended = ask("submit", *SERIES[:4], "--tree", "linux", "--target", "lock@device", "--target", "locks@bord")
    assert ended.code == 2
    lines = ended.err.splitlines()
    assert lines[0] == "wqlab: error: submit: the server refused the request: 3 mistakes"
    assert [line.split(":")[0] for line in lines[1:]] == ["  /tree", "  /targets/0/plan", "  /targets/1/device_type"]


def test_repeated_idempotency_key_creates_one_submission(ask: Wqlab) -> None:
    again = [ask("submit", *SERIES, "--target", "locks@device", "--idempotency-key", "job-1") for _ in range(3)]
    assert {ended.out for ended in again} == {"submission 1\n"}
    other = ask("submit", *SERIES, "--target", "locks@single", "--idempotency-key", "job-1")
    assert other.code == 2
    assert "was used for another request" in other.err
    assert ask("submit", *SERIES, "--target", "locks@device").out == "submission 2\n"


def test_cancel_and_retry_print_the_new_state(ask: Wqlab, real_lab: LabUnderTest) -> None:
    assert ask("submit", *SERIES, "--target", "locks@device").code == 0
    assert ask("retry", "1").code == 2
    assert ask("cancel", "1").code == 0
    real_lab.until_idle()
    assert ask_json(ask, "show", "1")["request"]["targets"][0]["plan"] == "locks"
    ended = ask("watch", "1")
    assert "canceled" in ended.out
    assert ask("retry", "1").out.startswith("submission 2: ")
    ended = ask("cancel", "99")
    assert ended.code == 2
    assert "no submission 99" in ended.err


def test_lab_commands_show_devices_plans_and_trees(ask: Wqlab, url: str, real_lab: LabUnderTest) -> None:
    assert ask("devices").out.splitlines()[0].split() == [
        "NAME",
        "TYPE",
        "LAB",
        "HEALTH",
        "CHECKED",
        "ACTIVITY",
        "REASON",
    ]
    names = {device["name"] for device in ask_json(ask, "devices")}
    assert names == {"device-1", "device-2", "single-1"}
    assert ask("devices", "quarantine", "single-1", "--reason", "console mute").out.startswith("single-1: quarantined")
    assert "console mute" in ask("devices", "show", "single-1").out
    assert ask_json(ask, "devices", "release", "single-1")["health"] == "unknown"
    assert "4 CPUs: 1 package, 2 L3 domains, 4 cores" in ask("devices", "types").out
    assert "scope: system, cache, cpu" in ask("plans", "affinity").out
    assert ask("plans", "locks", "--script").out == "#!/bin/sh\n"
    assert "https://git.example.org/linux.git" in ask("trees").out
    with Client(url, real_lab.token) as client:
        assert client.device("device-1").lab == "local"
        with pytest.raises(RequestRefused, match="device-9"):
            client.device("device-9")


def test_wrong_token_error_names_login(wqlab: Wqlab, url: str) -> None:
    ended = wqlab("--url", url, "--token", "wql_wrong", "list")
    assert ended.code == 2
    assert "wqlab login" in ended.err


def test_pin_and_unpin_print_the_new_state(ask: Wqlab, real_lab: LabUnderTest) -> None:
    real_lab.submit("locks@single")
    assert ask("pin", "1").out == "submission 1: pinned by dev; its files are kept until it is unpinned\n"
    assert ask("pin", "1", "--json").code == 0
    assert "not pinned" in ask("unpin", "1").out
    assert ask("pin", "99").code != 0


# --- bundles ------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(real_lab: LabUnderTest, ask: Wqlab, tmp_path: Path) -> Path:
    """The bundle of a finished submission, as `wqlab bundle` saves it."""
    series = (Path(__file__).parents[2] / "kernels/examples/dio-done-unbound.mbox").read_bytes()

    def apply_and_keep_series(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
        mbox = worker.upload(ArtifactKind.SERIES, "series.mbox", series)
        return passing_apply(job, worker).model_copy(update={"series_mbox": mbox})

    real_lab.worker.on_apply = apply_and_keep_series
    real_lab.mark_all_good()
    real_lab.finished(real_lab.submit("locks@device"))
    file = tmp_path / "evidence.zip"
    ended = ask("bundle", "1", "-o", str(file))
    assert ended.code == 0, ended.err
    assert f"check it with `wqlab replay {file}`" in ended.err
    return file


def test_bundle_is_replayed_offline(ask: Wqlab, wqlab: Wqlab, url: str, saved: Path, tmp_path: Path) -> None:
    key = tmp_path / "lab.pub"
    key.write_text(ask("lab-key").out)
    ended = wqlab("--url", "http://127.0.0.1:1", "replay", str(saved))
    assert ended.code == 0, ended.err
    assert "signature  valid for key SHA256:" in ended.out
    assert "not checked whose key it is: --key FILE|URL does" in ended.out
    assert "locks on device\n" in ended.out
    assert "  agrees    flush locks_per_flush: improvement" in ended.out
    assert "checks agree: Better: locks per flush 33 -> 5 on device (emulated)." in ended.out
    for source in (str(key), url):
        ended = wqlab("replay", str(saved), "--key", source)
        assert (ended.code, ", the key of --key" in ended.out) == (0, True)
    document = json.loads(wqlab("replay", str(saved), "--key", str(key), "--json").out)
    assert (document["agrees"], document["key_is_known"], document["repeated"]) == (True, True, None)
    assert {check["result"] for check in document["checks"]} == {"agrees"}


def test_tampered_bundles_are_noticed(wqlab: Wqlab, saved: Path, tmp_path: Path, signing_key: Path) -> None:
    """Sample, report and signature; a change that is signed again is found by the samples or by the key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    files = read_files(saved)
    (samples,) = [name for name in files if name.endswith("/samples.csv")]
    path = tmp_path / "changed.zip"
    changes = {
        samples: files[samples].replace(b",5.0\n", b",9.0\n"),
        "report.json": files["report.json"].replace(b'"improvement"', b'"regression" '),
    }
    for name, content in changes.items():
        assert len(content) == len(files[name])
        ended = wqlab("replay", str(write_files(path, files | {name: content})))
        assert (ended.code, f"{name} was changed: its SHA-256 is not the one in the manifest" in ended.err) == (2, True)
        write_files(path, resigned(files | {name: content}, signing_key))
        ended = wqlab("replay", str(path))
        assert (ended.code, "checks differ: do not rely on the report" in ended.out) == (1, True)
        assert "  differs   flush locks_per_flush: " in ended.out
        assert json.loads(wqlab("replay", str(path), "--json").out)["agrees"] is False
    forged = write_files(path, resigned(files, tmp_path / "other"))
    assert wqlab("replay", str(forged)).code == 0
    ended = wqlab("replay", str(forged), "--key", f"{signing_key}.pub")
    assert (ended.code, "signed by SHA256:" in ended.err, ended.out) == (2, True, "")
    broken = files["manifest.json"].replace(b"lab.test", b"bad.test")
    ended = wqlab("replay", str(write_files(path, files | {"manifest.json": broken})))
    assert (ended.code, "the manifest was changed after it was signed" in ended.err) == (2, True)
    del files["manifest.json.sig"]
    ended = wqlab("replay", str(write_files(path, files)))
    assert (ended.code, "no manifest.json.sig" in ended.err) == (2, True)


def test_measurements_are_repeated_in_the_reviewers_lab(
    real_lab: LabUnderTest,
    url: str,
    home: Path,
    saved: Path,
) -> None:
    """Here the reviewer's lab is the one that signed, which the command says."""

    def repeat() -> CommandResult:
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "WQLAB_URL": url, "WQLAB_TOKEN": real_lab.token}
        process = subprocess.Popen(
            [sys.executable, "-c", "from wqlab_client.cli import main; main()", "replay", str(saved), "--run"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        lines = []
        while not lines or "repeats the measurements" not in lines[-1]:
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        real_lab.until_idle()
        out, err = process.communicate()
        return CommandResult(process.returncode, out, "".join(lines) + err)

    ended = repeat()
    assert ended.code == 0, ended.err
    assert "this lab signed the bundle: its repetition is no independent evidence" in ended.err
    again = ended.out.partition("repeated in your lab")[2]
    assert "in the bundle improvement (33 -> 5 locks, n=2); repeated improvement (33 -> 5 locks, n=2)" in again
    assert "throughput" not in again, "an emulated device's speed is no evidence"
    repeated = real_lab.submission(2).request
    assert repeated.targets == real_lab.submission(1).request.targets
    assert repeated.series is not None
    assert repeated.series.mbox is not None
    assert f"\nbase-commit: {oid('base')}\n" in repeated.series.mbox.text

    real_lab.worker.value = lambda arm, setting, metric, block: 33.0
    ended = repeat()
    assert (ended.code, "  differs   flush locks_per_flush: " in ended.out) == (1, True)


def test_repetition_without_a_lab_says_what_to_install(wqlab: Wqlab, saved: Path) -> None:
    ended = wqlab("--url", "http://127.0.0.1:1", "replay", str(saved), "--run")
    assert ended.code == 2
    assert "--run: list" in ended.err or "cannot reach" in ended.err
    assert "`make setup` and `make up` in a checkout of wqlab" in ended.err
    assert wqlab("replay", str(saved), "--blocks", "3").code == 2
