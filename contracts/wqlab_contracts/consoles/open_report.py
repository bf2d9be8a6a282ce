"""A kernel report that is being printed: its lines, its kind, and where it ends."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ..enums import STALLS, FindingKind
from ..messages import EXCERPT_LIMIT
from .report_rules import (
    ARM64_TRACE,
    DIED,
    END_PANIC,
    END_TASK,
    END_TRACE,
    FRAME,
    IRQ_HANDLER,
    ONE_LINE,
    STALL_PIECE,
    UNFINISHED_STALL,
    Rule,
    is_cut_off,
)

REPORT_LINES = 3000
"""A report without an end marker ends after this many lines."""
SILENCE_S = 2.0
"""A report that is not fatal ends when the timestamps of two kernel lines are further apart than this."""
SILENCE_WITHOUT_TRACE_S = 0.5
"""SILENCE_S for a report that has no call trace yet."""
BACKTRACE_WAIT_S = 12.0
"""SILENCE_S for reports of stalls: the kernel waits up to 10 s for the backtraces of other CPUs."""
_SEPARATOR_LINES = 5
"""Most lines between a separator and the line that names the kind."""
_PIECES = 3
"""Most lines of one title."""

_CRASH = {FindingKind.OOPS, FindingKind.BUG}
_REPEATED = {FindingKind.PANIC, FindingKind.WORKQUEUE_STALL, FindingKind.RCU_STALL}
"""Kinds of which the kernel prints several lines in one report."""
_ONE_TRACE = {FindingKind.HUNG_TASK, FindingKind.LOCKUP, FindingKind.LOCKDEP}


@dataclass
class OpenReport:
    """A report of one caller; `offset` is the position of its first line in the console, in bytes."""

    offset: int
    caller: str = ""
    of_hardware: bool = False
    allowed_lines: int = _SEPARATOR_LINES
    """Lines in which the kind must be named."""
    last_offset: int = 0
    """Position of the newest line."""
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
    guests: set[str] = field(default_factory=set)
    """Other callers that print their backtraces for this report."""
    _panics: bool = False
    _died: bool = False
    _with_rule: bool = False
    _arm64_trace: bool = False
    _traced: bool = False
    _lists_handlers: bool = False
    """True once the list of an interrupt's handlers has begun, with which that report ends."""
    _frames: int = 0
    _time_s: float | None = None
    _pieces: str = ""
    """Title so far, while its rest may be on the next line."""

    def name(self, rule: Rule, title: str) -> None:
        """Take kind, title and fatality from a line that a rule matches."""
        if self.kind is None:
            self.kind, self.title = rule.kind, title
        elif rule.fatal and not self.fatal and rule.kind in _CRASH:
            self.kind = rule.kind
        self.fatal = self.fatal or rule.fatal
        self._panics = self._panics or rule.kind is FindingKind.PANIC

    def joined(self, message: str) -> str:
        """Return the message as the rest of a title that was cut off; the message itself if none was."""
        if self.kind is not None or not self._pieces:
            return message
        self._pieces = f"{self._pieces.rstrip()} {message.lstrip()}" if self._is_wrapped else self._pieces + message
        return self._pieces

    def add(self, text: str, message: str = "", time_s: float | None = None) -> None:
        """Add a line."""
        if self.kind is None and not self._pieces and is_cut_off(message):
            self._pieces = message
            self.allowed_lines = self.count + _PIECES
        unfinished = self.kind is FindingKind.WORKQUEUE_STALL and UNFINISHED_STALL.match(self.title)
        if unfinished and self.count and STALL_PIECE.match(message):
            self.title = f"{self.title} {message.strip()}"
        self._with_rule = self._with_rule or message.startswith("======")
        self._died = self._died or DIED.search(message) is not None
        self._arm64_trace = self._arm64_trace or ARM64_TRACE.match(message) is not None
        self._traced = self._traced or message.startswith(("Call Trace:", "Call trace:"))
        self._lists_handlers = self._lists_handlers or (
            message.startswith("handlers:") and self.title.startswith("irq ")
        )
        self._frames += self._arm64_trace and FRAME.match(message) is not None
        self._time_s = self._time_s if time_s is None else time_s
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
    def _is_wrapped(self) -> bool:
        return not self._pieces.startswith("INFO: task")

    @property
    def excerpt(self) -> str:
        omitted = self.count - len(self.first) - len(self.last)
        note = [f"[{omitted} lines omitted]"] if omitted else []
        return "\n".join([*self.first, *note, *self.last])

    @property
    def prints_trace(self) -> bool:
        """True while a trace or a marker that ends the report must still come."""
        return self.kind not in {FindingKind.RCU_STALL, FindingKind.WORKQUEUE_STALL}

    @property
    def takes_separator(self) -> bool:
        """True if a separator belongs to this report: one of a kernel that panics, or behind the message of a BUG."""
        return self._panics or (self.kind is None and self.allowed_lines != _SEPARATOR_LINES)

    @property
    def ends_with_rule(self) -> bool:
        """True if a line of = signs ends the report, as one of KASAN."""
        sanitizer = self.kind is FindingKind.KASAN or self.title.startswith(("UBSAN: ", "BUG: KCSAN", "BUG: KMSAN"))
        return sanitizer and (self._with_rule or self.kind is FindingKind.KASAN)

    def continues_with(self, rule: Rule, title: str) -> bool:
        """Return True if a line that a rule matches belongs to this report."""
        if self.kind is None:
            return True
        if self._panics:
            return rule.kind is FindingKind.PANIC or not rule.fatal  # what a kernel prints while it panics
        if rule.kind is FindingKind.PANIC:
            return "panic_on_warn set" in title and not self.fatal
        if rule.kind in _CRASH and rule.fatal:
            if self.fatal and self.kind in _CRASH:
                return not self._died or DIED.search(title) is not None
            return self.title.startswith("UBSAN: ") and DIED.search(title) is not None
        return self.kind is rule.kind and self.kind in _REPEATED

    def ended_before(self, message: str, time_s: float | None) -> bool:
        """Return True if the line no longer belongs to this report."""
        if self._panics or (self.fatal and self.kind is not FindingKind.LOCKUP):
            return False
        if self._lists_handlers and not IRQ_HANDLER.match(message):
            return not message.startswith("Disabling IRQ #")
        if self._has_one_trace and self._frames and not FRAME.match(message):
            return not message.startswith("===") or not self.ends_with_rule
        if time_s is None or self._time_s is None:
            return False
        return time_s - self._time_s >= self._silence_s

    def ends_with(self, message: str) -> bool:
        """Return True if the line, which was added, is the last one."""
        if self.kind is None:
            return self.count > self.allowed_lines
        if self.count >= REPORT_LINES:
            return True
        if self._panics:
            return bool(END_PANIC.search(message))
        if END_TRACE.search(message) or ONE_LINE.match(message):
            return True
        if self._lists_handlers and message.startswith("Disabling IRQ #"):
            return True
        # Stalls print one trace per CPU or worker; crashes and warnings end with their own marker.
        return self._has_one_trace and bool(END_TASK.search(message))

    @property
    def _has_one_trace(self) -> bool:
        return self.kind in _ONE_TRACE or (
            self.kind is FindingKind.BUG and not self.fatal and not self.ends_with_rule and not self._cut_here
        )

    @property
    def _cut_here(self) -> bool:
        return bool(self.first) and self.first[0].endswith("[ cut here ]------------")

    @property
    def _silence_s(self) -> float:
        """Seconds of silence that end this report."""
        if self.kind in STALLS:
            return BACKTRACE_WAIT_S
        return SILENCE_S if self._traced else SILENCE_WITHOUT_TRACE_S
