"""Instrument profiles: format, and bounds on what a lab can send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wqlab_contracts import instrument
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import CpuPlace, FunctionCounts, HotLine, InstrumentProfile, LevelCounts, TransferPair
from wqlab_contracts.messages import BootKey


def profile(**changes: object) -> InstrumentProfile:
    """Return a profile of two CPUs with one window; `changes` replace fields of the window."""
    transfers = LevelCounts(l3=30, node=10, remote=2)
    window: dict[str, object] = {
        "scenario": "fsync", "setting": "", "repetition": 0, "operations": 640, "unit": "fsync",
        "instructions": 172_000_000, "kernel_instructions": 150_000_000, "loads": 40, "stores": 30, "locked": 20,
        "transfers": transfers,
        "functions": [FunctionCounts(name="flush_workqueue_prep_pwqs", file="kernel/workqueue.c", instructions=9)],
        "pairs": [TransferPair(taker="flush_workqueue_prep_pwqs", kind="store", transfers=transfers)],
        "lines": [HotLine(symbol="worker_pool+64", address="0x1f4a40", transfers=transfers)],
        "cpus": [[0, 22], [20, 0]],
    }  # fmt: skip
    return InstrumentProfile.model_validate(
        {
            "seed": 3,
            "emulator": "QEMU 7.2.22",
            "plugin": "a" * 64,
            "topology": [CpuPlace(core=0, l3=0, node=0), CpuPlace(core=1, l3=1, node=0)],
            "windows": [window | changes],
        }
    )


def test_written_profile_is_read_back() -> None:
    assert instrument.read(instrument.write(profile())) == profile()


def test_level_counts_add_up() -> None:
    counts = LevelCounts(smt=1, l3=2, node=4, remote=8)
    assert (counts.within_l3, counts.across_l3, counts.total) == (3, 12, 15)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"instructions": -1}, "windows.0.instructions: Input should be greater than or equal to 0"),
        ({"loads": 10**18}, "windows.0.loads: Input should be less than or equal"),
        ({"operations": 0}, "windows.0.operations"),
        ({"functions": [{"name": "f"}] * 501}, "windows.0.functions: List should have at most 500 items"),
        ({"functions": [{"name": "f" * 161}]}, "windows.0.functions.0.name"),
        ({"lines": [{"address": "javascript:", "transfers": {}}]}, "windows.0.lines.0.address"),
        ({"cpus": [[0, 1], [1]]}, "not a square matrix"),
        ({"cpus": [[0]]}, "has 1 CPUs, the topology 2"),
        ({"seconds": 4}, "windows.0.seconds: Extra inputs are not permitted"),
    ],
)
def test_profile_out_of_bounds_is_rejected(changes: dict[str, Any], message: str) -> None:
    document = json.loads(instrument.write(profile()))
    document["windows"][0] |= changes
    with pytest.raises(ValueError, match=message):
        instrument.read(json.dumps(document).encode())


def test_large_file_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrument, "PROFILE_BYTES", 10)
    with pytest.raises(ValueError, match="at most 10 are read"):
        instrument.read(instrument.write(profile()))


def test_other_content_is_rejected() -> None:
    with pytest.raises(ValueError, match="not an instrument profile"):
        instrument.read(b"\x00")


def test_file_name_tells_the_boot() -> None:
    boot = BootKey(block=3, position=1, arm=Arm.CANDIDATE, attempt=0)
    assert instrument.file_name(boot) == "instrument-block3-1-candidate-attempt0.json"
