from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from commandline import TOKEN, Ended, Wqlab
from fakelab import FakeLab

from wqlab_client import Client, Retry


@pytest.fixture(autouse=True, scope="session")
def _interrupts_count() -> None:
    """A script ignores SIGINT in what it starts in the background, and so does all that this starts in turn."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def lab() -> Iterator[FakeLab]:
    with FakeLab() as lab:
        yield lab


@pytest.fixture
def waits() -> list[float]:
    """Seconds that the client wanted to wait before each new try."""
    return []


@pytest.fixture
def client(lab: FakeLab, waits: list[float]) -> Iterator[Client]:
    with Client(lab.url, TOKEN, retry=Retry(attempts=4), timeout_s=5, sleep=waits.append) as client:
        yield client


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with nothing configured."""
    for name in ("WQLAB_URL", "WQLAB_TOKEN", "WQLAB_TREE", "XDG_CONFIG_HOME", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    return tmp_path


@pytest.fixture
def wqlab(lab: FakeLab, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Wqlab:
    """Runs the command against `lab` as CI would: no terminal, server and token in the environment."""
    from wqlab_client.cli import main

    monkeypatch.setenv("WQLAB_URL", lab.url)
    monkeypatch.setenv("WQLAB_TOKEN", TOKEN)
    monkeypatch.setattr("time.sleep", lambda _: None)

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["wqlab", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return call
