"""Parser of plans work-latency and work-latency-scopes: counts, pairs of CPUs and histograms of module work_latency.

Lost works and lost wakeups are counted by the module, and do not depend on how fast the device is. Times are those of
the device's clock, in histograms whose buckets are at most 1/64 of their value wide; the maxima are exact.
"""

from __future__ import annotations

from wqlab_contracts.enums import NotMeasuredCause
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
from .histogram import PERCENTILES, read_histogram, supported_percentile
from .pairs import locality
from .shares import cpu_utilisation, share

SHARES = ("local_cpu_share", "local_core_share", "local_l3_share", "local_node_share", "local_l3_by_chance")
TRACED = ()
UNTRACED = (
    "loses_wakeups",
    "lost_wakeups",
    "works_lost",
    "rule_violations",
    "wakeups_per_work",
    *SHARES,
    "works_executed",
    "rescued_share",
    "beside_long_share",
    "workers",
    "queue_to_start_p50_us",
    "queue_to_start_p99_us",
    "queue_to_start_p999_us",
    "queue_to_start_max_us",
    "start_to_end_p50_us",
    "start_to_end_p99_us",
    "works_late",
    "cpu_utilisation",
    "context_switches",
)
EXACT_BITS = 7
"""Bits of a time that decide its bucket (kernels/modules/work_latency/histogram.c): it is exact up to 127 ns."""
COUNTS = (
    *(
        "queued",
        "executed",
        "lost",
        "late",
        "lost_wakeups",
        "revived",
        "misplaced",
        "early",
        "wrong_context",
        "wakeups",
    ),
    *("workers", "rescued", "burn_us", "beside_long", "queue_to_start_max_ns", "start_to_end_max_ns"),
)


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    names = TRACED if traced else UNTRACED
    return compute_measurement(records, names, lambda: {} if traced else _untraced(records, topology))


def operations(records: Records) -> dict[str, Operations]:
    return {"works_executed": Operations(read_result(records)["executed"], "work item")}


def read_result(records: Records) -> dict[str, int]:
    """Read the module's `result`, one `name value` a line. Raises NotMeasured unless each of COUNTS is a count."""
    found = dict(line.split(" ", 1) for line in records.frame("latency") if " " in line)
    try:
        return {name: count(found[name]) for name in COUNTS}
    except KeyError as error:
        raise NotMeasured(f"the module's result lacks {error}") from None
    except ValueError as error:
        raise NotMeasured(f"the module's result is unreadable: {error}") from None


def times(records: Records, name: str, longest_ns: int, works: int) -> dict[str, float | Unsupported]:
    """Return the percentiles and the maximum of a histogram in us, `NAME_p50_us` to `NAME_max_us`.

    A percentile needs so many works that one is above it: 100 for p99 and 1000 for p999. Raises NotMeasured if the
    histogram does not have `works` works, or its last bucket is not that of the maximum.
    """
    histogram = read_histogram(records, f"{name}_ns", works)
    if _bucket(last := max(histogram)) != _bucket(longest_ns):
        raise NotMeasured(f"the last bucket of histogram {name}_ns is at {last} ns, and the maximum is {longest_ns} ns")
    found: dict[str, float | Unsupported] = {f"{name}_max_us": longest_ns / 1000}
    for percentile_name in PERCENTILES:
        ns = supported_percentile(histogram, percentile_name, "works")
        # A bucket has the value of its middle, which may be above the maximum.
        found[f"{name}_{percentile_name}_us"] = ns if isinstance(ns, Unsupported) else min(ns, longest_ns) / 1000
    return found


def _bucket(ns: int) -> tuple[int, int]:
    """Return what all times of a bucket have in common: the number of bits that are left out, and the others."""
    left_out = max(ns.bit_length() - EXACT_BITS, 0)
    return left_out, ns >> left_out


def _untraced(records: Records, topology: MeasuredTopology) -> dict[str, float | Unsupported]:
    result = read_result(records)
    if result["executed"] + result["lost"] != result["queued"]:
        raise NotMeasured(
            f"{result['executed']} executed and {result['lost']} lost works are not the {result['queued']} queued ones"
        )
    found: dict[str, float | Unsupported] = {
        "loses_wakeups": int(result["lost_wakeups"] > 0),
        "lost_wakeups": result["lost_wakeups"],
        "works_lost": result["lost"],
        "rule_violations": result["misplaced"] + result["early"] + result["wrong_context"],
        "works_executed": result["executed"],
        "works_late": result["late"],
        "workers": result["workers"],
        "cpu_utilisation": cpu_utilisation(records),
        "context_switches": records.value("context_switches"),
    }
    if not result["executed"]:
        # All works were lost. That is a result, and the other metrics have nothing to compute from.
        none = Unsupported("no work was executed", NotMeasuredCause.UNRELIABLE)
        return {**dict.fromkeys(UNTRACED, none), **found}
    found["wakeups_per_work"] = result["wakeups"] / result["executed"]
    found["rescued_share"] = share(result["rescued"], result["executed"], "works of a rescuer")
    found["beside_long_share"] = (
        share(result["beside_long"], result["executed"], "works beside a long one")
        if result["burn_us"]
        else Unsupported("counted in scenario behind-long only", NotMeasuredCause.LACKING)
    )
    shares = locality(records, topology, works=result["executed"])
    found |= {name: shares[name] for name in SHARES}
    waits = times(records, "queue_to_start", result["queue_to_start_max_ns"], result["executed"])
    return found | waits | times(records, "start_to_end", result["start_to_end_max_ns"], result["executed"])
