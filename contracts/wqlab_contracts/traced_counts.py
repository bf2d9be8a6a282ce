"""Write and read the event counts of a traced boot: work items, contended locks, task migrations.

The worker writes the file and the server compares the files of both arms. It is a CSV table with one line per scenario,
setting, topic and name. Times are sums over all events of a line, in microseconds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from enum import StrEnum

from pydantic import Field, ValidationError

from .messages.base import Message
from .messages.events import BootKey


class TracedTopic(StrEnum):
    """What a line counts."""

    OPERATIONS = "operations"
    """Operations that the workload completed; the name is the operation's, in the singular."""
    QUEUED = "queued"
    """Work items, by work function; their times are those from queueing to start."""
    EXECUTED = "executed"
    """Work items, by work function; their times are those of execution."""
    CONTENDED = "contended"
    """Waits for a lock that another CPU or task held, by the kind of lock; their times are those of the wait."""
    CONTENDED_AT = "contended_at"
    """The same waits, by the function that took the lock. Without times."""
    MIGRATED = "migrated"
    """Tasks that the scheduler moved to another CPU, by the distance. Without times."""
    MIGRATED_TASK = "migrated_task"
    """The same migrations, by the name of the task. Without times."""
    SWITCHED = "switched"
    """Context switches of all CPUs. Without times."""
    NOTE = "note"
    """Text on what is missing or inexact; the name is the text."""


TIMED = frozenset({TracedTopic.QUEUED, TracedTopic.EXECUTED, TracedTopic.CONTENDED})
"""Topics whose lines have times."""
COLUMNS = ("scenario", "setting", "topic", "name", "count", "total_us", "p99_us")
ROW_LIMIT = 20_000
VALUE_LIMIT = 10**18
NAME_LIMIT = 200


class Row(Message):
    """Events of one topic and name in one scenario and setting."""

    scenario: str
    setting: str
    topic: TracedTopic
    name: str = Field(max_length=NAME_LIMIT)
    count: int = Field(default=0, ge=0, le=VALUE_LIMIT)
    total_us: int | None = Field(default=None, ge=0, le=VALUE_LIMIT)
    """Sum of the times; null for topics without times."""
    p99_us: int | None = Field(default=None, ge=0, le=VALUE_LIMIT)
    """Time that at most 1 % of the events exceed: the upper end of its histogram bucket, a power of two."""


def file_name(boot: BootKey) -> str:
    """Return the artifact name of a boot's table."""
    return f"traced-block{boot.block}-{boot.position}-{boot.arm.value}-attempt{boot.attempt}.csv"


def write(rows: Iterable[Row]) -> str:
    """Format rows as CSV; at most ROW_LIMIT rows are written."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    for _, row in zip(range(ROW_LIMIT), rows, strict=False):
        table.writerow(row.model_dump())
    return text.getvalue()


def read(text: str) -> Iterator[Row]:
    """Parse the CSV text. Raises ValueError if `write` cannot have written it."""
    table = csv.DictReader(io.StringIO(text), strict=True)
    if tuple(table.fieldnames or ()) != COLUMNS:
        raise ValueError("not a table of traced counts: the columns differ")
    try:
        for number, line in enumerate(table):
            if number >= ROW_LIMIT:
                raise ValueError(f"more than {ROW_LIMIT} lines")
            times = {name: line.pop(name) or None for name in ("total_us", "p99_us")}
            yield Row.model_validate({**line, **times})
    except (csv.Error, ValidationError) as error:
        raise ValueError(f"not a table of traced counts: {error}") from error
