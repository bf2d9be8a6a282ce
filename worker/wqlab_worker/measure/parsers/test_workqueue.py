"""Parser of plan test-workqueue: lines of lib/test_workqueue.c (Linux 7.1) in the kernel's log, one for each scope.

    test_workqueue: running 8 threads, 50000 items/thread
    test_workqueue:   cache_shard      1234567 items/sec<tab>p50=410<tab>p90=702<tab>p95=911 ns
    test_workqueue: write 'cache_shard' failed: -22

Percentiles are of the time in queue_work(), not of the time that a work item waits.
"""

from __future__ import annotations

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, NotMeasured, Records, Unsupported, compute_measurement, count
from .shares import cpu_utilisation

SCOPES = ("cpu", "smt", "cache_shard", "cache", "numa", "system")
FIGURES = ("items_per_s", "p50_ns", "p90_ns", "p95_ns")
TRACED = ()
UNTRACED = (
    "scopes_run",
    *(f"{scope}_{figure}" for scope in SCOPES for figure in FIGURES),
    "cpu_utilisation",
    "context_switches",
)
_RUN = LinearPattern(r"test_workqueue:\s+(\w+)\s+(\d+) items/sec\s+p50=(\d+)\s+p90=(\d+)\s+p95=(\d+) ns\s*")
_START = LinearPattern(r"test_workqueue: running (\d+) threads, (\d+) items/thread")
_ITEMS = LinearPattern(r" wq_items=(\d+)")
_ERROR = LinearPattern(r"test_workqueue: (.*failed.*)")


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    return compute_measurement(records, TRACED if traced else UNTRACED, lambda: {} if traced else _untraced(records))


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    lines = records.frame("benchmark")
    _check_items(lines, records.command or "")
    runs = [match.groups() for match in map(_RUN.fullmatch, lines) if match]
    if len({scope for scope, *_ in runs}) != len(runs):
        raise NotMeasured("the benchmark reports a scope twice")
    found: dict[str, float | Unsupported] = {"scopes_run": sum(scope in SCOPES for scope, *_ in runs)}
    error = next((match[1] for match in map(_ERROR.fullmatch, lines) if match), "it printed no such line")
    for scope in SCOPES:
        missing = Unsupported(f"the benchmark reports nothing for scope {scope}: {error}", NotMeasuredCause.UNRELIABLE)
        found |= {f"{scope}_{figure}": missing for figure in FIGURES}
    for scope, *numbers in runs:
        if scope in SCOPES:
            found |= {f"{scope}_{figure}": count(text) for figure, text in zip(FIGURES, numbers, strict=True)}
    found["cpu_utilisation"] = cpu_utilisation(records)
    found["context_switches"] = records.value("context_switches")
    return found


def _check_items(lines: list[str], command: str) -> None:
    """Raise NotMeasured unless each thread queued the requested number of items. A scope's line says that all ran."""
    queued = next((match[2] for match in map(_START.fullmatch, lines) if match), "an unknown number of")
    if (requested := _ITEMS.search(command)) and queued != requested[1]:
        raise NotMeasured(f"the benchmark queued {queued} items a thread, and {requested[1]} were requested")
