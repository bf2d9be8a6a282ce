from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path += [str(Path(__file__).parents[2] / f"{package}/tests") for package in ("report", "comparison")]

from commandline import TOKEN, CommandResult, Wqlab
from example_views import at
from fakelab import FakeLab

from wqlab_client import Client, Retry


@pytest.fixture(autouse=True, scope="session")
def _handle_interrupts() -> None:
    """Restore SIGINT, which a shell makes its background processes and their children ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def lab() -> Iterator[FakeLab]:
    with FakeLab() as lab:
        yield lab


@pytest.fixture
def waits() -> list[float]:
    """Record the seconds that the client waits before each retry."""
    return []


@pytest.fixture
def client(lab: FakeLab, waits: list[float]) -> Iterator[Client]:
    with Client(lab.url, TOKEN, retry=Retry(attempts=4), timeout_s=3600, sleep=waits.append) as client:
        yield client


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder without any configuration."""
    for name in ("WQLAB_URL", "WQLAB_TOKEN", "WQLAB_TREE", "XDG_CONFIG_HOME", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "240")
    return tmp_path


@pytest.fixture
def wqlab(lab: FakeLab, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Wqlab:
    """Run the command against `lab` as CI does: without a terminal, server and token in the environment."""
    from wqlab_client.cli import main

    monkeypatch.setenv("WQLAB_URL", lab.url)
    monkeypatch.setenv("WQLAB_TOKEN", TOKEN)
    monkeypatch.setattr("time.sleep", lambda _: None)

    def call(*arguments: str) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["wqlab", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return CommandResult(int(ended.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the commands' clock to 600 s after the submission was created."""
    for module in ("submissions", "devices", "watch"):
        monkeypatch.setattr(f"wqlab_client.cli.{module}.utc_now", lambda: at(600))
