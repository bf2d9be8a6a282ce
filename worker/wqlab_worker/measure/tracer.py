"""Parse what `tracer.sh` or `monitor.sh` counts in the tracer's histograms into rows of a boot's table.

The device may print anything: unreadable lines are left out and counted in a note.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.traced_counts import NAME_LIMIT, PLACES, TIMED, Row, TracedTopic, parse_buckets, percentile

from .collect import NotMeasured, Operations, count

SCRIPT = "tracer.sh"
"""File of the plan that runs the plan's script under histograms of the tracer."""
HISTOGRAMS = "histograms.sh"
"""File of the plan with the histograms of both scripts; a data folder may lack it."""
LINE_LIMIT = 10_000
WAITS_NOT_COUNTED = "the times from queueing to start of work items are not counted: the tracer printed nothing"
_PLACED = "placed"
"""Kind of the lines that say where work items of a function that were queued on one CPU started."""
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


def parse_rows(
    lines: Sequence[str], scenario: str, setting: str, topology: MeasuredTopology, repetition: int = 0
) -> Iterator[Row]:
    """Yield the rows of one repetition. What is counted by pairs of CPUs is added up by their distance."""
    distances: Counter[str] = Counter()
    places: dict[str, Counter[str]] = defaultdict(Counter)
    timed: list[Row] = []
    unreadable: list[str] = []

    def row(topic: TracedTopic, name: str, number: int = 0, **more: int | str | None) -> Row:
        cell = {"scenario": scenario, "setting": setting, "repetition": repetition}
        return Row.model_validate({**cell, "topic": topic, "name": name[:NAME_LIMIT], "count": number, **more})

    for line in lines[:LINE_LIMIT]:
        kind, *fields = line.split("\t")
        try:
            if kind == TracedTopic.NOTE and len(fields) == 1:
                yield row(TracedTopic.NOTE, fields[0])
                continue
            if kind == _PLACED:
                function, source, targets = fields
                places[function[:NAME_LIMIT]].update(_places(source, targets, topology))
                continue
            topic = TracedTopic(kind)
            name, events, total, buckets = fields
            if topic is TracedTopic.MIGRATED:
                distances[_distance(name, topology)] += count(events)
            elif topic in TIMED:
                name = _lock_kind(count(name)) if topic is TracedTopic.CONTENDED else name
                p99_us = percentile(parse_buckets(buckets), 99)
                timed.append(row(topic, name, count(events), total_us=count(total), p99_us=p99_us, buckets=buckets))
            else:
                yield row(topic, name, count(events))
        except ValueError:
            unreadable += [line] if line else []
    for each in timed:
        found = places.get(each.name) if each.topic is TracedTopic.QUEUED else None
        yield each.model_copy(update={place: found[place] for place in PLACES}) if found else each
    for name, number in distances.items():
        yield row(TracedTopic.MIGRATED, name, number)
    if len(lines) > LINE_LIMIT:
        yield row(TracedTopic.NOTE, f"the output is too long: its last {len(lines) - LINE_LIMIT} lines are left out")
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


def _places(source: str, targets: str, topology: MeasuredTopology) -> Counter[str]:
    """Return how many work items that were queued on CPU `source` started where, by the names in PLACES.

    `targets` is `CPU:COUNT,...`. Raises ValueError for CPUs that the device does not have.
    """
    numbers = list(topology.numbers)
    queued_on = numbers.index(count(source))
    found: Counter[str] = Counter()
    for target in targets.split(","):
        cpu, events = map(count, target.split(":"))
        started_on = numbers.index(cpu)
        if started_on == queued_on:
            place = "on_cpu"
        elif topology.l3[started_on] == topology.l3[queued_on]:
            place = "on_l3"
        else:
            place = "on_node" if topology.node[started_on] == topology.node[queued_on] else "off_node"
        found[place] += events
    return found
