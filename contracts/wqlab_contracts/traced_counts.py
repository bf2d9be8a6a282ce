"""Write and read the event counts of a boot: work items, contended locks, task migrations.

The worker writes the file and the server reads the files of both arms. It is a CSV table with one line per scenario,
setting, repetition, topic and name. Times are sums over all events of a line, in microseconds. A traced boot counts all
topics; a measured boot counts work items from queueing to start, in its traced repetitions.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
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
    CALLED = "called"
    """Calls of a function that the series changes, 0 if it was not called. Without times."""
    NOTE = "note"
    """Text on what is missing or inexact; the name is the text."""


TIMED = frozenset({TracedTopic.QUEUED, TracedTopic.EXECUTED, TracedTopic.CONTENDED})
"""Topics whose lines have times."""
PLACES = ("on_cpu", "on_l3", "on_node", "off_node")
"""Where work items started, seen from the CPU that queued them, without overlap."""
COLUMNS = ("scenario", "setting", "topic", "name", "count", "total_us", "p99_us", "repetition", "buckets", *PLACES)
LARGEST_EXPONENT = 59
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
    repetition: int = Field(default=0, ge=0)
    buckets: str = Field(default="", max_length=2000)
    """Histogram of the times, as `EXPONENT:COUNT,...` of `parse_buckets`; empty for topics without times."""
    on_cpu: int | None = Field(default=None, ge=0, le=VALUE_LIMIT)
    """Topic `queued`: work items that started on the CPU that queued them; null if places were not counted."""
    on_l3: int | None = Field(default=None, ge=0, le=VALUE_LIMIT)
    """The same on another CPU of its last-level cache domain."""
    on_node: int | None = Field(default=None, ge=0, le=VALUE_LIMIT)
    """The same in another last-level cache domain of its NUMA node."""
    off_node: int | None = Field(default=None, ge=0, le=VALUE_LIMIT)
    """The same on another NUMA node."""


def parse_buckets(text: str) -> dict[int, int]:
    """Return the number of events by exponent, in ascending order, from `EXPONENT:COUNT,...`. Raises ValueError.

    Exponent e has the times from above 2^(e-1) to 2^e microseconds; 0 also has shorter ones.
    """
    found: dict[int, int] = {}
    for bucket in text.split(","):
        exponent, _, number = bucket.partition(":")
        if not (exponent.isdecimal() and number.isdecimal() and len(exponent) <= 2 and len(number) <= 18):
            raise ValueError(f"no bucket of a histogram: {bucket[:40]!r}")
        if int(exponent) > LARGEST_EXPONENT:
            raise ValueError(f"no plausible time: 2^{exponent} us")
        found[int(exponent)] = found.get(int(exponent), 0) + int(number)
    return dict(sorted(found.items()))


def percentile(buckets: Mapping[int, int], percent: int) -> int:
    """Return a percentile in microseconds, as the upper end of its histogram bucket.

    Raises ValueError if there are no events.
    """
    seen, events = 0, sum(buckets.values())
    for exponent in sorted(buckets):
        seen += buckets[exponent]
        if buckets[exponent] and seen * 100 >= events * percent:
            return int(2**exponent)
    raise ValueError("no events")


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
            optional = {name: line.pop(name, None) or None for name in ("total_us", "p99_us", *PLACES)}
            yield Row.model_validate({**line, **optional})
    except (csv.Error, ValidationError) as error:
        raise ValueError(f"not a table of traced counts: {error}") from error
