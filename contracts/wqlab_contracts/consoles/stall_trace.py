"""Find where the CPU was stuck in the report of a soft or hard lockup or of an RCU stall.

Such a report has the traces of several CPUs and tasks, and each may begin with the interrupt that printed it. Formats:
kernel/watchdog.c, kernel/rcu/{tree_stall,tree_exp,tasks}.h, lib/nmi_backtrace.c, arch/powerpc/kernel/watchdog.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile

from ..defect_text import is_idle, is_spinning, prints_stall
from ..enums import FindingKind
from ..linear_patterns import LinearPattern
from ..messages import STACK_LIMIT
from .call_trace import LINE_LIMIT, Reference, addresses, call_trace, is_unreliable, named_once

_BEGINS = LinearPattern(
    r"NMI backtrace for cpu \d|Task dump for CPU \d|\bCPU: \d+ .{0,40}PID: \d|\bstate:[A-Z]|  running task  "
    r"|\bSending NMI |Stack dump where |\bkthread stack dump"
)
"""Line after which the trace of another CPU or task begins."""
_ENDS = LinearPattern(r"\bRIP: 00(?:33|23):|</TASK>")
_NO_FRAME = LinearPattern(r" last +(?:en|dis)abled at |(?:^|\] ?) {0,4}(?:lr|ra|RA|LR)\b|\bLR is at |\bcsd: ")
"""Line with addresses that are no part of a trace."""
_GRACE_PERIODS = "rcu_gp_kthread"
"""RCU's own thread, which waits for the CPU that is stuck."""


def trace_of(kind: FindingKind, report: str) -> list[Reference]:
    """Return the trace that names the defect of a report, innermost function first."""
    return stall_trace(report) if kind in {FindingKind.LOCKUP, FindingKind.RCU_STALL} else call_trace(report)


def stall_trace(report: str) -> list[Reference]:
    """Return the trace of the CPU or task that was stuck, innermost function first. What printed it is left out.

    It is the first trace that shows more than an idle or waiting CPU and RCU's own thread; if none does, the first one.
    """
    traces = [trace for each in _traces(report.splitlines()) if (trace := list(dropwhile(_is_of_interrupt, each)))]
    traces = [trace for trace in traces if all(each.function != _GRACE_PERIODS for each in trace)]
    stuck = [trace for trace in traces if (place := _place(trace)) and not is_idle(place)]
    return named_once(next(iter([*stuck, *traces]), []))[:STACK_LIMIT]


def _is_of_interrupt(reference: Reference) -> bool:
    return prints_stall(reference.function)


def _place(trace: Sequence[Reference]) -> str:
    return next((each.function for each in trace if not is_spinning(each.function)), "")


def _traces(lines: Sequence[str]) -> Iterator[list[Reference]]:
    trace: list[Reference] = []
    ended = False
    for text in lines:
        line = text[:LINE_LIMIT]
        if _BEGINS.search(line):
            yield trace
            trace, ended = [], False
        elif _ENDS.search(line):
            ended = True
        elif not ended and not is_unreliable(line) and not _NO_FRAME.search(line):
            trace += addresses(line)
    yield trace
