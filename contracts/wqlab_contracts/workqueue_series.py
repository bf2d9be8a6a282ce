"""Write and read the workqueue series of a boot: workqueue counters sampled once a second.

The worker writes the file and the server draws it. It is a CSV table with one line per workqueue and second in which a
value changed. Counters start at 0 with their repetition; a cell is empty if the device or kernel has no such value.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field, ValidationError

from .messages.base import Message
from .messages.events import BootKey

COUNTERS = ("started", "completed", "cpu_us", "cpu_intensive", "cm_wakeups", "repatriated", "mayday", "rescued")
GAUGES = ("in_flight", "queued")
"""Values at that moment, not counted from the start."""
COLUMNS = ("scenario", "setting", "repetition", "phase", "source", "seconds", "workqueue", *COUNTERS, *GAUGES, "note")
ROW_LIMIT = 50_000

VALUE_LIMIT = 10**24
"""Largest accepted value. Valid values are smaller: sums of at most ROW_LIMIT counters of at most 18 digits."""
_CELL_LIMIT = 300


class Row(Message):
    """Values of one workqueue at one moment. With `note`: what was not measured; `workqueue` is then empty."""

    scenario: str
    setting: str
    repetition: int = Field(ge=0)
    phase: str
    """`warmup` or `traced`."""
    source: str
    """`stats` (counters in the kernel) or `tracepoints`."""
    seconds: float = Field(ge=0, le=1e6)
    workqueue: str = Field(max_length=_CELL_LIMIT)
    values: dict[str, Annotated[int, Field(le=VALUE_LIMIT)]] = Field(default_factory=dict)
    """Known values, keyed by the names in COUNTERS and GAUGES."""
    note: str = Field(default="", max_length=_CELL_LIMIT)


def file_name(boot: BootKey) -> str:
    """Return the artifact name of a boot's series."""
    return f"workqueues-block{boot.block}-{boot.position}-{boot.arm.value}-attempt{boot.attempt}.csv"


def write(rows: Iterable[Row]) -> str:
    """Format rows as CSV; at most ROW_LIMIT rows are written."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    for _, row in zip(range(ROW_LIMIT), rows, strict=False):
        table.writerow(row.model_dump(exclude={"values"}) | row.values)
    return text.getvalue()


def read(text: str) -> Iterator[Row]:
    """Yield the rows of the CSV text.

    Raises ValueError while iterating: for other columns, an invalid value, or more than ROW_LIMIT lines.
    """
    table = csv.DictReader(io.StringIO(text), strict=True)
    if tuple(table.fieldnames or ()) != COLUMNS:
        raise ValueError("not a workqueue table: the columns differ")
    try:
        for number, line in enumerate(table):
            if number >= ROW_LIMIT:
                raise ValueError(f"more than {ROW_LIMIT} lines")
            values = {name: line.pop(name) for name in (*COUNTERS, *GAUGES)}
            yield Row.model_validate({**line, "values": {name: value for name, value in values.items() if value}})
    except (csv.Error, ValidationError) as error:
        raise ValueError(f"not a workqueue table: {error}") from error
