"""Parser of plan rt-app: how late requests start and how many end late, and wakeups and migrations of their threads.

Frames: `request` has rt-app's description of the threads (JSON), `requests` a line `THREAD REQUESTS LATE` for each log,
`histogram wakeup_latency_us` how late each request started, `histogram run_us` how long its execution took, and
`loads`, of scenarios with a load, the module's result of each load. Traced repetitions have `histogram wakeup_us`, the
time from sched_waking to sched_switch.
"""

from __future__ import annotations

import json

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, NotMeasured, Operations, Records, Unsupported, compute_measurement, count
from .histogram import PERCENTILES, read_histogram, supported_percentile, total
from .hotplug import lost_beside
from .shares import cpu_utilisation

TRACED = (
    "migrations_per_1000_requests",
    "wakeups_per_request",
    "scheduling_p50_us",
    "scheduling_p99_us",
)
REQUESTS = (
    "wakeup_p50_us",
    "wakeup_p99_us",
    "wakeup_p999_us",
    "wakeup_max_us",
    "late_share",
    "run_p50_us",
    "run_p99_us",
    "context_switches_per_1000_requests",
    "cpu_utilisation",
)
"""Metrics of untraced repetitions that the plans rt-app and rt-app-scopes share."""
UNTRACED = (*REQUESTS, "works_lost")


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    compute = _traced if traced else _untraced
    return compute_measurement(records, TRACED if traced else UNTRACED, lambda: compute(records))


def operations(records: Records) -> dict[str, Operations]:
    return {"requests": Operations(read_requests(records)[0], "request")}


def read_requests(records: Records) -> tuple[int, int]:
    """Return the number of requests, and how many of them ended after their period.

    Raises NotMeasured unless each thread's log has as many requests as rt-app was told to execute.
    """
    requested = _requested(records)
    done: dict[int, int] = {}
    late = 0
    for line in records.frame("requests"):
        try:
            thread, requests, ended_late = (count(text) for text in line.split())
        except ValueError as error:
            raise NotMeasured(f"requests: unreadable line {line[:80]!r}: {error}") from None
        if ended_late > requests:
            raise NotMeasured(f"thread {thread} ended {ended_late} of {requests} requests late")
        done[thread] = requests
        late += ended_late
    for thread, wanted in requested.items():
        if done.get(thread, 0) != wanted:
            raise NotMeasured(f"thread {thread} completed {done.get(thread, 0)} of {wanted} requests")
    if unknown := done.keys() - requested.keys():
        raise NotMeasured(f"there is a log of thread {min(unknown)}, which was not requested")
    return sum(requested.values()), late


def _requested(records: Records) -> dict[int, int]:
    """Return thread -> number of requests, from rt-app's description. Raises NotMeasured if it is not readable."""
    try:
        tasks = json.loads("\n".join(records.frame("request")))["tasks"]
        found = {
            number: count(str(task["phases"]["request"]["loop"])) for number, task in enumerate(dict(tasks).values())
        }
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise NotMeasured(f"rt-app's description of the threads is not readable: {str(error)[:200]}") from None
    if not sum(found.values()):
        raise NotMeasured("no request was requested")
    return found


def request_metrics(records: Records) -> dict[str, float | Unsupported]:
    """Return the metrics in REQUESTS. Those of wakeups are Unsupported if no thread was woken. Raises NotMeasured.

    p99 and p999 are Unsupported below 100 and 1000 wakeups or requests.
    """
    requests, late = read_requests(records)
    wakeups, runs = read_histogram(records, "wakeup_latency_us"), read_histogram(records, "run_us")
    if total(runs) != requests or total(wakeups) > requests - late:
        raise NotMeasured(
            f"{total(runs)} run times and {total(wakeups)} wakeups of {requests} requests, {late} of them late"
        )
    found: dict[str, float | Unsupported] = {}
    if wakeups:
        found = {f"wakeup_{name}_us": supported_percentile(wakeups, name, "wakeups") for name in PERCENTILES}
        found["wakeup_max_us"] = max(wakeups)
    else:
        reason = f"no request waited for its timer: {late} of {requests} ended after their period"
        names = [f"wakeup_{name}_us" for name in (*PERCENTILES, "max")]
        found = dict.fromkeys(names, Unsupported(reason, NotMeasuredCause.NO_SAMPLES))
    return found | {
        "late_share": 100 * late / requests,
        **{f"run_{name}_us": supported_percentile(runs, name, "requests") for name in ("p50", "p99")},
        "context_switches_per_1000_requests": records.value("context_switches") / (requests / 1000),
        "cpu_utilisation": cpu_utilisation(records),
    }


def scheduling_metrics(records: Records) -> dict[str, float | Unsupported]:
    """Return the metrics in TRACED. Raises NotMeasured."""
    requests, _ = read_requests(records)
    delays = read_histogram(records, "wakeup_us")
    return {
        "migrations_per_1000_requests": records.value("migrations") / (requests / 1000),
        "wakeups_per_request": total(delays) / requests,
        **{f"scheduling_{name}_us": supported_percentile(delays, name, "wakeups") for name in ("p50", "p99")},
    }


def _traced(records: Records) -> dict[str, float | Unsupported]:
    lost_beside(records)
    return scheduling_metrics(records)


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    return {**request_metrics(records), "works_lost": lost_beside(records)}
