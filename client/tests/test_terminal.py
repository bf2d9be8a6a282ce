"""The command as a process: on a terminal, with signals and broken pipes; examples in the documentation."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from example_views import VIEWS, submission
from fakelab import FakeLab, Reply, Request

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.submissions import SubmissionSummary
from wqlab_contracts.enums import SubmissionState

COMMAND = [sys.executable, "-c", "from wqlab_client.cli import main; main()"]
DOCS = Path(__file__).parents[2] / "docs"


def environment(lab: FakeLab, home: Path, **more: str) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    own = {"HOME": str(home), "WQLAB_URL": lab.url, "WQLAB_TOKEN": "t"}
    return inherited | own | {"TERM": "xterm", "TZ": "UTC", "LC_ALL": "C.UTF-8"} | more


class Terminal:
    """Command on a pseudo terminal of 80 columns."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *COMMAND, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
        )
        os.close(theirs)
        self.text = ""

    def read_until(self, found: Callable[[str], object]) -> None:
        while not found(self.text):
            assert self._read(), f"the command ended early: {self.text}"

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def end(self) -> int:
        while self._read():
            pass
        os.close(self._fd)
        return self.process.wait()

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # Linux: the other end of the terminal is closed
            return False
        self.text += data.decode("utf-8", errors="replace")
        return bool(data)


def plain(text: str) -> str:
    """Remove escape sequences that move the cursor or set colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_watch_redraws_a_terminal_and_ctrl_c_detaches(lab: FakeLab, tmp_path: Path) -> None:
    lab.show(VIEWS[3])
    terminal = Terminal(environment(lab, tmp_path), "watch", "12")
    terminal.read_until(lambda text: "A B  B" in plain(text))
    terminal.type("\x03")
    assert terminal.end() == 130
    shown = plain(terminal.text)
    assert "detached; submission 12 continues. Resume with `wqlab watch 12 --report`" in shown
    assert "measuring^[[2J repetition" in shown, "output of the device must not control the terminal"
    assert "\x1b[2J" not in terminal.text
    assert lab.paths("POST") == [], "nothing was canceled"


def test_watch_on_a_terminal_exits_with_the_result(lab: FakeLab, tmp_path: Path) -> None:
    lab.show(VIEWS[3])
    lab.serve("/submissions/12/report", b"VERDICT \x1b]0;owned\x07\n", content_type="text/plain")
    terminal = Terminal(environment(lab, tmp_path, NO_COLOR="1"), "watch", "12", "--report")
    terminal.read_until(lambda text: "A B  B" in plain(text))
    lab.show(VIEWS[4].model_copy(update={"exit_code": 1}))
    assert terminal.end() == 1
    assert "3/3 blocks  A B  B A  A B" in terminal.text
    assert terminal.text.rstrip().endswith("VERDICT ^[]0;owned^G")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.text), "NO_COLOR"


@pytest.mark.parametrize("more", [{"TERM": "dumb"}, {"TERM": ""}])
def test_terminal_that_cannot_redraw_gets_lines(lab: FakeLab, tmp_path: Path, more: dict[str, str]) -> None:
    lab.show(VIEWS[4])
    terminal = Terminal(environment(lab, tmp_path, **more), "watch", "12")
    assert terminal.end() == 0
    assert "[   8:05] finished: passed" in terminal.text
    assert "\x1b" not in terminal.text


def test_list_fits_the_terminal(lab: FakeLab, tmp_path: Path) -> None:
    fields = {name: getattr(VIEWS[4], name) for name in SubmissionSummary.model_fields}
    row = SubmissionSummary(**fields)
    lab.serve("/submissions", Page[SubmissionSummary](items=[row], total=1))
    terminal = Terminal(environment(lab, tmp_path, NO_COLOR="1"), "list")
    assert terminal.end() == 0
    lines = plain(terminal.text).splitlines()
    assert len(lines) > 2 and all(len(line) <= 80 for line in lines)
    assert set(row.title.split()) <= set(" ".join(lines).split()), "folded, not cut"


def test_interrupted_watch_prints_how_to_resume(lab: FakeLab, tmp_path: Path) -> None:
    lab.show(VIEWS[3])
    watching = subprocess.Popen(
        [*COMMAND, "watch", "12"], env=environment(lab, tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert watching.stdout is not None
    while b"1/3 blocks" not in watching.stdout.readline():
        pass
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate()
    assert watching.returncode == 130
    assert b"detached; submission 12 continues" in err
    assert b"Traceback" not in out + err


def test_broken_pipe_is_no_error(lab: FakeLab, tmp_path: Path) -> None:
    lab.serve("/submissions/12/report", b"a line\n" * 200_000, content_type="text/plain")
    process = subprocess.Popen(
        [*COMMAND, "report", "12"], env=environment(lab, tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.read(7) == b"a line\n"
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_documented_python_example_runs(
    lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (DOCS / "ci.md").read_text(), re.DOTALL)
    report = {
        "submission": VIEWS[4].model_dump(mode="json"),
        "generated_at": "2026-01-02T10:10:00Z",
        "lab_url": lab.url,
        "targets": [],
        "attempts": [],
        "config_diff": [],
        "config_sha256": "",
    }
    lab.serve("/submissions/12/report", report)

    def create(_: Request) -> Reply:
        lab.show(VIEWS[4])
        return Reply(201, submission(SubmissionState.APPLYING))

    lab.answers[("POST", "/api/v1/submissions")] = create
    for name, value in (("WQLAB_URL", lab.url), ("WQLAB_TOKEN", "t"), ("CI_PIPELINE_ID", "77")):
        monkeypatch.setenv(name, value)
    exec(compile(example, "ci.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[0] == "1 submission_state"
    assert lab.requests[0].headers["idempotency-key"] == "77"


def test_documentation_names_exactly_the_commands() -> None:
    from typer.main import get_command

    from wqlab_client.cli.app import app

    documented = set(re.findall(r"`?wqlab ([a-z][a-z0-9]*(?:-[a-z]+)*)", (DOCS / "cli.md").read_text()))
    assert documented - {"command"} == set(get_command(app).commands)  # type: ignore[attr-defined]
