from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from wqlab_lab.paths import LabPaths
from wqlab_lab.prepare import GoldenPreparation, PrepareError


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder at the front of PATH, with programs that stand for the steps."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    write(folder / "python", """[ "$3" = tree ] || echo '{"image": "/k", "key": "abc"}'""")
    write(folder / "wqlab-bench", "echo /r.cpio")
    return folder


def write(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def prepare(paths: LabPaths) -> None:
    with GoldenPreparation(paths, lambda text: None) as golden:
        golden.wait()


def test_golden_systems_are_written_once_all_steps_have_ended(paths: LabPaths, programs: Path) -> None:
    paths.golden.unlink()
    prepare(paths)
    assert json.loads(paths.golden.read_text())["x86_64"] == {"kernel": "/k", "rootfs": "/r.cpio", "key": "abc"}


def test_failed_kernel_build_ends_the_download_beside_it(paths: LabPaths, programs: Path) -> None:
    write(programs / "python", '[ "$3" = tree ] || exit 3')
    write(programs / "wqlab-bench", "exec sleep infinity")
    before = paths.golden.read_text()
    with pytest.raises(PrepareError, match=r"kernel .* failed with status 3"):
        prepare(paths)
    assert paths.golden.read_text() == before


def test_failed_root_filesystem_shows_its_output(paths: LabPaths, programs: Path) -> None:
    write(programs / "wqlab-bench", "echo 'the mirror does not answer' >&2; exit 4")
    with pytest.raises(PrepareError, match=r"rootfs .* failed with status 4\nthe mirror does not answer"):
        prepare(paths)


def test_error_of_the_caller_ends_the_preparation(paths: LabPaths, programs: Path) -> None:
    write(programs / "python", "exec sleep infinity")
    with pytest.raises(RuntimeError, match="no pages"), GoldenPreparation(paths, lambda text: None):
        raise RuntimeError("no pages")
