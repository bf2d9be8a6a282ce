"""Plan netperf-stream: what one netperf run moved, and what the whole device did meanwhile for every 1000 messages.

Counts are set against the messages that were sent, because how many there are in a second is performance: on an
emulated device no evidence.
"""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import Lacking, Measurement, NoSamples, NotMeasured, Records, count, measure, number

TRACED = ("queued_wakeup_share", "queued_wakeups", "remote_wakeups", "wakeups")
UNTRACED = (
    "recv",
    "send",
    "idle_share",
    "context_switches",
    "call_function_interrupts",
    "reschedule_interrupts",
)

UNITS = "10^6bits/s"
LEAST_WAKEUPS = 20
"""Of fewer, a share would be an accident."""


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    compute = _traced if traced else _untraced
    return measure(records, TRACED if traced else UNTRACED, lambda: compute(records))


def read_netperf(records: Records) -> dict[str, str]:
    """`NAME=value` lines of netperf's `-k` output. Raises NotMeasured for a run that sent nothing."""
    lines = (line.partition("=") for line in records.frame("netperf"))
    found = {name: value.strip() for name, equals, value in lines if equals}
    if not _whole(found, "LOCAL_SEND_CALLS") or not _whole(found, "LOCAL_BYTES_SENT"):
        raise NoSamples("netperf sent no message")
    return found


def _traced(records: Records) -> dict[str, float | Lacking]:
    thousands = _whole(read_netperf(records), "LOCAL_SEND_CALLS") / 1000
    said = dict(records.unsupported)
    found: dict[str, float | Lacking] = {
        name: records.value(name) / thousands
        for name in ("queued_wakeups", "remote_wakeups", "wakeups")
        if name not in said
    }
    lacking = next((said[name] for name in ("queued_wakeups", "remote_wakeups") if name in said), None)
    found["queued_wakeup_share"] = Lacking(lacking) if lacking else _share(records)
    return found


def _share(records: Records) -> float | Lacking:
    """Percent (0..100) of the wakeups across CPUs that were queued, from two counts of the kernel that know nothing of
    each other: the tracer's and the scheduler's."""
    queued, remote = records.value("queued_wakeups"), records.value("remote_wakeups")
    if remote < LEAST_WAKEUPS:
        return Lacking(f"not measured: only {remote:.0f} wakeups were of a task on another CPU")
    if queued > remote:
        return Lacking(f"not measured: {queued:.0f} queued wakeups were traced, but {remote:.0f} counted across CPUs")
    return 100.0 * queued / remote


def _untraced(records: Records) -> dict[str, float | Lacking]:
    netperf = read_netperf(records)
    if (units := netperf.get("THROUGHPUT_UNITS")) != UNITS:
        raise NotMeasured(f"netperf counts in {units or 'no known unit'}, not in {UNITS}")
    thousands = _whole(netperf, "LOCAL_SEND_CALLS") / 1000
    said = dict(records.unsupported)
    found: dict[str, float | Lacking] = {
        name: records.value(name) / thousands
        for name in ("context_switches", "call_function_interrupts", "reschedule_interrupts")
        if name not in said
    }
    return found | {
        "recv": _figure(netperf, "REMOTE_RECV_THROUGHPUT"),
        "send": _figure(netperf, "LOCAL_SEND_THROUGHPUT"),
        "idle_share": 100.0 - records.value("cpu_utilisation"),
    }


def _figure(netperf: dict[str, str], name: str) -> float:
    try:
        return number(netperf[name])
    except (KeyError, ValueError) as error:
        raise NotMeasured(f"netperf's {name}: {error}") from None


def _whole(netperf: dict[str, str], name: str) -> int:
    try:
        return count(netperf[name])
    except (KeyError, ValueError) as error:
        raise NotMeasured(f"netperf's {name}: {error}") from None
