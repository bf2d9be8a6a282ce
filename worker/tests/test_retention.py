"""Retention in a machine's cache and logs, on real files and a volume that is really full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages.storage import StorageUse
from wqlab_worker.retention import INTERVAL_S, Keeper, Limits, clean, clean_logs, start
from wqlab_worker.workspace import Workspace

NOW = 2_000_000_000.0
DAY = 86400.0
KEY = "0123456789abcdef"
PLENTY = Limits(reserve_bytes=0)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "cache")


def entry(workspace: Workspace, name: str, days: float, size: int = 1 << 20) -> Path:
    """Make an entry of the cache that was last used `days` before NOW."""
    path = workspace.cache / name
    (path if path.suffix != ".cpio" else path.parent).mkdir(parents=True, exist_ok=True)
    file = path if path.suffix == ".cpio" else path / "file"
    file.write_bytes(os.urandom(size))
    unused_for(path, days)
    return path


def unused_for(path: Path, days: float) -> None:
    os.utime(path, times=(NOW - days * DAY, NOW - days * DAY))


def test_unused_entries_are_deleted_by_age(workspace: Workspace) -> None:
    old = [entry(workspace, f"{area}/{KEY}", 31) for area in ("sources", "builds", "objects")]
    old.append(entry(workspace, "mirrors/linux-5.10.git", 31))
    (index := workspace.sources / f"{KEY}.index").touch()
    new = entry(workspace, "sources/fedcba", 29)
    areas = clean(workspace, PLENTY, NOW)
    assert not any(path.exists() for path in [*old, index])
    assert new.exists()
    assert [(area.name, area.entries) for area in areas] == [("cache", 1), ("cache/sources", 1)]
    assert list((workspace.cache / "scratch").iterdir()) == [], "nothing is left of the deleted"


def test_a_system_of_a_rehearsal_machine_is_deleted_by_age(workspace: Workspace) -> None:
    folder = workspace.cache / "own-systems"
    folder.mkdir(parents=True)
    old, new = folder / "aaa.ext4", folder / "bbb.ext4"
    for path, days in ((old, 31), (new, 29)):
        path.write_bytes(b"system")
        unused_for(path, days)
    clean(workspace, PLENTY, NOW)
    assert [path.exists() for path in (old, new)] == [False, True]


def test_cache_over_its_size_loses_what_was_used_longest_ago(workspace: Workspace) -> None:
    oldest, older = entry(workspace, "sources/aaa", 3), entry(workspace, "builds/bbb", 2)
    newest = entry(workspace, "objects/ccc", 1)
    clean(workspace, Limits(cache_bytes=int(2.5 * (1 << 20)), reserve_bytes=0), NOW)
    assert [path.exists() for path in (oldest, older, newest)] == [False, True, True]


def test_used_entry_counts_from_its_last_use(workspace: Workspace) -> None:
    kept, lost = entry(workspace, "sources/aaa", 100), entry(workspace, "sources/bbb", 100)
    workspace.use(kept)
    unused_for(workspace.folder("used") / "sources-aaa", 1)
    clean(workspace, PLENTY, NOW)
    assert (kept.exists(), lost.exists()) == (True, False)


def test_entry_of_a_running_job_stays(workspace: Workspace) -> None:
    used = entry(workspace, "sources/aaa", 100)
    with workspace.session() as session:
        session.use(used)
        unused_for(workspace.folder("used") / "sources-aaa", 100)  # a job of a hundred days
        clean(workspace, PLENTY, NOW)
        assert used.exists()
    clean(workspace, PLENTY, NOW)
    assert not used.exists()


def test_pinned_paths_stay(workspace: Workspace, tmp_path: Path) -> None:
    golden, rootfs = entry(workspace, "builds/aaa", 100), entry(workspace, "rootfs/bbb.cpio", 100)
    other = entry(workspace, "rootfs/ccc.cpio", 100)
    pins = {"state": str(tmp_path), "paths": [str(golden / "kernel"), str(rootfs)]}
    (workspace.folder("pins") / "lab.json").write_text(json.dumps(pins))
    areas = clean(workspace, PLENTY, NOW)
    assert [path.exists() for path in (golden, rootfs, other)] == [True, True, False]
    assert areas[0].pinned_bytes == areas[0].bytes >= 2 << 20
    pins["state"] = str(tmp_path / "removed")
    (workspace.folder("pins") / "lab.json").write_text(json.dumps(pins))
    clean(workspace, PLENTY, NOW)
    assert not golden.exists(), "the lab of these pins is gone"


def test_artifacts_of_a_deleted_build_go_with_it(workspace: Workspace) -> None:
    build = entry(workspace, f"builds/{KEY}", 100)
    artifact = workspace.keep(build / "file", ArtifactKind.KERNEL, "kernel")
    for path in (build / "file", build):
        unused_for(path, 100)
    assert clean(workspace, Limits(keep_days=1000, reserve_bytes=0), NOW)[0].bytes < 2 << 20, "a link counts once"
    clean(workspace, PLENTY, NOW)
    assert not workspace.path_of(artifact).exists()


def test_lock_files_of_old_keys_are_removed_while_no_one_waits(workspace: Workspace) -> None:
    with workspace.lock("build-aaa"):
        unused_for(path := workspace.cache / "locks" / "build-aaa", 100)
        clean(workspace, PLENTY, NOW)
        assert path.exists(), "the lock is held"
    unused_for(path, 100)
    clean(workspace, PLENTY, NOW)
    assert not path.exists()


def test_lock_that_is_removed_before_it_is_taken_is_made_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace.folder("locks") / "build-aaa"
    opened = Path.open

    def open_and_remove(self: Path, mode: str = "r") -> object:
        file = opened(self, mode)
        if self == path:
            monkeypatch.undo()
            workspace.remove_lock(path)
        return file

    monkeypatch.setattr(Path, "open", open_and_remove)
    with workspace.lock("build-aaa"), workspace.try_lock("build-aaa") as free:
        assert path.exists()
        assert not free


def test_session_logs_are_deleted_by_age(tmp_path: Path) -> None:
    (sessions := tmp_path / "log" / "sessions").mkdir(parents=True)
    for name, days in (("old.log", 31), ("new.log", 29)):
        (sessions / name).write_text("x")
        unused_for(sessions / name, days)
    areas = clean_logs(tmp_path, 30, NOW)
    assert [path.name for path in sessions.iterdir()] == ["new.log"]
    assert areas[0].entries == 1


def test_one_process_cleans_and_reports(workspace: Workspace, tmp_path: Path) -> None:
    entry(workspace, "sources/aaa", 0)
    reports: list[StorageUse] = []
    reported = threading.Event()

    def publish(use: StorageUse) -> None:
        reports.append(use)
        reported.set()

    keeper = Keeper(workspace, tmp_path / "state", PLENTY)
    start(keeper, publish)
    assert reported.wait()
    assert {"cache", "cache/sources", "logs"} <= {area.name for area in reports[0].areas}
    assert keeper.run_when_due() == [], f"the next pass is due after {INTERVAL_S} s"


@pytest.mark.parametrize("variable", ["WQLAB_CACHE_BYTES", "WQLAB_CACHE_KEEP_DAYS", "WQLAB_CACHE_RESERVE_BYTES"])
def test_limits_come_from_the_environment(variable: str) -> None:
    assert Limits.from_environment({variable: "7"}) != Limits.from_environment({}) == Limits()
    with pytest.raises(ValueError, match=f"{variable}=7G is not a number"):
        Limits.from_environment({variable: "7G"})


ON_A_FULL_VOLUME = """
import os, sys, time
from pathlib import Path
from wqlab_worker.claims.jobs import failure_of
from wqlab_worker.retention import make_space
from wqlab_worker.workspace import Workspace, free_bytes
workspace = Workspace(Path(sys.argv[1]))
for number, age in enumerate((5, 4, 3)):
    folder = workspace.sources / f"{number}a"
    folder.mkdir()
    (folder / "file").write_bytes(os.urandom(1 << 20))
    os.utime(folder, (time.time() - age * 86400,) * 2)
try:
    (workspace.cache / "next").write_bytes(os.urandom(2 << 20))
except OSError as error:
    print(">", failure_of(error).kind.value, failure_of(error).summary)
(workspace.cache / "next").unlink()
make_space(workspace, 2 << 20)
print(">", sorted(path.name for path in workspace.sources.iterdir()), free_bytes(workspace.cache) >= 2 << 20)
(workspace.cache / "next").write_bytes(os.urandom(2 << 20))
"""


def test_full_cache_volume_gets_space_for_the_next_job(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *("bwrap", "--dev-bind", "/", "/", "--size", str(4 << 20), "--tmpfs", tmp_path),
            *("--setenv", "WQLAB_CACHE_RESERVE_BYTES", "0", "--setenv", "WQLAB_CACHE", tmp_path),
            *(sys.executable, "-c", ON_A_FULL_VOLUME, tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    failure, left = (line for line in done.stdout.splitlines() if line.startswith(">"))
    assert failure == f"> infrastructure the worker has no space left: {tmp_path}"
    assert left == "> ['1a', '2a'] True"
