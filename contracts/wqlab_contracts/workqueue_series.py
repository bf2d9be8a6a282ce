"""What the workqueues of a boot did, once a second: a file that the worker writes and the server draws.

A CSV table with one line for each workqueue and second in which something changed. Counters count from the start of
their repetition; a cell is empty where that device or kernel could not tell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from pydantic import Field, ValidationError

from .messages.base import Message
from .messages.events import BootKey

COUNTERS = ("started", "completed", "cpu_us", "cpu_intensive", "cm_wakeups", "repatriated", "mayday", "rescued")
GAUGES = ("in_flight", "queued")
"""As they are at that moment, not since the start."""
COLUMNS = ("scenario", "setting", "repetition", "phase", "source", "seconds", "workqueue", *COUNTERS, *GAUGES, "note")
ROW_LIMIT = 50_000

_CELL_LIMIT = 300


class Row(Message):
    """One workqueue at one moment; with `note`, what could not be measured then, and `workqueue` is empty."""

    scenario: str
    setting: str
    repetition: int = Field(ge=0)
    phase: str
    """`warmup` or `traced`."""
    source: str
    """`stats`: the kernel's own counters; `tracepoints`."""
    seconds: float = Field(ge=0, le=1e6)
    workqueue: str = Field(max_length=_CELL_LIMIT)
    values: dict[str, int] = Field(default_factory=dict)
    """Of COUNTERS and GAUGES, those that are known."""
    note: str = Field(default="", max_length=_CELL_LIMIT)


def file_name(boot: BootKey) -> str:
    return f"workqueues-block{boot.block}-{boot.position}-{boot.arm.value}-attempt{boot.attempt}.csv"


def write(rows: Iterable[Row]) -> str:
    """At most ROW_LIMIT rows."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    for _, row in zip(range(ROW_LIMIT), rows, strict=False):
        table.writerow(row.model_dump(exclude={"values"}) | row.values)
    return text.getvalue()


def read(text: str) -> Iterator[Row]:
    """Raises ValueError for what `write` did not write."""
    table = csv.DictReader(io.StringIO(text), strict=True)
    if tuple(table.fieldnames or ()) != COLUMNS:
        raise ValueError("not a table of workqueues: its columns are others")
    try:
        for number, line in enumerate(table):
            if number >= ROW_LIMIT:
                raise ValueError(f"more than {ROW_LIMIT} lines")
            values = {name: line.pop(name) for name in (*COUNTERS, *GAUGES)}
            yield Row.model_validate({**line, "values": {name: value for name, value in values.items() if value}})
    except (csv.Error, ValidationError) as error:
        raise ValueError(f"not a table of workqueues: {error}") from error
