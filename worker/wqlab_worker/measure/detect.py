"""Detect kernel reports and the ready line in a console's bytes. The result does not depend on how the bytes are split
into chunks.

Only whole lines are matched, since a part of a line may match another pattern. Message formats are those of
Linux 6.1 to 7.x: kernel/panic.c, lib/bug.c, arch/*/mm/fault.c, kernel/locking/lockdep.c, kernel/hung_task.c,
kernel/watchdog.c, kernel/workqueue.c, kernel/rcu/tree_stall.h, mm/kasan/report.c.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field

from wqlab_contracts.enums import FindingKind
from wqlab_contracts.keys import describe_defect
from wqlab_contracts.messages import EXCERPT_LIMIT, StackFrame

from ..linear_patterns import LinearPattern
from ..stacks.call_trace import stack_frames

LINE_LIMIT = 8192
"""Longest line in bytes; longer ones are cut, so that garbage without line ends cannot fill the memory."""
REPORT_LINES = 3000
"""A report without an end marker ends after this many lines."""

REPORTED_LIMIT = 1000
"""Number of reports of each kernel that the detector remembers, to recognise them in a crash log."""
CRASH_KERNEL = "wqlab.crash_kernel"
"""Word on the command line of a crash kernel, which prints that line when it starts."""

_ANSI = LinearPattern(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")
_CONTROL = LinearPattern(r"[\x00-\x08\x0b-\x1f\x7f\x{fffd}]")
_PREFIX = LinearPattern(r"(?:<\d{1,2}>)?(?:\[ *\d+\.\d{6}\] ?(?:\[ *[TC]\d+\] ?)?)?")
"""printk's level, time and caller id (CONFIG_PRINTK_CALLER)."""

_READY = LinearPattern(r"wqlab-ready token=(\S+) boot_id=([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\s*$")
_CRASH_LOG = LinearPattern(r"wqlab-crash-log (begins|ends)\s*$")
"""Marker line that a crash kernel prints before and after the log of the crashed kernel (guest/crash_init)."""
_COMMAND_LINE = LinearPattern(r"(?:Kernel command line|Command line): .*(?: |^)wqlab\.crash_kernel(?: |$)")
_CUT_HERE = LinearPattern(r"-{8,}\[ cut here \]-{8,}\s*$")
_RULE = LinearPattern(r"={20,}\s*$")
_END_TRACE = LinearPattern(r"---\[ end trace [0-9a-f]+ \]---\s*$")
_END_PANIC = LinearPattern(r"---\[ end Kernel panic - not syncing.*\]---\s*$")
_END_TASK = LinearPattern(r"^ *</TASK>\s*$")

_MACHINE_CHECK = LinearPattern(
    r"(?i)^Kernel panic - not syncing: (?:Fatal (?:local )?machine check|Machine check from unknown source"
    r"|Uncorrected hardware memory error|NMI: (?:PCI system|IOCK) error)"
)
"""Panics of arch/x86/kernel/cpu/mce, arch/x86/kernel/nmi.c, drivers/acpi/apei and drivers/edac."""
HARDWARE_ERROR = "[Hardware Error]:"
"""Linux marks each line of a hardware error with this (HW_ERR)."""

_LOCKDEP = (
    r"possible (?:circular locking dependency|recursive locking|irq lock inversion dependency) detected"
    r"|possible irq lock inversion dependency detected|inconsistent lock state|chain_key collision"
    r"|(?:SOFT|HARD)IRQ-safe -> (?:SOFT|HARD)IRQ-unsafe lock order detected|suspicious RCU usage"
    r"|bad unlock balance detected!|bad contention detected!|held lock freed!|Nested lock was not taken"
    r"|lock held when returning to user space!|lock held at task exit time, still held!|.+/\d+ still has locks held!"
)


@dataclass(frozen=True)
class _Rule:
    kind: FindingKind
    pattern: LinearPattern
    fatal: bool
    text: str


def _rule(kind: FindingKind, pattern: str, *, fatal: bool = False) -> _Rule:
    return _Rule(kind, LinearPattern(pattern), fatal, pattern)


_RULES = (
    _rule(FindingKind.PANIC, r"Kernel panic - not syncing(?:: .*)?$", fatal=True),
    _rule(FindingKind.KASAN, r"BUG: (?:KASAN|KFENCE): \S.*$"),
    _rule(FindingKind.LOCKUP, r"Watchdog detected hard LOCKUP on cpu \d+.*$", fatal=True),
    _rule(FindingKind.LOCKUP, r"BUG: soft lockup - CPU#\d+ stuck for \d+s! \[.*\]\s*$"),
    _rule(FindingKind.WORKQUEUE_STALL, r"BUG: workqueue lockup - pool .* stuck for \d+s!\s*$"),
    _rule(FindingKind.OOPS, r"BUG: kernel NULL pointer dereference, address: [0-9a-f]+\s*$", fatal=True),
    _rule(FindingKind.OOPS, r"BUG: unable to handle (?:page fault|kernel .*) (?:for|at) .*[0-9a-f]+\s*$", fatal=True),
    _rule(FindingKind.OOPS, r"Unable to handle kernel .* at virtual address [0-9a-f]+\s*$", fatal=True),
    _rule(FindingKind.OOPS, r"Internal error: .* \[#\d+\].*$", fatal=True),
    _rule(
        FindingKind.OOPS,
        r"(?:Oops|general protection fault|stack segment|invalid opcode|divide error|int3|double fault|segment not "
        r"present|invalid TSS|alignment check|control protection fault|bad frame in \S+)\b.*: [0-9a-f]{4} \[#\d+\].*$",
        fatal=True,
    ),
    _rule(FindingKind.BUG, r"kernel BUG at \S+(?::\d+!| \[verbose debug info unavailable\])\s*$", fatal=True),
    _rule(FindingKind.LOCKDEP, rf"WARNING: (?:{_LOCKDEP})\s*$"),
    _rule(FindingKind.LOCKDEP, r"INFO: trying to register non-static key\.\s*$"),
    _rule(
        FindingKind.LOCKDEP, r"BUG: (?:Invalid wait context|MAX_LOCK\w+ too low!|MAX_STACK_TRACE_ENTRIES too low!).*$"
    ),
    _rule(FindingKind.BUG, r"BUG: \S.*$"),
    _rule(
        FindingKind.WARNING, r"WARNING: (?:CPU: \d+ PID: \d+ at )?(?:\S+:\d+ )?(?:at )?\S+\+0x[0-9a-f]+/0x[0-9a-f]+.*$"
    ),
    _rule(FindingKind.HUNG_TASK, r"INFO: task \S.*:\d+ blocked(?: in I/O wait)? for more than \d+ seconds\.\s*$"),
    _rule(
        FindingKind.RCU_STALL,
        r"INFO: rcu\w* (?:self-detected stall on CPU|detected (?:expedited )?stalls?\b).*$",
    ),
)
_ANY_RULE = LinearPattern("|".join(f"(?:{rule.text})" for rule in _RULES))
"""Matches every line that a rule matches; nearly all lines match none."""
_CRASH = {FindingKind.OOPS, FindingKind.BUG}
"""`kernel BUG at` and the `invalid opcode` or `Oops` lines after it are one report."""


@dataclass(frozen=True)
class Report:
    """One kernel report; `offset` is the position of its first line in the console, in bytes."""

    kind: FindingKind
    title: str
    excerpt: str
    offset: int
    fatal: bool

    @property
    def stack(self) -> tuple[StackFrame, ...]:
        """Call trace of the report, innermost function first, as addresses; the decoder adds files and lines later."""
        return stack_frames(self.excerpt)

    @property
    def of_hardware(self) -> bool:
        """True if the kernel stopped because the hardware reported an uncorrected error: no kernel is to blame."""
        return _MACHINE_CHECK.search(self.title) is not None

    @property
    def defect(self) -> str:
        """Description that is equal for two reports of one kernel about the same defect."""
        return describe_defect(self.kind, self.title, self.stack)


@dataclass(frozen=True)
class Ready:
    """Ready line: the userland of a golden system or variant is up."""

    token: str
    boot_id: str


ConsoleEvent = Report | Ready


@dataclass
class _OpenReport:
    offset: int
    first: list[str] = field(default_factory=list)
    """Lines of the first half of EXCERPT_LIMIT."""
    last: deque[str] = field(default_factory=deque)
    """Newest lines after them, within the other half."""
    kind: FindingKind | None = None
    """None after a separator, until the line that names the kind."""
    title: str = ""
    fatal: bool = False
    count: int = 0
    first_size: int = 0
    last_size: int = 0

    def add(self, text: str) -> None:
        self.count += 1
        half = EXCERPT_LIMIT // 2 - 40
        if not self.last and self.first_size + len(text) + 1 <= half:
            self.first.append(text)
            self.first_size += len(text) + 1
            return
        self.last.append(text)
        self.last_size += len(text) + 1
        while self.last_size > half:
            self.last_size -= len(self.last.popleft()) + 1

    @property
    def excerpt(self) -> str:
        omitted = self.count - len(self.first) - len(self.last)
        note = [f"[{omitted} lines omitted]"] if omitted else []
        return "\n".join([*self.first, *note, *self.last])

    def report(self) -> Report | None:
        if self.kind is None:
            return None
        return Report(self.kind, self.title[:300], self.excerpt, self.offset, self.fatal)


class _CrashKernel(enum.Enum):
    """State of a crash kernel, as far as the console shows it."""

    NOT_STARTED = enum.auto()
    STARTS = enum.auto()
    """The crash kernel boots. Its own reports are ignored, since they do not concern the kernel under test."""
    PRINTS_LOG = enum.auto()
    DONE = enum.auto()


class Detector:
    """Detector for one boot's console: `feed` it all bytes in order; `flush` ends a report without an end marker."""

    def __init__(self) -> None:
        self._partial = b""
        self._offset = 0
        self._open: _OpenReport | None = None
        self._crash_kernel = _CrashKernel.NOT_STARTED
        self._reported: set[str] = set()
        """Descriptions of the defects that the kernel under test has reported, at most REPORTED_LIMIT."""

    def begin_kernel(self) -> None:
        """Forget the reports so far. Call it when another kernel of the same boot starts, as after kexec."""
        self._crash_kernel = _CrashKernel.NOT_STARTED
        self._reported = set()

    @property
    def crash_kernel_started(self) -> bool:
        """True once a crash kernel has started."""
        return self._crash_kernel is not _CrashKernel.NOT_STARTED

    @property
    def crash_log_ended(self) -> bool:
        """True once a crash kernel has printed the whole log of the kernel that crashed."""
        return self._crash_kernel is _CrashKernel.DONE

    @property
    def fatal_open(self) -> bool:
        """True while a fatal report is being printed."""
        return self._open is not None and self._open.fatal

    @property
    def reporting(self) -> bool:
        """True while a report has begun and not ended."""
        return self._open is not None and self._open.kind is not None

    def feed(self, data: bytes) -> list[ConsoleEvent]:
        """Process the next bytes; return the reports and ready lines that they complete."""
        events: list[ConsoleEvent] = []
        data, start = self._partial + data, 0
        while end := _line_end(data, start):
            offset, self._offset = self._offset, self._offset + end - start
            self._line(_clean(data[start:end]), offset, events)
            start = end
        self._partial = data[start:]
        return events

    def flush(self) -> list[ConsoleEvent]:
        """End the kernel report (oops, lockdep and so on) that is still being read; return its event, if there is one.

        Call it when the console is silent or the boot is over.
        """
        events: list[ConsoleEvent] = []
        self._close(events)
        return events

    def _line(self, text: str, offset: int, events: list[ConsoleEvent]) -> None:
        if "wqlab-ready" in text and (ready := _READY.search(text)):
            self._close(events)
            events.append(Ready(ready[1], ready[2]))
            return
        if self._follows_crash_kernel(text, events):
            return
        if self._crash_kernel is _CrashKernel.PRINTS_LOG and (outer := _PREFIX.match(text)):
            text = text[outer.end() :]  # the crash kernel's own time; that of the crashed kernel follows
        prefix = _PREFIX.match(text) if text.startswith(("[", "<")) else None
        message = text[prefix.end() :] if prefix else text
        if self._handle_separator(message, text, offset, events):
            return
        rule, title = _classify(message)
        if rule and not self._continues_report(rule):
            self._close(events)
            self._open = _OpenReport(offset)
        if self._open is None:
            return
        if rule and self._open.kind is None:
            self._open.kind, self._open.title = rule.kind, title
        if rule and rule.fatal:
            self._open.fatal = True
        self._open.add(text)
        if self._ends(self._open, message):
            self._close(events)

    def _follows_crash_kernel(self, text: str, events: list[ConsoleEvent]) -> bool:
        """Update the state of the crash kernel; return True if the crash kernel itself printed the line."""
        state = self._crash_kernel
        if state is not _CrashKernel.PRINTS_LOG and "Linux version " in text:
            self._close(events)  # a panic that starts a crash kernel has no end marker
        if state is _CrashKernel.NOT_STARTED and CRASH_KERNEL in text and _COMMAND_LINE.search(text):
            self._close(events)
            self._crash_kernel = _CrashKernel.STARTS
        elif "wqlab-crash-log" in text and (mark := _CRASH_LOG.search(text)):
            self._close(events)
            self._crash_kernel = _CrashKernel.PRINTS_LOG if mark[1] == "begins" else _CrashKernel.DONE
            return True
        return self._crash_kernel in (_CrashKernel.STARTS, _CrashKernel.DONE)

    def _handle_separator(self, message: str, text: str, offset: int, events: list[ConsoleEvent]) -> bool:
        """Handle a separator (`cut here`, a line of = signs), which begins a report before the line with its kind."""
        if self._open and self._open.kind is FindingKind.KASAN and _RULE.match(message):
            self._open.add(text)
            self._close(events)
            return True
        if not (
            ("cut here" in message and _CUT_HERE.search(message)) or (message.startswith("=") and _RULE.match(message))
        ):
            return False
        self._close(events)
        self._open = _OpenReport(offset)
        self._open.add(text)
        return True

    def _continues_report(self, rule: _Rule) -> bool:
        """Return True if the line belongs to the open report."""
        if self._open is None:
            return False
        kind = self._open.kind
        return kind is None or kind is rule.kind or (kind in _CRASH and rule.kind in _CRASH)

    @staticmethod
    def _ends(report: _OpenReport, message: str) -> bool:
        if report.kind is None:
            return report.count > 5  # a separator without a report
        if report.count >= REPORT_LINES:
            return True
        if report.kind is FindingKind.PANIC:
            return bool(_END_PANIC.search(message))
        if _END_TRACE.search(message):
            return True
        # Stalls print one trace per CPU or worker; crashes and warnings end with their own marker.
        one_trace = report.kind in (FindingKind.HUNG_TASK, FindingKind.LOCKUP, FindingKind.LOCKDEP) or (
            report.kind is FindingKind.BUG and not report.fatal
        )
        return one_trace and bool(_END_TASK.search(message))

    def _close(self, events: list[ConsoleEvent]) -> None:
        """End the open report, and add its event. A report that a crash log repeats gets no second event."""
        if self._open and (report := self._open.report()):
            if self._crash_kernel is not _CrashKernel.PRINTS_LOG or report.defect not in self._reported:
                events.append(report)
            if len(self._reported) < REPORTED_LIMIT:
                self._reported.add(report.defect)
        self._open = None


def _line_end(data: bytes, start: int) -> int:
    """Return the end of the line at `start`, of at most LINE_LIMIT bytes; 0 if it is not complete."""
    end = data.find(b"\n", start, start + LINE_LIMIT) + 1
    return end or (start + LINE_LIMIT if len(data) - start >= LINE_LIMIT else 0)


def _clean(line: bytes) -> str:
    """Remove terminal sequences and control bytes. Text before a carriage return is kept, since it may be part of a
    report."""
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub("", _ANSI.sub("", text))


def _classify(message: str) -> tuple[_Rule | None, str]:
    for rule in _RULES if _ANY_RULE.search(message) else ():
        if match := rule.pattern.search(message):
            return rule, match[0].strip()
    return None, ""
