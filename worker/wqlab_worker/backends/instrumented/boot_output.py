"""Read what a boot of an instrumented device left: results of the script's calls, and the window of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wqlab_bench.instrument.stream import Blocks, Frame, StreamError, Window, read

from ..unattended.boot_files import Results, ResultsUnreadable, results_of

FILES = 20_000
"""Most files of results; a call has four."""


@dataclass(frozen=True)
class BootOutput:
    """Results of a boot."""

    results: Results
    windows: dict[int, Window] = field(default_factory=dict)
    """Number of a call -> its only window."""
    symbols: str = ""
    """Lines of /proc/kallsyms: `_text`, and the functions of modules."""
    blocks: Mapping[int, int] = field(default_factory=dict)
    """Address -> bytes of each block of the kernel that the boot executed, in windows or not."""
    slabs: str = ""
    """Links of /sys/kernel/slab: a slab cache that was merged with others has the name of the first."""


def read_output(path: Path) -> BootOutput:
    """Read the plugin's output of a boot whose guest has switched off. Raises ResultsUnreadable."""
    found: dict[str, bytes] = {}
    windows: dict[int, Window] = {}
    seen: list[Window] = []
    blocks: Mapping[int, int] = {}
    try:
        for record in _records(path):
            if isinstance(record, Window):
                seen.append(record)
                continue
            if isinstance(record, Blocks):
                blocks = record.sizes
                continue
            number, _, what = record.name.partition(".")
            found[record.name] = record.data
            if what == "status" and number.isdecimal():
                if len(seen) > 1:
                    raise ResultsUnreadable(f"call {number} of the script marked {len(seen)} windows, not one")
                windows |= {int(number): window for window in seen}
                seen = []
            if len(found) > FILES:
                raise ResultsUnreadable(f"the device sent more than {FILES} files")
    except StreamError as error:
        raise ResultsUnreadable(str(error)) from error
    symbols, slabs = (found.get(name, b"").decode("ascii", errors="replace") for name in ("symbols", "slabs"))
    return BootOutput(results_of(found), windows, symbols, blocks, slabs)


def _records(path: Path) -> Iterator[Frame | Window | Blocks]:
    if not path.exists():
        raise ResultsUnreadable("the emulator's plugin wrote nothing")
    return read(path)
