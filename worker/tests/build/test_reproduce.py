"""The command that builds the same kernel outside the lab."""

from __future__ import annotations

from pathlib import Path

from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages import BuildResult, Source
from wqlab_worker.build.build_id import read_build_id
from wqlab_worker.build.build_kernel import build
from wqlab_worker.build.kept_builds import build_folder
from wqlab_worker.workspace import Workspace


def passed(result: BuildResult) -> BuildResult:
    assert result.outcome is Outcome.PASSED, result.failure
    return result


def test_reproducer_builds_the_same_kernel(
    base: Source, workspace: Workspace, build_job, repository, tmp_path: Path
) -> None:
    """Run the command as a reader of the report would, with tuxmake from this environment."""
    import os
    import subprocess
    import sys

    result = passed(build(build_job(base), workspace))
    assert "\n" not in result.reproducer
    assert "#" not in result.reproducer
    place = tmp_path / "person"
    place.mkdir()
    (place / "linux").symlink_to(repository.path)
    (place / "config").write_bytes((build_folder(workspace, build_job(base).key) / "config").read_bytes())
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", result.reproducer], cwd=place, env=environment, check=True, capture_output=True)
    assert read_build_id(place / "build" / "vmlinux") == result.build_id_gnu
