"""A kernel report that is being printed: its lines, its kind, and where it ends."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ..enums import STALLS, FindingKind
from ..messages import EXCERPT_LIMIT
from .console_lines import ConsoleLine
from .report_rules import (
    CUT_HERE,
    DIED,
    END_PANIC,
    END_TASK,
    END_TRACE,
    FRAME,
    IRQ_HANDLER,
    MARKED_TRACE,
    ONE_LINE,
    STALL_PIECE,
    TRACE,
    UNFINISHED_STALL,
    Rule,
    is_cut_off,
    may_be_wrapped,
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
_TITLE_LENGTH = 1_000
"""A title of more characters is not continued on the next line."""

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
    """Position of the last line."""
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
    _with_cut: bool = False
    """True once `cut here` has been added: the report ends with its own marker."""
    _traced: bool = False
    _trace_is_marked: bool = False
    _lists_handlers: bool = False
    """True once the list of an interrupt's handlers has begun, with which that report ends."""
    _has_frames: bool = False
    _time_s: float | None = None
    _pieces: str = ""
    """Title so far, while its rest may be on the next line."""
    _may_go_on: bool = False
    """True while the newest line is the one with the title."""
    _begins_with_title: bool = False
    """True if the first line is the beginning of a title that was cut off."""
    _last_text: str = ""
    _is_stamped: bool = False
    _tail: int = 0
    """Number of the newest lines that the kernel did not print, as far as their prefix shows it."""

    def name(self, rule: Rule, title: str) -> None:
        """Take kind, title and fatality from a line that a rule matches."""
        if self.kind is None or self._pieces:
            self.kind, self.title = rule.kind, title
            self._may_go_on = True
        elif rule.fatal and not self.fatal and rule.kind in _CRASH:
            self.kind = rule.kind
        self.fatal = self.fatal or rule.fatal
        self._panics = self._panics or rule.kind is FindingKind.PANIC

    def is_continued_by(self, line: ConsoleLine) -> bool:
        """Return True if a line may have the rest of a title that was cut off."""
        if self._pieces.startswith("INFO: task") and self.count < self.allowed_lines:
            return True
        wrapped = (line.message == line.text or not self._is_stamped) and not TRACE.match(line.message)
        return bool(self._pieces) and wrapped and may_be_wrapped(self._last_text, line.text)

    def joined(self, message: str) -> str:
        """Return the title that was cut off with the rest of it."""
        if self._pieces.startswith("INFO: task") and not may_be_wrapped(self._last_text, message):
            return self._pieces + message
        return f"{self._pieces.rstrip()} {message.lstrip(' >')}"

    def add(self, line: ConsoleLine, message: str, offset: int) -> None:
        """Add a line; `message` is the title so far if the line continues one."""
        may_go_on = (self.kind is None or self._may_go_on) and len(message) <= _TITLE_LENGTH
        if may_go_on and is_cut_off(message, complete=self.kind is not None):
            self.allowed_lines = self.allowed_lines if self._pieces else self.count + _PIECES
            self._begins_with_title = self._begins_with_title or not self.count
            self._pieces = message
        else:
            self._pieces = ""
        self._may_go_on = False
        unfinished = self.kind is FindingKind.WORKQUEUE_STALL and UNFINISHED_STALL.match(self.title)
        if unfinished and self.count and STALL_PIECE.match(line.message):
            self.title = f"{self.title} {line.message.strip()}"
        message = line.message
        self._with_rule = self._with_rule or message.startswith("======")
        self._with_cut = self._with_cut or ("cut here" in message and CUT_HERE.search(message) is not None)
        self._died = self._died or DIED.search(message) is not None
        self._traced = self._traced or TRACE.match(message) is not None
        self._trace_is_marked = self._trace_is_marked or MARKED_TRACE.match(message) is not None
        self._lists_handlers = self._lists_handlers or (
            message.startswith("handlers:") and self.title.startswith("irq ")
        )
        if self._traced and not self._trace_is_marked and not self._has_frames:
            self._has_frames = FRAME.match(message) is not None
        self._time_s = self._time_s if line.time_s is None else line.time_s
        self._is_stamped = self._is_stamped or message != line.text
        self._last_text = line.text
        self.count += 1
        if self._is_of_others(line):
            self._tail += 1
        else:
            self._tail, self.last_offset = 0, offset
        self._keep(line.text)

    def _is_of_others(self, line: ConsoleLine) -> bool:
        """Return True if the kernel did not print the line: it has no prefix, or follows an empty line."""
        if self._is_stamped:
            return line.message == line.text and not self._pieces
        if line.text.strip() and not self._tail:
            return False
        return not any(pattern.match(line.text) for pattern in (FRAME, TRACE, MARKED_TRACE, END_TASK))

    def remove_tail(self) -> None:
        """Remove lines behind the last one of the kernel, if the report ends without a marker."""
        lines = self.last or self.first
        for _ in range(min(self._tail, len(lines) - 1)):
            lines.pop()
            self.count -= 1
        self._tail = 0

    def add_before(self, text: str, offset: int) -> None:
        """Add a line that was printed before the first one."""
        self.offset = min(self.offset, offset)
        self.count += 1
        self._keep(text)

    def _keep(self, text: str) -> None:
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

    @property
    def is_only_title(self) -> bool:
        """True if the report has only the beginning of a title, and may be no report."""
        return self.kind is None and self._begins_with_title

    @property
    def prints_trace(self) -> bool:
        """True while a trace or a marker that ends the report must still come."""
        return self.kind not in {FindingKind.RCU_STALL, FindingKind.WORKQUEUE_STALL}

    @property
    def takes_separator(self) -> bool:
        """True if a separator belongs to this report: one of a kernel that panics, or behind the message of a BUG."""
        return self._panics or (self.kind is None and self.allowed_lines != _SEPARATOR_LINES)

    @property
    def takes_warning(self) -> bool:
        """True for a BUG whose trace has not come: a WARN may print it, as that of SLUB does since 6.15."""
        return self.kind is FindingKind.BUG and not (self.fatal or self._traced or self.ends_with_rule)

    @property
    def ends_with_rule(self) -> bool:
        """True if a line of = signs ends the report, as one of KASAN."""
        sanitizer = self.kind is FindingKind.KASAN or self.title.startswith(("UBSAN: ", "BUG: KCSAN", "BUG: KMSAN"))
        return sanitizer and (self._with_rule or self.kind is FindingKind.KASAN)

    def continues_with(self, rule: Rule, title: str) -> bool:
        """Return True if a line that a rule matches belongs to this report."""
        if self.kind is None or self._pieces:
            return True
        if self._repeats_title(title):
            return True
        if self._tail and not self._is_stamped and rule.fatal and (self._died or not DIED.search(title)):
            return False  # text of a mail is between the two
        if self._with_cut and self.takes_warning and rule.kind is FindingKind.WARNING:
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

    def _repeats_title(self, title: str) -> bool:
        """Return True for the title with another inlined function, of which syzbot prints a line each."""
        begins = title.partition(" at ")[0].partition(" in ")[0]
        return " [inline]" in self.title and begins in self.title and not self._traced

    def ended_before(self, message: str, time_s: float | None) -> bool:
        """Return True if the line no longer belongs to this report."""
        if self._panics or (self.fatal and self.kind is not FindingKind.LOCKUP):
            return False
        if self._lists_handlers and not IRQ_HANDLER.match(message):
            return not message.startswith("Disabling IRQ #")
        if self._has_one_trace and self._has_frames and not self._trace_is_marked and not FRAME.match(message):
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
            self.kind is FindingKind.BUG and not self.fatal and not self.ends_with_rule and not self._with_cut
        )

    @property
    def _silence_s(self) -> float:
        """Seconds of silence that end this report."""
        if self.kind in STALLS:
            return BACKTRACE_WAIT_S
        return SILENCE_S if self._traced else SILENCE_WITHOUT_TRACE_S
