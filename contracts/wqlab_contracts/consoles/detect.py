"""Detect kernel reports and the ready line in a console's bytes. The result does not depend on how the bytes are split
into chunks.

Only whole lines are matched, since a part of a line may match another pattern; `report_rules` has the patterns. Where
lines carry the caller (CONFIG_PRINTK_CALLER), each caller has a report of its own: several CPUs may report at once.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ..enums import STALLS, FindingKind
from ..keys import describe_defect
from ..linear_patterns import LinearPattern
from ..messages import StackFrame
from .call_trace import stack_frames
from .console_lines import ConsoleLine, clean, read_line, without_prefix
from .hardware_evidence import HardwareEvidence
from .open_report import OpenReport
from .report_rules import (
    CUT_HERE,
    END_TASK,
    RULE,
    Rule,
    begins_report,
    classify,
    is_cut_off,
    is_reset,
    lead_lines,
    may_begin,
)
from .stall_trace import trace_of

LINE_LIMIT = 8192
"""Longest line in bytes; longer ones are cut, so that garbage without line ends cannot fill the memory."""
OPEN_LIMIT = 64
"""Most reports that are open at once, one of each caller."""
REPORTED_LIMIT = 1000
"""Number of reports of each kernel that the detector remembers, to recognise them in a crash log."""
CRASH_KERNEL = "wqlab.crash_kernel"
"""Word on the command line of a crash kernel, which prints that line when it starts."""

_READY = LinearPattern(r"wqlab-ready token=(\S+) boot_id=([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\s*$")
_CRASH_LOG = LinearPattern(r"wqlab-crash-log (begins|ends)\s*$")
"""Marker line that a crash kernel prints before and after the log of the crashed kernel (guest/crash_init)."""
_COMMAND_LINE = LinearPattern(r"(?:Kernel command line|Command line): .*(?: |^)wqlab\.crash_kernel(?: |$)")
_BACKTRACE = LinearPattern(r"^NMI backtrace for cpu \d+", ["NMI backtrace"])
"""Line with which another CPU begins its backtrace for a stall."""
_MARGINS = (" ", "\t", "|")
_ABORT = "external abort"
"""An arm64 oops that an uncorrected memory error can cause."""


@dataclass(frozen=True)
class Report:
    """One kernel report; `offset` is the position of its first line in the console, in bytes."""

    kind: FindingKind
    title: str
    excerpt: str
    offset: int
    fatal: bool
    of_hardware: bool = False
    """True if lines before it show that the hardware reported an uncorrected error: no kernel is to blame."""
    last_offset: int = 0
    """Position of its last line in the console, in bytes."""

    @property
    def stack(self) -> tuple[StackFrame, ...]:
        """Call trace of the report, innermost function first, as addresses; the decoder adds files and lines later."""
        return stack_frames(trace_of(self.kind, self.excerpt))

    @property
    def defect(self) -> str:
        """Description that is equal for two reports of one kernel about the same defect."""
        return describe_defect(self.kind, self.title, self.stack, self.excerpt)


@dataclass(frozen=True)
class Ready:
    """Ready line: the userland of a golden system or variant is up."""

    token: str
    boot_id: str


ConsoleEvent = Report | Ready


class _CrashKernel(enum.Enum):
    """State of a crash kernel, as far as the console shows it."""

    NOT_STARTED = enum.auto()
    STARTS = enum.auto()
    """The crash kernel boots. Its own reports are ignored, since they do not concern the kernel under test."""
    PRINTS_LOG = enum.auto()
    DONE = enum.auto()


class Detector:
    """Detector for one boot's console: `feed` it all bytes in order; `flush` ends a report without an end marker."""

    def __init__(self, *, has_crash_kernel: bool = True) -> None:
        """`has_crash_kernel`: a crash kernel may have been loaded. Without one the console's text can start none."""
        self.has_crash_kernel = has_crash_kernel
        self._partial = b""
        self._offset = 0
        self._margin = ""
        """What a mail or a bug tracker has before each line of the report, as indentation."""
        self._open: dict[str, OpenReport] = {}
        """Open reports by caller; the caller of a backtrace for a stall has the stall's report."""
        self._evidence = HardwareEvidence()
        self._crash_kernel = _CrashKernel.NOT_STARTED
        self._reported: set[str] = set()
        """Descriptions of the defects that the kernel under test has reported, at most REPORTED_LIMIT."""

    def begin_kernel(self) -> None:
        """Forget the reports so far. Call it when another kernel of the same boot starts, as after kexec."""
        self._crash_kernel = _CrashKernel.NOT_STARTED
        self._reported = set()
        self._evidence.forget()

    @property
    def crash_kernel_started(self) -> bool:
        """True once a crash kernel has started."""
        return self._crash_kernel is not _CrashKernel.NOT_STARTED

    @property
    def crash_log_ended(self) -> bool:
        """True once a crash kernel has printed the whole log of the kernel that crashed."""
        return self._crash_kernel is _CrashKernel.DONE

    @property
    def reporting(self) -> bool:
        """True while a report has begun and not ended."""
        return any(report.kind is not None for report in self._open.values())

    def feed(self, data: bytes) -> list[ConsoleEvent]:
        """Process the next bytes; return the reports and ready lines that they complete."""
        events: list[ConsoleEvent] = []
        data, start = self._partial + data, 0
        while end := _line_end(data, start):
            offset, self._offset = self._offset, self._offset + end - start
            self._line(clean(data[start:end]), offset, events)
            start = end
        self._partial = data[start:]
        return events

    def flush(self) -> list[ConsoleEvent]:
        """End the kernel report (oops, lockdep and so on) that is still being read; return its event, if there is one.

        Call it when the console is silent or the boot is over.
        """
        events: list[ConsoleEvent] = []
        self._close_all(events)
        return events

    def _line(self, text: str, offset: int, events: list[ConsoleEvent]) -> None:
        if text.startswith(_MARGINS):
            text = self._without_margin(text)
        if "wqlab-ready" in text and (ready := _READY.search(text)):
            events.append(Ready(ready[1], ready[2]))
            return
        if self._follows_crash_kernel(text, events):
            return
        if self._crash_kernel is _CrashKernel.PRINTS_LOG:
            text = without_prefix(text)  # the crash kernel's own time; that of the crashed kernel follows
        line = read_line(text)
        self._evidence.add(line, offset)
        may_be_first = may_begin(line.message)
        if not self._open and not may_be_first:
            return
        if may_be_first and is_reset(line.message):
            self._close_all(events)
            self._evidence.forget()
        report = self._report_of(line, events)
        message = line.message
        if report and report.is_continued_by(line):
            message = report.joined(message)
        elif report and report.is_only_title:
            self._close(report, events)
            report = None
        if may_be_first and message is line.message and self._begins_report(line, offset, report, events):
            return
        rule, title = classify(message) if may_be_first or message is not line.message else (None, "")
        if rule and not (report and report.continues_with(rule, title)):
            report = self._begin(line.caller, offset, events)
            self._add_evidence(report, rule, title, line)
        if report is None:
            return
        if rule:
            report.name(rule, title)
        report.add(line, message, offset)
        if report.ends_with(message):
            self._close(report, events)
        elif line.caller in report.guests and END_TASK.search(message):
            del self._open[line.caller]

    def _without_margin(self, text: str) -> str:
        """Return a line without what is before each line of the report that it begins or follows."""
        rest = text.lstrip("".join(_MARGINS))
        message = read_line(rest).message
        if may_begin(message) and begins_report(message):
            self._margin = text.removesuffix(rest)
        elif rest and not text.startswith(self._margin):
            self._margin = ""
        return text.removeprefix(self._margin)

    def _report_of(self, line: ConsoleLine, events: list[ConsoleEvent]) -> OpenReport | None:
        """Return the open report that the line may belong to. One that has ended before the line is closed."""
        report = self._open.get(line.caller) or self._open.get("")
        if report is None and line.message is line.text:  # the rest of a title has no caller
            report = next((each for each in self._open.values() if each.is_continued_by(line)), None)
        if report is None and _BACKTRACE.match(line.message):
            report = next((each for each in self._open.values() if each.kind in STALLS), None)
            if report:
                report.guests.add(line.caller)
                self._open[line.caller] = report
        if report and report.ended_before(line.message, line.time_s):
            self._close(report, events)
            return None
        return report

    def _begin(self, caller: str, offset: int, events: list[ConsoleEvent]) -> OpenReport:
        """Begin a report of a caller; its last one ends."""
        known = self._open.get(caller)
        if known and caller in known.guests:
            known.guests.discard(caller)
            del self._open[caller]
        elif known:
            self._close(known, events)
        if len(self._open) >= OPEN_LIMIT:
            self._close(next(iter(self._open.values())), events)
        self._open[caller] = OpenReport(offset, caller)
        return self._open[caller]

    def _begins_report(
        self, line: ConsoleLine, offset: int, report: OpenReport | None, events: list[ConsoleEvent]
    ) -> bool:
        """Handle a line that begins a report before the line with its kind; return True if it is one.

        These are separators (`cut here`, a line of = signs) and messages that the kernel prints before them.
        """
        message, is_rule = line.message, line.message.startswith("=") and RULE.match(line.message)
        if is_rule or ("cut here" in message and CUT_HERE.search(message)):
            if report and (report.takes_separator or (report.ends_with_rule if is_rule else report.takes_warning)):
                report.add(line, message, offset)
                if is_rule and report.ends_with_rule:
                    self._close(report, events)
                return True
        elif lines := lead_lines(message):
            if report and (report.kind is None or report.prints_trace):
                return False
            report = self._begin(line.caller, offset, events)
            report.allowed_lines = lines
            report.add(line, message, offset)
            return True
        elif (report and report.kind is None) or not is_cut_off(message, complete=False) or classify(message)[0]:
            return False
        self._begin(line.caller, offset, events).add(line, message, offset)
        return True

    def _add_evidence(self, report: OpenReport, rule: Rule, title: str, line: ConsoleLine) -> None:
        """Put the lines about an uncorrected hardware error before the panic that they caused."""
        if rule.kind is not FindingKind.PANIC and _ABORT not in title:
            return
        for evidence, offset in self._evidence.before(title, line.time_s):
            report.of_hardware = True
            report.add_before(evidence.text, offset)

    def _follows_crash_kernel(self, text: str, events: list[ConsoleEvent]) -> bool:
        """Update the state of the crash kernel; return True if the crash kernel itself printed the line."""
        state = self._crash_kernel
        if state is not _CrashKernel.PRINTS_LOG and "Linux version " in text:
            self._close_all(events)  # a panic that starts a crash kernel has no end marker
        if not self.has_crash_kernel:
            return False
        if state is _CrashKernel.NOT_STARTED and CRASH_KERNEL in text and _COMMAND_LINE.search(text):
            self._close_all(events)
            self._crash_kernel = _CrashKernel.STARTS
        elif "wqlab-crash-log" in text and (mark := _CRASH_LOG.search(text)):
            self._close_all(events)
            self._crash_kernel = _CrashKernel.PRINTS_LOG if mark[1] == "begins" else _CrashKernel.DONE
            return True
        return self._crash_kernel in (_CrashKernel.STARTS, _CrashKernel.DONE)

    def _close(self, report: OpenReport, events: list[ConsoleEvent]) -> None:
        """End a report, and add its event. A report that a crash log repeats gets no second event."""
        for caller in [caller for caller, each in self._open.items() if each is report]:
            del self._open[caller]
        if report.kind is None:
            return
        report.remove_tail()
        event = Report(
            report.kind,
            report.title[:300],
            report.excerpt,
            report.offset,
            report.fatal,
            report.of_hardware,
            report.last_offset,
        )
        defect = event.defect
        if self._crash_kernel is not _CrashKernel.PRINTS_LOG or defect not in self._reported:
            events.append(event)
        if len(self._reported) < REPORTED_LIMIT:
            self._reported.add(defect)

    def _close_all(self, events: list[ConsoleEvent]) -> None:
        while self._open:
            self._close(next(iter(self._open.values())), events)


def _line_end(data: bytes, start: int) -> int:
    """Return the end of the line at `start`, of at most LINE_LIMIT bytes; 0 if it is not complete."""
    end = data.find(b"\n", start, start + LINE_LIMIT) + 1
    return end or (start + LINE_LIMIT if len(data) - start >= LINE_LIMIT else 0)
