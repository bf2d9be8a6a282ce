"""The console tap: one reader that keeps every byte's place in its boot, feeds the detector and wakes whoever waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import structlog
from pexpect import TIMEOUT  # type: ignore[import-untyped]
from serial import SerialException  # type: ignore[import-untyped]

from wqlab_contracts.enums import FindingKind
from wqlab_contracts.messages import EXCERPT_LIMIT, BootKey, Finding

from ..measure.detect import Detector, Ready, Report
from .base import Emit

log = structlog.get_logger()

REPORT_IDLE_S = 2.0
"""A report that nothing is added to for so long is complete, whether or not its end marker came."""
READ_S = 0.5
"""How often the reader looks whether it has to end; bytes wake it at once."""


TAIL_LIMIT = 64 << 10
"""Bytes of a boot's console that can still be searched."""
FINDINGS_LIMIT = 200
"""Reports of one boot that become findings; fatal ones and the first of each kind always do. A kernel may warn in a
loop, for hours."""


class Watch:
    """One condition for everything that can end a wait: console, commands, cancel, loss of the place."""

    def __init__(self) -> None:
        self._condition = threading.Condition()

    def ring(self) -> None:
        with self._condition:
            self._condition.notify_all()

    def wait_for(self, met: Callable[[], bool], timeout_s: float) -> bool:
        with self._condition:
            return self._condition.wait_for(met, max(0.0, timeout_s))


class ConsoleTap:
    """Reads labgrid's console driver in a thread of its own, from `start` to `stop`; or is given what somebody else
    read (`take`).

    Between `begin` and `end` the bytes belong to a boot. Only a variant's reports become findings: while the golden
    system runs, they are kept in `golden_report`.
    """

    def __init__(self, console: Any, emit: Emit, watch: Watch) -> None:
        self._console = console
        self._emit = emit
        self._watch = watch
        self._lock = threading.Lock()
        self._detector = Detector()
        self._key: BootKey | None = None
        self._variant = False
        self._offset = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, name="console", daemon=True)
        self.ready: Ready | None = None
        """The last ready line of this boot."""
        self.fatal: Report | None = None
        """The first fatal report of the running kernel."""
        self.reports: list[Report] = []
        """Reports of the variant in this boot that became findings."""
        self._left = FINDINGS_LIMIT
        self.lost: str | None = None
        """Why the console cannot be read any more."""
        self._tail = b""
        self.last_output = 0.0
        """time.monotonic() of the last byte."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def begin(self, key: BootKey) -> None:
        """Call it with the power off: the boot's console starts at its first byte."""
        with self._lock:
            self._key, self._offset, self._variant = key, 0, False
            self._detector = Detector()
            self.ready = self.fatal = None
            self.reports = []
            self._left = FINDINGS_LIMIT
            self._tail = b""
            self.last_output = time.monotonic()

    def expect_variant(self) -> None:
        """From here on the console is the variant's: the golden system has handed over."""
        with self._lock:
            self._handle(self._detector.flush())
            self._variant = True
            self.ready = self.fatal = None

    def take(self, data: bytes) -> None:
        """The next bytes of this boot's console, read elsewhere."""
        with self._lock:
            self._take(data)

    def settle(self) -> None:
        """Nothing more will be printed: a report without an end marker is over."""
        with self._lock:
            self._handle(self._detector.flush())

    def end(self) -> None:
        """Ends the boot: what is still open is reported."""
        with self._lock:
            self._handle(self._detector.flush())
            self._key = None

    def heard(self, word: str) -> bool:
        """Whether `word` is among the last TAIL_LIMIT bytes of this boot's console."""
        return word.encode() in self._tail

    @property
    def offset(self) -> int:
        return self._offset

    @property
    def reporting(self) -> bool:
        """A report is being printed."""
        return self._detector.reporting

    def found(self, kind: FindingKind, title: str, excerpt: str) -> Report:
        """Adds a finding that is not on the console: a hang is what the console does not say."""
        with self._lock:
            report = Report(kind, title, excerpt, self._offset, fatal=True)
            self._handle([report])
            return report

    def _read(self) -> None:
        while not self._stopping.is_set():
            try:
                data = self._next_bytes()
            except (SerialException, OSError) as error:
                self.lost = f"the console cannot be read: {error}"
                self._watch.ring()
                return
            with self._lock:
                if data:
                    self._take(data)
                elif self._detector.reporting and time.monotonic() - self.last_output > REPORT_IDLE_S:
                    self._handle(self._detector.flush())
            self._watch.ring()

    def _next_bytes(self) -> bytes:
        """Waits for a byte, then takes all there is: pyserial's socket does not tell how much is waiting."""
        try:
            first: bytes = self._console._read(size=1, timeout=READ_S)
        except TIMEOUT:
            return b""
        try:
            more: bytes = self._console._read(size=65536, timeout=0.0)
        except TIMEOUT:
            more = b""
        return first + more

    def _take(self, data: bytes) -> None:
        if self._key is None:
            return
        self.last_output = time.monotonic()
        offset, self._offset = self._offset, self._offset + len(data)
        self._tail = (self._tail + data)[-TAIL_LIMIT:]
        self._emit.console(self._key, offset, data)
        self._handle(self._detector.feed(data))

    def _handle(self, seen: list[Report | Ready]) -> None:
        for item in seen:
            if isinstance(item, Ready):
                self.ready = item
            else:
                self._report(item)

    def _report(self, report: Report) -> None:
        if self._key is None:
            return
        if report.fatal and self.fatal is None:
            self.fatal = report
        if not self._variant:
            log.warning("golden system reported", kind=report.kind.value, title=report.title)
            return
        if not report.fatal:
            self._left -= 1
            if self._left < 0 and any(known.kind is report.kind for known in self.reports):
                return
        self.reports.append(report)
        self._tell(report)
        if self._left == 0 and not report.fatal:
            title = f"{FINDINGS_LIMIT} findings in this boot: what is not fatal and follows is on the console only"
            self._tell(Report(report.kind, title, "", self._offset, fatal=False))

    def _tell(self, report: Report) -> None:
        assert self._key  # noqa: S101 - `_report` checked it
        self._emit.event(
            Finding(
                at=datetime.now(UTC),
                boot=self._key,
                kind=report.kind,
                title=report.title,
                excerpt=report.excerpt[:EXCERPT_LIMIT],
                console_offset=report.offset,
                fatal=report.fatal,
            )
        )
