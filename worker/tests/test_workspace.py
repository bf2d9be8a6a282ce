"""The cache folder of a machine: its settings, artifacts, and files that hostile code made."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from wqlab_contracts.enums import ArtifactKind
from wqlab_worker.failures import InfrastructureError
from wqlab_worker.sandbox import MIB, Finished, Limits, Sandbox
from wqlab_worker.workspace import Workspace, collect, remove_tree


def test_private_git_hosts_are_parsed() -> None:
    environment = {
        "WQLAB_CACHE": "/c",
        "WQLAB_PRIVATE_GIT_HOSTS": "Git.Lab.example, 10.1.2.3:8443,[fd00::1]:9418,,[::1]",
    }
    assert Workspace.from_environment(environment).private_git_hosts == {
        *("git.lab.example", "10.1.2.3:8443", "[fd00::1]:9418", "[::1]")
    }


@pytest.mark.parametrize(
    "entry", ["https://git.lab.example", "git.lab.example/linux", "*.example", "fd00::1", "a b", "x:"]
)
def test_invalid_private_git_host_is_named(entry: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        Workspace.from_environment({"WQLAB_CACHE": "/c", "WQLAB_PRIVATE_GIT_HOSTS": f"good.example,{entry}"})
    assert repr(entry) in caught.value.failure.summary


def test_system_certificates_are_the_default(tmp_path: Path) -> None:
    known = Workspace.from_environment({"WQLAB_CACHE": str(tmp_path)})
    assert subprocess.run(["openssl", "x509", "-noout", "-in", known.ca_file], check=False).returncode == 0


def test_keep_replaces_damaged_file(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"whole")
    target = workspace.path_of(workspace.keep(path, ArtifactKind.KERNEL, "kernel"))
    target.unlink()
    target.write_bytes(b"broke")
    assert workspace.path_of(workspace.keep(path, ArtifactKind.KERNEL, "kernel")).read_bytes() == b"whole"
    assert [entry.name for entry in workspace.fetched.iterdir()] == [target.name]


LIMITS = Limits(wall_s=3600, disk_bytes=64 * MIB, file_bytes=256 * MIB, processes=64, log_bytes=MIB, tmp_bytes=8 * MIB)


class Box:
    def __init__(self, folder: Path) -> None:
        self.out = folder / "out"
        self.out.mkdir()

    def run(self, script: str, limits: Limits = LIMITS) -> tuple[Finished, str]:
        log = io.BytesIO()
        sandbox = Sandbox(writable={"/out": self.out}, limits=limits)
        finished = sandbox.run(["sh", "-c", script], log=log)
        return finished, log.getvalue().decode()


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


@pytest.mark.parametrize(
    ("script", "path"),
    [
        ("ln -s /etc/passwd /out/artifact", "artifact"),
        ("mkdir /out/real; ln -s /etc /out/folder", "folder/passwd"),
        ("ln -s /out/loop /out/loop", "loop"),
        ("mkfifo /out/pipe", "pipe"),
        ("mkdir /out/directory", "directory"),
        ("head -c 2M /dev/zero > /out/large", "large"),
        ("true", "missing"),
        ("ln /etc/passwd /out/hard || ln -s /etc/passwd /out/hard", "hard"),
    ],
)
def test_irregular_or_large_file_is_not_collected(box: Box, tmp_path: Path, script: str, path: str) -> None:
    box.run(script)
    with pytest.raises(OSError):
        collect(box.out, path, tmp_path / "collected", MIB)


def test_regular_file_is_collected(box: Box, tmp_path: Path) -> None:
    box.run("mkdir /out/a; echo content > /out/a/b")
    collect(box.out, "a/b", tmp_path / "collected", MIB)
    assert (tmp_path / "collected").read_text() == "content\n"


def test_hostile_folder_can_be_removed(box: Box, tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.write_text("kept")
    box.run(
        f"mkdir -p /out/a/b/c; ln -s {keep} /out/a/b/link; ln -s {tmp_path} /out/a/folder; touch /out/a/b/f;"
        " chmod 000 /out/a/b/c /out/a/b /out/a"
    )
    remove_tree(box.out)
    assert not box.out.exists()
    assert keep.read_text() == "kept"
