"""Changed addresses of hardware reach a running lab, under a real supervisord, with short programs for its devices."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wqlab_lab.lifecycle import Lab
from wqlab_lab.paths import LabPaths
from wqlab_lab.services import services, stores

BENCH = """\
#!/bin/sh
[ "$1" = serve ] || exit 0
echo '{"capacity": 1}' > "$WQLAB_STATE/bench/new"
mv "$WQLAB_STATE/bench/new" "$WQLAB_STATE/bench/bench.json"  # at once, as the bench does
exec sleep 1000
"""
EXPORTER = """\
#!/bin/sh
echo "$BOARD_BMC" >> exports
exec sleep 1000
"""
SLEEP = "#!/bin/sh\nexec sleep 1000\n"
PROGRAMS = {
    "wqlab-bench": BENCH, "labgrid-exporter": EXPORTER, "labgrid-coordinator": SLEEP, "wqlab-server": SLEEP,
    "celery": SLEEP,
}  # fmt: skip


class RunningLab:
    """Lab whose start was finished, with what it has reported."""

    def __init__(self, folder: Path) -> None:
        self.paths = LabPaths(folder / "data", folder / "cache", folder / "state")
        (self.paths.data / "kernels").mkdir(parents=True)
        (self.paths.data / "kernels/trees.yaml").write_text("default: mine\n")  # its mirror is pinned
        self.paths.create()
        self.paths.addresses.parent.mkdir(parents=True)
        self.paths.golden.write_text("{}")
        (self.paths.keys / "worker.token").write_text("secret\n")
        (self.paths.run / "redis-server").symlink_to("/usr/bin/redis-check-rdb")
        self.reports: list[str] = []
        self.lab = Lab(self.paths, self.reports.append)

    def start(self) -> None:
        self.lab.make_database()
        self.set_address("192.0.2.1")
        self.lab._write_config([*stores(self.paths), *services(self.paths, 1)])
        subprocess.run(["supervisord", "-c", self.lab.config], check=True, cwd=self.paths.state)
        (self.paths.run / "device-types").touch()
        self.up()

    def set_address(self, address: str) -> None:
        self.paths.addresses.write_text(f"BOARD_BMC={address}\n")

    def up(self) -> None:
        self.lab.up()

    def exports(self, count: int) -> list[str]:
        """Return the address that each start of the exporter has seen, after `count` starts."""
        file = self.paths.state / "labgrid" / "exports"
        while not file.exists() or len(file.read_text().splitlines()) < count:
            time.sleep(0.05)
        return file.read_text().splitlines()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningLab]:
    monkeypatch.setattr("wqlab_lab.lifecycle.api_answers", lambda *_: True)  # no program here is an API
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        (programs := folder / "bin").mkdir()
        for program, text in PROGRAMS.items():
            (programs / program).write_text(text)
            (programs / program).chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        found = RunningLab(folder)
        try:
            found.start()
            yield found
        finally:
            found.lab.stop()


def test_changed_addresses_and_exporter_files_reach_the_exporter(running: RunningLab) -> None:
    assert running.exports(1) == ["192.0.2.1"]
    others = running.lab.supervisor.pids()
    running.set_address("192.0.2.2")
    running.up()
    assert running.exports(2) == ["192.0.2.1", "192.0.2.2"]
    after = running.lab.supervisor.pids()
    assert {name for name in after if after[name] != others[name]} == {"bench", "exporter"}

    running.paths.exporter_files.mkdir()
    (running.paths.exporter_files / "board.yaml").write_text("board-1: {}\n")
    running.up()
    assert len(running.exports(3)) == 3
    running.up()
    assert running.reports[-1] == "the lab is running; device types are unchanged"
    assert len(running.exports(3)) == 3


def test_another_environment_starts_every_program_anew(running: RunningLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program has the settings in its environment, so a changed setting restarts all, also the stores."""
    before = running.lab.supervisor.pids()
    monkeypatch.setenv("WQLAB_NOTICE", "another")
    running.set_address("192.0.2.2")
    running.up()
    after = running.lab.supervisor.pids()
    assert set(after) == set(before)
    assert running.exports(2)[-1] == "192.0.2.2"
    assert after["api"] != before["api"]
