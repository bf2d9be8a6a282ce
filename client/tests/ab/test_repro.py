"""repro.sh boots both kernels again without wqlab. Small programs stand in for QEMU and ssh."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ab_runs import ScriptedBackend, begun

from wqlab_client.ab import run
from wqlab_client.ab.repro import script
from wqlab_client.ab.state import MachineNote, StateFolder
from wqlab_contracts.enums import Arm
from wqlab_worker.measure.script_calls import calls

QEMU = """\
#!/bin/sh
echo "$*" >> "$LOG/qemu"
exec sleep 1000
"""
SSH = """\
#!/bin/sh
for command; do :; done
case $command in
*wqlab.token*) echo wqlab.token=repro ;;
*tar*) mkdir -p "$LOG/plan"; tar -xzf - -C "$LOG/plan" ;;
*) echo "$command" >> "$LOG/calls"; printf 'value\\tcount\\033[2J\\t%s\\n' "$(grep -c . "$LOG/calls")" ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    (tmp_path / "wqlab-ab-x").mkdir()
    made = begun(tmp_path / "wqlab-ab-x")
    monkeypatch.setattr(run, "_backend", lambda *_: ScriptedBackend())
    run.measure_all(made, made.path, lambda _: None)
    return made


def repeat(folder: StateFolder, *arguments: str) -> subprocess.CompletedProcess[str]:
    log = folder.path.parent
    for name, text in (("qemu-system-x86_64", QEMU), ("ssh", SSH)):
        (log / "bin").mkdir(exist_ok=True)
        (log / "bin" / name).write_text(text)
        (log / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{log / 'bin'}:/usr/bin:/bin", "LOG": str(log)}
    return subprocess.run(
        ["sh", str(folder.path / "repro.sh"), *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_every_call_of_a_boot_is_made_on_both_kernels(folder: StateFolder) -> None:
    done = repeat(folder)
    assert done.returncode == 0, done.stderr
    job = folder.read_plan().job
    planned = [each.action for each in calls(job, 0)]
    made = (folder.path.parent / "calls").read_text().splitlines()
    assert [each.rpartition(" ")[2] for each in made] == planned * 2
    assert "'SCENARIO=pipes'" in made[1]
    for arm in Arm.BASELINE, Arm.CANDIDATE:
        records = (folder.path / "repro" / f"{arm.value}.out").read_text()
        assert records.count("\nvalue\tcount\033[2J\t") == len(planned)
    numbers: dict[str, list[int]] = {}
    for number, each in enumerate(calls(job, 0), 1):
        numbers.setdefault(each.environment.get("SCENARIO", ""), []).append(number)
    rows = [line.split() for line in done.stdout.splitlines()]
    for scenario, found in numbers.items():
        mean = sum(found) / len(found)
        name = [*filter(None, [scenario]), "count[2J"]
        assert [*name, f"{mean:g}", f"{mean + len(planned):g}"] in rows, "control characters are removed"
    kernels = [line.split("-kernel ")[1].split()[0] for line in (folder.path.parent / "qemu").read_text().splitlines()]
    assert kernels == ["kernels/baseline/image", "kernels/candidate/image"]
    assert (folder.path.parent / "plan" / job.plan.script).read_text() == job.files[job.plan.script]


def test_settings_have_figures_of_their_own(folder: StateFolder) -> None:
    script = folder.path / "repro.sh"
    script.write_text(script.read_text().replace("SCENARIO=pipes", "SCENARIO=pipes SETTING_SCOPE=cpu", 1))
    rows = repeat(folder).stdout.splitlines()
    assert [row.split()[:2] for row in rows if "SCOPE=cpu" in row] == [["pipes", "SCOPE=cpu"]]
    assert len([row for row in rows if row.startswith("pipes count")]) == 1


def test_the_report_is_quoted_and_no_path_of_this_host_is_needed(folder: StateFolder) -> None:
    text = (folder.path / "repro.sh").read_text()
    assert folder.read_plan().job.kernels[Arm.CANDIDATE].build_id_gnu in text
    assert str(folder.path) not in text
    moved = folder.path.parent / "elsewhere"
    shutil.move(folder.path, moved)
    assert repeat(StateFolder(moved)).returncode == 0


def test_text_of_a_kernel_is_a_comment(folder: StateFolder) -> None:
    plan = folder.read_plan()
    kernel = plan.job.kernels[Arm.CANDIDATE]
    kernels = {**plan.job.kernels, Arm.CANDIDATE: kernel.model_copy(update={"release": "6.1\ntouch owned\n@CALLS@"})}
    text = script(folder, plan.model_copy(update={"job": plan.job.model_copy(update={"kernels": kernels})}), "@FILES@")
    for line in ("#     @FILES@\n", "# touch owned\n", "# @CALLS@, build-id"):
        assert line in text
    (folder.path / "repro.sh").write_text(text)
    done = repeat(folder)
    assert done.returncode == 0, done.stderr
    assert not (folder.path / "owned").exists()


def test_a_kernel_that_was_replaced_is_not_started(folder: StateFolder) -> None:
    (folder.path / "kernels/candidate/image").write_bytes(b"another build")
    done = repeat(folder)
    assert done.returncode == 1 and "kernels/candidate/image" in done.stdout + done.stderr
    assert not (folder.path.parent / "qemu").exists()


def test_script_of_a_machine_prints_the_kexec_commands(folder: StateFolder) -> None:
    machine = MachineNote(name="ryzen", has_systemd=True)
    plan = folder.read_plan().model_copy(update={"accelerator": None, "machine": machine})
    folder.write_plan(plan)
    run.report_so_far(folder)
    done = repeat(folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("kexec -l kernels/") == 2 and "HOST=ADDRESS" in done.stdout
    assert not (folder.path.parent / "qemu").exists()
    assert repeat(folder, "candidate").returncode == 0
    assert (folder.path / "repro/candidate.out").exists()


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
def test_the_script_is_clean_posix_shell(folder: StateFolder) -> None:
    assert os.access(folder.path / "repro.sh", os.R_OK)
    checked = subprocess.run(["shellcheck", str(folder.path / "repro.sh")], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
