"""Parse what `tracer.sh` counts beside a plan's script into rows of a traced boot's table.

The device may print anything: unreadable lines are left out and counted in a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.traced_counts import NAME_LIMIT, TIMED, Row, TracedTopic

from .collect import NotMeasured, Operations, count

SCRIPT = "tracer.sh"
"""File of the plan that runs the plan's script under histograms of the tracer."""
LINE_LIMIT = 10_000
_BEGIN, _END = "\nbegin\ttraced\n", "\nend\ttraced"
_LOCK_KINDS = (
    (1, "spinlock"),
    (32, "mutex"),
    (16, "per-CPU rwsem"),
    (8, "RT mutex"),
    (4, "rwlock or rwsem for writing"),
    (2, "rwlock or rwsem for reading"),
)
"""Bits of `flags` in include/trace/events/lock.h of the kernel, the first that is set counts."""


def split_output(stdout: str) -> tuple[str, list[str] | None]:
    """Split off the counts: return the plan script's output and the lines of the counts, or None without them."""
    output, begin, rest = stdout.rpartition(_BEGIN)
    counts, end, _ = rest.rpartition(_END)
    return (output, counts.split("\n")) if begin and end else (stdout, None)


def parse_rows(lines: Sequence[str], scenario: str, setting: str, topology: MeasuredTopology) -> Iterator[Row]:
    """Yield the rows of one repetition. Migrations between pairs of CPUs are added up by their distance."""
    distances: Counter[str] = Counter()
    unreadable: list[str] = []

    def row(topic: TracedTopic, name: str, number: int = 0, **times: int | None) -> Row:
        return Row(scenario=scenario, setting=setting, topic=topic, name=name[:NAME_LIMIT], count=number, **times)

    for line in lines[:LINE_LIMIT]:
        kind, *fields = line.split("\t")
        try:
            if kind == TracedTopic.NOTE and len(fields) == 1:
                yield row(TracedTopic.NOTE, fields[0])
                continue
            topic = TracedTopic(kind)
            name, events, total, buckets = fields
            if topic is TracedTopic.MIGRATED:
                distances[_distance(name, topology)] += count(events)
            elif topic in TIMED:
                name = _lock_kind(count(name)) if topic is TracedTopic.CONTENDED else name
                yield row(topic, name, count(events), total_us=count(total), p99_us=_percentile(buckets))
            else:
                yield row(topic, name, count(events))
        except ValueError:
            unreadable += [line] if line else []
    for name, number in distances.items():
        yield row(TracedTopic.MIGRATED, name, number)
    if unreadable:
        yield row(TracedTopic.NOTE, f"{len(unreadable)} unreadable lines are left out, such as {unreadable[0][:40]!r}")


def operations_row(operations: Operations | NotMeasured, scenario: str, setting: str) -> Row:
    """Return the row of the operations by which counts are divided, or a note why there are none."""
    if isinstance(operations, NotMeasured):
        text = f"counts are not divided by operations: {operations}"[:NAME_LIMIT]
        return Row(scenario=scenario, setting=setting, topic=TracedTopic.NOTE, name=text)
    return Row(
        scenario=scenario,
        setting=setting,
        topic=TracedTopic.OPERATIONS,
        name=operations.unit[:NAME_LIMIT],
        count=operations.number,
    )


def _lock_kind(flags: int) -> str:
    return next((name for bit, name in _LOCK_KINDS if flags & bit), "lock")


def _distance(pair: str, topology: MeasuredTopology) -> str:
    """Return how far apart the CPUs of `FROM>TO` are. Raises ValueError for CPUs that the device does not have."""
    numbers = list(topology.numbers)
    source, target = (numbers.index(count(text)) for text in pair.split(">"))
    levels: Sequence[tuple[str, Mapping[int, int] | Sequence[int]]] = (
        ("between NUMA nodes", topology.node),
        (f"between {topology.last_level} domains", topology.l3),
        (f"between cores of an {topology.last_level} domain", topology.core),
    )
    return next((name for name, of in levels if of[source] != of[target]), "between threads of a core")


def _percentile(buckets: str) -> int:
    """Return the upper end of the bucket with the 99th percentile, in microseconds. Raises ValueError.

    Each bucket is `EXPONENT:COUNT`; exponent e has the times from above 2^(e-1) up to 2^e.
    """
    found: Counter[int] = Counter()
    for bucket in buckets.split(","):
        exponent, number = map(count, bucket.split(":"))
        if exponent > 59:
            raise ValueError(f"no plausible time: 2^{exponent} us")
        found[exponent] += number
    seen, all_events = 0, found.total()
    for exponent in sorted(found):
        seen += found[exponent]
        if seen * 100 >= all_events * 99:
            return int(2**exponent)
    raise ValueError("no bucket")
