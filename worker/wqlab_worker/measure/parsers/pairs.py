"""Compute the locality of work from lines `queue_cpu exec_cpu count [exec_ns]`, summed up on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wqlab_contracts.messages import MeasuredTopology

from ..collect import NoSamples, NotMeasured, Records, Unsupported, count


@dataclass(frozen=True)
class Pair:
    """Number of work items that were queued on one CPU and executed on another or the same."""

    queued_on: int
    ran_on: int
    """Both are indices into the topology's lists."""
    items: int
    exec_ns: int | None
    """Execution time of the items; None if the device did not report it."""


def read_pairs(
    records: Records, numbers: Sequence[int], frame: str = "pairs", works: float | None = None
) -> list[Pair]:
    """Read the pairs of a frame. `numbers` are the numbers of the CPUs in the topology's lists.

    Raises NotMeasured if the histogram is missing or unreadable, names unknown CPUs, has no item, or does not have all
    `works`, the number of works that the script saw start.
    """
    index = {number: at for at, number in enumerate(numbers)}
    found: list[Pair] = []
    for line in records.frame(frame):
        try:
            fields = [count(text) for text in line.split()]
            if len(fields) not in (3, 4):
                raise ValueError(f"{len(fields)} fields")
        except ValueError as error:
            raise NotMeasured(f"{frame}: unreadable line {line[:80]!r}: {error}") from None
        if unknown := [number for number in fields[:2] if number not in index]:
            raise NotMeasured(
                f"{frame}: CPU {unknown[0]} is not one of the {len(index)} CPUs that were online at the boot"
            )
        exec_ns = fields[3] if len(fields) == 4 else None
        found.append(Pair(index[fields[0]], index[fields[1]], fields[2], exec_ns))
    items = sum(pair.items for pair in found)
    if works is not None and items != works:
        raise NotMeasured(f"{frame} has {items} works instead of {works:.0f}")
    if not items:
        raise NoSamples("no work item was seen from queue to start")
    return found


def domains(topology: MeasuredTopology) -> dict[str, list[int] | None]:
    """Return level -> domain of each CPU, numbered from 0; None if the kernel does not report the level.

    Identifiers are unique only within the next larger level (a core's within its package), so tuples are compared.
    """

    def ids(*levels: Sequence[int]) -> list[int] | None:
        if any(len(level) != topology.cpus for level in (topology.numbers, *levels)):
            raise NotMeasured(f"the topology does not describe all {topology.cpus} CPUs")
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
    """Return the percentage (0..100) of items, or of `weight`, that ran in the domain they were queued in.

    Raises NotMeasured if the total is 0.
    """
    everything = sum(weight(pair) for pair in pairs)
    if everything <= 0:
        raise NoSamples("no execution time was recorded")
    local = sum(weight(pair) for pair in pairs if domain[pair.queued_on] == domain[pair.ran_on])
    return 100.0 * local / everything


def chance(pairs: Sequence[Pair], domain: Sequence[int]) -> float:
    """Return the share in percent that would be expected if each item ran on a random CPU, without any affinity."""
    size: dict[int, int] = {}
    for each in domain:
        size[each] = size.get(each, 0) + 1
    everything = sum(pair.items for pair in pairs)
    return sum(100.0 * pair.items * size[domain[pair.queued_on]] for pair in pairs) / len(domain) / everything


def check_starts(chosen: float, others: float, queued: float, started: float, seen: int) -> None:
    """Raise NotMeasured if the counts of a trace contradict each other.

    `queued` and `started` count the works of all functions. The script records where single works start:
    `chosen` works of the plan's functions and `others` of all other functions were queued, and `seen` works of the
    plan's functions started. A work starts only after it was queued, and the trace may end before the last works start.
    """
    if chosen + others > queued:
        raise NotMeasured(f"{chosen + others:.0f} works of single functions were queued, and {queued:.0f} in total")
    if not chosen - (queued - started) <= seen <= min(chosen, started):
        raise NotMeasured(
            f"{seen} of {chosen:.0f} works were seen to start, and {started:.0f} of {queued:.0f} of all functions"
        )


def locality(
    records: Records, topology: MeasuredTopology, frame: str = "pairs", works: float | None = None
) -> dict[str, float | Unsupported]:
    """Return the shares of works that started on the CPU, core, L3 domain and node that queued them, in percent.

    For the L3 domain also return the share weighted by execution time, and the share expected if works started on
    random CPUs. Raises NotMeasured for the reasons of `read_pairs`.
    """
    pairs = read_pairs(records, topology.numbers, frame, works)
    found: dict[str, float | Unsupported] = {}
    levels = domains(topology)
    for level, domain in levels.items():
        missing = Unsupported(f"the kernel reports no {level} for each CPU of this device")
        found[f"local_{level}_share"] = share(pairs, domain) if domain else missing
    domain = levels["l3"]
    timed = all(pair.exec_ns is not None for pair in pairs)
    if domain is None:
        found["local_l3_time_share"] = found["local_l3_by_chance"] = Unsupported(
            "the kernel reports no L3 for each CPU"
        )
    else:
        found["local_l3_by_chance"] = chance(pairs, domain)
        found["local_l3_time_share"] = (
            share(pairs, domain, lambda pair: pair.exec_ns or 0) if timed else Unsupported("no event ends an execution")
        )
    return found
