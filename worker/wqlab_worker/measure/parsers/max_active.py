"""Parser of plan max-active: counts of module max_active, of one request or (in `fair`) two.

Counts do not depend on how fast the device is, except that a work, place or chain counts as lost after nothing has
started or ended for stall_ms. Times are those of the device's clock.
"""

from __future__ import annotations

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import MeasuredTopology

from ..collect import (
    Measurement,
    NotMeasured,
    Operations,
    Records,
    Unsupported,
    compute_measurement,
    count,
)
from .shares import cpu_utilisation, share

SHAPES = ("fan", "nested", "crossed", "fair", "shares")
CHAINS = ("nested", "crossed")
TRACED = ()
UNTRACED = (
    "rule_violations",
    "limit_violations",
    "concurrency_deficit",
    "deadlocks",
    "works_lost",
    "concurrency",
    "overtaken_max",
    "overtaken_mean",
    "least_served_share",
    "works_executed",
    "start_delay_mean_us",
    "start_delay_max_us",
    "at_limit_share",
    "cpu_utilisation",
    "context_switches",
)
COUNTS = (
    *("max_active", "works", "queued", "executed", "lost", "wanted", "peak", "excess", "deficit", "slots_lost"),
    *("chains", "deadlocks", "polite", "overtaken", "overtaken_max", "least_served"),
    *("delays", "delays_ns", "delay_max_ns", "waiting_us", "full_us"),
)
_REQUEST = LinearPattern(r"shape=(\w+) kind=(\w+) max_active=(\d+)")

Result = dict[str, int]
"""The module's result for one request: name of the count, as in COUNTS -> count."""


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    return compute_measurement(records, TRACED if traced else UNTRACED, lambda: {} if traced else _untraced(records))


def operations(records: Records) -> dict[str, Operations]:
    executed = sum(result["executed"] for result in read_results(records).values())
    return {"works_executed": Operations(executed, "work item")}


def read_results(records: Records) -> dict[str, Result]:
    """Read the result of each request of the command, by its shape. Raises NotMeasured."""
    found = {}
    for request in _REQUEST.finditer(records.command or ""):
        shape, kind, limit = request.groups()
        lines = dict(line.split(" ", 1) for line in records.frame(shape) if " " in line)
        for name, requested in (("shape", shape), ("kind", kind), ("max_active", limit)):
            if lines.get(name) != requested:
                raise NotMeasured(f"the module's result is for {name} {lines.get(name)}, and {requested} was requested")
        try:
            found[shape] = {name: count(lines[name]) for name in COUNTS}
        except KeyError as error:
            raise NotMeasured(f"the module's result lacks {error}") from None
        except ValueError as error:
            raise NotMeasured(f"the module's result is unreadable: {error}") from None
        _check_groups(records, shape, found[shape])
    if not found:
        raise NotMeasured("the command has no request to the module")
    return found


def _check_groups(records: Records, shape: str, result: Result) -> None:
    """Raise NotMeasured unless the counts of the single limits are those of the whole.

    A line has the place (a CPU or node, or -1), the workqueue, its limit, the most works at once, and those executed.
    """
    try:
        groups = [[count(word) for word in line.split()[1:]] for line in records.frame(f"groups {shape}")]
        excess = sum(max(0, peak - limit) for _, limit, peak, _ in groups)
        executed = sum(ended for *_, ended in groups)
    except ValueError as error:
        raise NotMeasured(f"the module's groups are unreadable: {error}") from None
    if (excess, executed) != (result["excess"], result["executed"]):
        raise NotMeasured(
            f"{excess} works beyond the limit and {executed} executed ones in the module's groups are not the "
            f"{result['excess']} and {result['executed']} of its result"
        )
    if result["executed"] + result["lost"] != result["queued"]:
        raise NotMeasured(
            f"{result['executed']} executed and {result['lost']} lost works are not the {result['queued']} queued ones"
        )


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    results = read_results(records)
    shape, result = next(iter(results.items()))

    def total(name: str) -> int:
        return sum(each[name] for each in results.values())

    def only(scenarios: str) -> Unsupported:
        return Unsupported(f"counted in scenarios {scenarios} only", NotMeasuredCause.LACKING)

    deficit = result["deficit"] + result["slots_lost"]
    found: dict[str, float | Unsupported] = {
        "rule_violations": total("excess")
        + total("deficit")
        + total("slots_lost")
        + total("deadlocks")
        + total("lost"),
        "limit_violations": total("excess"),
        "concurrency_deficit": deficit if shape == "fan" else only("fan-*"),
        "deadlocks": result["deadlocks"] if shape in CHAINS else only("nested-* and crossed-*"),
        "works_lost": total("lost"),
        "concurrency": result["peak"],
        "works_executed": total("executed"),
        "at_limit_share": only("fan-*"),
        "cpu_utilisation": cpu_utilisation(records),
        "context_switches": records.value("context_switches"),
        **dict.fromkeys(("overtaken_max", "overtaken_mean", "least_served_share"), only("fair-*")),
        **_delays(shape, result),
    }
    if shape == "fan":
        found["at_limit_share"] = (
            share(result["full_us"], result["waiting_us"], "us of the waits at the limit")
            if result["waiting_us"]
            else _below_limit(result)
        )
    if shape == "fair":
        found |= _fairness(result, results.get("shares"))
    return found


def _below_limit(result: Result) -> Unsupported:
    return Unsupported(
        f"no work had to wait: {result['queued']} works were queued and the limits allow {result['wanted']} at once",
        NotMeasuredCause.LACKING,
    )


def _delays(shape: str, result: Result) -> dict[str, float | Unsupported]:
    if not result["delays"]:
        reason = _below_limit(result) if shape == "fan" and not result["lost"] else None
        none = reason or Unsupported("no work started of which a delay is taken", NotMeasuredCause.UNRELIABLE)
        return {"start_delay_mean_us": none, "start_delay_max_us": none}
    return {
        "start_delay_mean_us": result["delays_ns"] / result["delays"] / 1000,
        "start_delay_max_us": result["delay_max_ns"] / 1000,
    }


def _fairness(fair: Result, shares: Result | None) -> dict[str, float | Unsupported]:
    if shares is None:
        raise NotMeasured("the command has no request of shape shares")
    if fair["lost"] or shares["lost"]:
        unfinished = Unsupported("not all works were executed", NotMeasuredCause.UNRELIABLE)
        return dict.fromkeys(("overtaken_max", "overtaken_mean", "least_served_share"), unfinished)
    least = share(shares["least_served"], shares["works"], "works of the least served workqueue")
    if not fair["polite"]:
        reason = f"all {fair['works']} works of the greedy workqueue had started before another one was queued"
        no_wait = Unsupported(reason, NotMeasuredCause.LACKING)
        return {"overtaken_max": no_wait, "overtaken_mean": no_wait, "least_served_share": least}
    return {
        "overtaken_max": fair["overtaken_max"],
        "overtaken_mean": fair["overtaken"] / fair["polite"],
        "least_served_share": least,
    }
