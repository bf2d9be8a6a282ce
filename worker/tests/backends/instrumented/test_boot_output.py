"""Results of instrumented boots, from the plugin's output."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_worker.backends.instrumented.boot_output import read_output
from wqlab_worker.backends.unattended.boot_files import ResultsUnreadable


def frame(name: str, text: str) -> bytes:
    return f"send {name} {len(text)}\n{text}\n".encode()


def window(number: int, instructions: int) -> bytes:
    text = f"total\t{instructions}\t0\t0\t0\t0\n"
    return f"window {number} {len(text)}\n{text}\n".encode()


def call(number: str, stdout: str = "") -> bytes:
    return frame(f"{number}.out", stdout) + frame(f"{number}.err", "") + frame(f"{number}.status", "0 1.5 2.5")


def test_windows_belong_to_the_call_in_which_they_ended(tmp_path: Path) -> None:
    (path := tmp_path / "output").write_bytes(
        call("0000") + window(1, 7) + call("0001", "said") + call("0002") + window(2, 9) + call("0003")
        + frame("probe", "p") + frame("symbols", "ffffffff81000000 T _text\n")
    )  # fmt: skip
    output = read_output(path)
    assert {number: each.instructions for number, each in output.windows.items()} == {1: 7, 3: 9}
    assert output.results.calls[1].stdout == "said"
    assert output.results.calls[1].seconds == 1.0
    assert output.symbols.startswith("ffffffff81000000 T _text")


def test_two_windows_of_a_call_are_refused(tmp_path: Path) -> None:
    (path := tmp_path / "output").write_bytes(window(1, 7) + window(2, 8) + call("0000") + frame("probe", ""))
    with pytest.raises(ResultsUnreadable, match="marked 2 windows"):
        read_output(path)


@pytest.mark.parametrize("data", [b"", b"nonsense\n", b"send probe 99\nx\n", call("0000")])
def test_incomplete_output_is_refused(tmp_path: Path, data: bytes) -> None:
    (path := tmp_path / "output").write_bytes(data)
    with pytest.raises(ResultsUnreadable):
        read_output(path)


def test_missing_output_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsUnreadable, match="wrote nothing"):
        read_output(tmp_path / "output")
