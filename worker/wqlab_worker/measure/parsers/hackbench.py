"""Parser of plan hackbench: time of the messages, counts per 1000 messages, and the latency of wakeups.

Frames: `hackbench` has the program's output, `histogram wakeup_us` the times from wakeup to start of its tasks, and
`loads`, of scenarios with a load, the module's result of each load, one after the other.
"""

from __future__ import annotations

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, NotMeasured, Operations, Records, Unsupported, compute_measurement, number
from .histogram import PERCENTILES, read_histogram, supported_percentile, total
from .hotplug import lost_beside
from .shares import cpu_utilisation

TRACED = (
    "wakeups_per_1000_messages",
    "migrations_per_1000_messages",
    "wakeup_p50_us",
    "wakeup_p99_us",
    "wakeup_p999_us",
)
UNTRACED = ("context_switches_per_1000_messages", "time_s", "works_lost", "cpu_utilisation")

_REQUEST = LinearPattern(r"-g (\d{1,6}) -f (\d{1,6}) -l (\d{1,9}) -s (\d{1,9})")
_TASKS = LinearPattern(r"with (\d{1,6}) groups using (\d{1,7}) file descriptors each \(== (\d{1,9}) tasks\)")
_MESSAGES = LinearPattern(r"will pass (\d{1,9}) messages of (\d{1,9}) bytes")


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    compute = _traced if traced else _untraced
    return compute_measurement(records, TRACED if traced else UNTRACED, lambda: compute(records))


def operations(records: Records) -> dict[str, Operations]:
    return {"messages": Operations(read_hackbench(records)[0], "message")}


def read_hackbench(records: Records) -> tuple[int, float]:
    """Return the number of messages that were received, and the time in seconds.

    hackbench ends without an error, and prints a time, only if each receiver has read all messages. Raises NotMeasured
    if it printed none, or was run with another request than the command's.
    """
    text = "\n".join(records.frame("hackbench"))
    request = _REQUEST.search(records.command or "")
    tasks, messages = _TASKS.search(text), _MESSAGES.search(text)
    if request is None or tasks is None or messages is None:
        raise NotMeasured("hackbench does not say how many tasks sent how many messages")
    groups, fds, loops, size = (int(found) for found in request.groups())
    requested = (groups, 2 * fds, 2 * fds * groups, loops, size)
    if (ran := tuple(int(found) for found in (*tasks.groups(), *messages.groups()))) != requested:
        names = "groups, descriptors of each, tasks, messages, bytes"
        raise NotMeasured(f"hackbench ran with {names} {ran}, and {requested} were requested")
    times = [line.removeprefix("Time:").strip() for line in text.splitlines() if line.startswith("Time:")]
    if len(times) != 1:
        raise NotMeasured(f"hackbench printed {len(times)} times, so not all messages were received")
    try:
        seconds = number(times[0])
    except ValueError as error:
        raise NotMeasured(f"hackbench's time: {error}") from None
    # Each sender of a group sends to each receiver of the group.
    return groups * fds * fds * loops, seconds


def _traced(records: Records) -> dict[str, float | Unsupported]:
    thousands = read_hackbench(records)[0] / 1000
    lost_beside(records)
    delays = read_histogram(records, "wakeup_us")
    return {
        "wakeups_per_1000_messages": total(delays) / thousands,
        "migrations_per_1000_messages": records.value("migrations") / thousands,
        **{f"wakeup_{name}_us": supported_percentile(delays, name, "wakeups") for name in PERCENTILES},
    }


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    messages, seconds = read_hackbench(records)
    return {
        "context_switches_per_1000_messages": records.value("context_switches") / (messages / 1000),
        "time_s": seconds,
        "works_lost": lost_beside(records),
        "cpu_utilisation": cpu_utilisation(records),
    }
