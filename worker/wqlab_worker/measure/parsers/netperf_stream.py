"""Parser of plan netperf-stream: throughput of one netperf run, and counts of the whole device per 1000 messages.

Counts are per message and not per second, because messages per second are performance, which on an emulated device is
no evidence.
"""

from __future__ import annotations

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import MeasuredTopology

from ..collect import (
    Measurement,
    NoSamples,
    NotMeasured,
    Operations,
    Records,
    Unsupported,
    compute_measurement,
    count,
    number,
)
from .shares import cpu_utilisation, share

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
MIN_TIME_SHARE = 0.9
"""Smallest share of the requested run time after which a stream is complete."""
MIN_WAKEUPS = 20
"""Fewest wakeups across CPUs for a meaningful share."""
_DURATION = LinearPattern(r" -l (\d{1,5}) ")
_MESSAGE = LinearPattern(r" -m (\d{1,9}) ")


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    compute = _traced if traced else _untraced
    return compute_measurement(records, TRACED if traced else UNTRACED, lambda: compute(records))


def operations(records: Records) -> dict[str, Operations]:
    return {"messages": Operations(whole(read_netperf(records), "LOCAL_SEND_CALLS"), "message")}


def read_netperf(records: Records, frame: str = "netperf") -> dict[str, str]:
    """Read the `NAME=value` lines of netperf's `-k` output in a frame.

    Raises NotMeasured for a run that sent nothing, ended early, or whose counts contradict each other.
    """
    lines = (line.partition("=") for line in records.frame(frame))
    found = {name: value.strip() for name, equals, value in lines if equals}
    if not whole(found, "LOCAL_SEND_CALLS") or not whole(found, "LOCAL_BYTES_SENT"):
        raise NoSamples("netperf sent no message")
    _check_work(found, records.command or "")
    return found


def _check_work(netperf: dict[str, str], command: str) -> None:
    """Raise NotMeasured unless the stream ran for the requested time and its bytes are those of its messages."""
    calls, sent = whole(netperf, "LOCAL_SEND_CALLS"), whole(netperf, "LOCAL_BYTES_SENT")
    arrived = whole(netperf, "REMOTE_BYTES_RECVD")
    if not arrived:
        raise NotMeasured(f"netperf sent {sent} bytes, and none arrived")
    if (duration := _DURATION.search(command)) and figure(netperf, "ELAPSED_TIME") < MIN_TIME_SHARE * int(duration[1]):
        raise NotMeasured(f"netperf ran for {netperf['ELAPSED_TIME']} of {duration[1]} s")
    if message := _MESSAGE.search(command):
        size = int(message[1])
        # The timer can interrupt a call that has sent a part of its message; only the receiver counts that part.
        if abs(sent - calls * size) > size:
            raise NotMeasured(f"netperf sent {sent} bytes in {calls} messages of {size} bytes")
        if arrived > sent + size:
            raise NotMeasured(f"netperf sent {sent} bytes, and {arrived} arrived")


def _traced(records: Records) -> dict[str, float | Unsupported]:
    thousands = whole(read_netperf(records), "LOCAL_SEND_CALLS") / 1000
    unsupported = dict(records.unsupported)
    found: dict[str, float | Unsupported] = {
        name: records.value(name) / thousands
        for name in ("queued_wakeups", "remote_wakeups", "wakeups")
        if name not in unsupported
    }
    reasons = (unsupported[name] for name in ("queued_wakeups", "remote_wakeups") if name in unsupported)
    reason = next(reasons, None)
    found["queued_wakeup_share"] = _queued_share(records) if reason is None else reason
    return found


def _queued_share(records: Records) -> float | Unsupported:
    """Return the percentage (0..100) of queued wakeups among those across CPUs.

    The two counts are independent: one is the tracer's, the other the scheduler's.
    """
    queued, remote = records.value("queued_wakeups"), records.value("remote_wakeups")
    if remote < MIN_WAKEUPS:
        return Unsupported(f"only {remote:.0f} wakeups were of a task on another CPU", NotMeasuredCause.UNRELIABLE)
    if queued > remote:
        return Unsupported(
            f"{queued:.0f} queued wakeups were traced, but {remote:.0f} counted across CPUs",
            NotMeasuredCause.UNRELIABLE,
        )
    return share(queued, remote, "queued wakeups")


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    netperf = read_netperf(records)
    if (units := netperf.get("THROUGHPUT_UNITS")) != UNITS:
        raise NotMeasured(f"netperf counts in {units or 'no known unit'}, not in {UNITS}")
    thousands = whole(netperf, "LOCAL_SEND_CALLS") / 1000
    unsupported = dict(records.unsupported)
    found: dict[str, float | Unsupported] = {
        name: records.value(name) / thousands
        for name in ("context_switches", "call_function_interrupts", "reschedule_interrupts")
        if name not in unsupported
    }
    return found | {
        "recv": figure(netperf, "REMOTE_RECV_THROUGHPUT"),
        "send": figure(netperf, "LOCAL_SEND_THROUGHPUT"),
        "idle_share": 100.0 - cpu_utilisation(records),
    }


def figure(netperf: dict[str, str], name: str) -> float:
    """Return a rate or time of netperf's output. Raises NotMeasured if it is missing or implausible."""
    try:
        found = number(netperf[name])
    except (KeyError, ValueError) as error:
        raise NotMeasured(f"netperf's {name}: {error}") from None
    if found < 0:
        raise NotMeasured(f"netperf's {name} is {netperf[name]}")
    return found


def whole(netperf: dict[str, str], name: str) -> int:
    """Return a count of netperf's output. Raises NotMeasured if it is missing or implausible."""
    try:
        return count(netperf[name])
    except (KeyError, ValueError) as error:
        raise NotMeasured(f"netperf's {name}: {error}") from None
