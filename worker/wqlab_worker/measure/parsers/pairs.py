"""Where work was queued and where it ran: lines `queue_cpu exec_cpu count [exec_ns]`, reduced on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wqlab_contracts.messages import MeasuredTopology

from ..collect import Lacking, NoSamples, NotMeasured, Records, count


@dataclass(frozen=True)
class Pair:
    queued_on: int
    ran_on: int
    """Both are places in the topology's lists."""
    items: int
    exec_ns: int | None
    """Time that the items spent executing; None when the device did not say."""


def read_pairs(records: Records, numbers: Sequence[int]) -> list[Pair]:
    """`numbers` are those of the CPUs that the topology's lists tell of.

    Raises NotMeasured for a missing or unreadable histogram, for CPUs that the device does not have, for no item.
    """
    place = {number: at for at, number in enumerate(numbers)}
    found: list[Pair] = []
    for line in records.frame("pairs"):
        try:
            fields = [count(text) for text in line.split()]
            if len(fields) not in (3, 4):
                raise ValueError(f"{len(fields)} fields")
        except ValueError as error:
            raise NotMeasured(f"pairs: unreadable line {line[:80]!r}: {error}") from None
        if unknown := [number for number in fields[:2] if number not in place]:
            raise NotMeasured(f"pairs: CPU {unknown[0]} is none of the {len(place)} CPUs that were online at the boot")
        exec_ns = fields[3] if len(fields) == 4 else None
        found.append(Pair(place[fields[0]], place[fields[1]], fields[2], exec_ns))
    if not sum(pair.items for pair in found):
        raise NoSamples("no work item was seen from queue to start")
    return found


def domains(topology: MeasuredTopology) -> dict[str, list[int] | None]:
    """Level -> domain of each CPU, numbered from 0; None where the kernel reports no such level.

    Identifiers are only unique within what contains them (a core's within its package), so the tuple counts.
    """

    def ids(*levels: Sequence[int]) -> list[int] | None:
        if any(len(level) != topology.cpus for level in (topology.numbers, *levels)):
            raise NotMeasured(f"the topology does not name every one of {topology.cpus} CPUs")
        if any(found < 0 for found in levels[-1]):
            return None
        number: dict[tuple[int, ...], int] = {}
        return [number.setdefault(found, len(number)) for found in zip(*levels, strict=True)]

    return {
        "cpu": list(range(topology.cpus)),
        "core": ids(topology.package, topology.l3, topology.core),
        "l3": ids(topology.package, topology.l3),
        "node": ids(topology.node),
    }


def share(
    pairs: Sequence[Pair], domain: Sequence[int], weight: Callable[[Pair], int] = lambda pair: pair.items
) -> float:
    """Percent (0..100) of the items, or of what `weight` gives, that ran in the domain they were queued in.

    Raises NotMeasured when there is nothing to divide by.
    """
    everything = sum(weight(pair) for pair in pairs)
    if everything <= 0:
        raise NoSamples("no execution time was recorded")
    at_home = sum(weight(pair) for pair in pairs if domain[pair.queued_on] == domain[pair.ran_on])
    return 100.0 * at_home / everything


def chance(pairs: Sequence[Pair], domain: Sequence[int]) -> float:
    """The share, in percent, if each item ran on a CPU drawn evenly from all: what no affinity at all would give."""
    size: dict[int, int] = {}
    for each in domain:
        size[each] = size.get(each, 0) + 1
    everything = sum(pair.items for pair in pairs)
    return sum(100.0 * pair.items * size[domain[pair.queued_on]] for pair in pairs) / len(domain) / everything


def locality(records: Records, topology: MeasuredTopology) -> dict[str, float | Lacking]:
    """local_{cpu,core,l3,node}_share and, for the L3, its share of execution time and what chance would give."""
    pairs = read_pairs(records, topology.numbers)
    found: dict[str, float | Lacking] = {}
    levels = domains(topology)
    for level, domain in levels.items():
        lacking = Lacking(f"the kernel reports no {level} for each CPU of this device")
        found[f"local_{level}_share"] = share(pairs, domain) if domain else lacking
    domain = levels["l3"]
    timed = all(pair.exec_ns is not None for pair in pairs)
    if domain is None:
        found["local_l3_time_share"] = found["local_l3_by_chance"] = Lacking("the kernel reports no L3 for each CPU")
    else:
        found["local_l3_by_chance"] = chance(pairs, domain)
        found["local_l3_time_share"] = (
            share(pairs, domain, lambda pair: pair.exec_ns or 0) if timed else Lacking("no event ends an execution")
        )
    return found
