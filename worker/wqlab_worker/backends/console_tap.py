"""Console tap: read a device's console, record offsets by boot, feed the detector and wake waiting threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import structlog
from pexpect import TIMEOUT  # type: ignore[import-untyped]
from serial import SerialException  # type: ignore[import-untyped]

from wqlab_contracts.consequences import cause_of
from wqlab_contracts.consoles.detect import Detector, Ready, Report
from wqlab_contracts.enums import FindingKind
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.messages import BootKey, Finding

from .interface import EventSink

log = structlog.get_logger()

REPORT_IDLE_S = 2.0
"""A kernel report is complete after this much silence, even without its end marker."""
READ_S = 0.5
"""Longest time until the reader notices that it has to stop; bytes wake it at once."""
REOPEN_INTERVAL_S = 3.0
TAIL_LIMIT = 64 << 10
"""Number of last console bytes of a boot that `contains` searches."""
FINDINGS_LIMIT = 200
"""Most reports of one boot that become findings, since a kernel may warn in a loop for hours. Fatal reports and the
first of each kind always become findings."""


class Wakeup:
    """Condition variable for everything that can end a wait: console, commands, cancellation, loss of the place."""

    def __init__(self) -> None:
        self._condition = threading.Condition()

    def notify(self) -> None:
        """Wake all waiting threads."""
        with self._condition:
            self._condition.notify_all()

    def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `condition` is true; return False after the timeout."""
        with self._condition:
            return self._condition.wait_for(condition, max(0.0, timeout_s))


class ConsoleTap:
    """Reader of one device's console. `start` and `stop` run a thread that reads labgrid's console driver; `feed` takes
    bytes that were read elsewhere.

    Between `begin_boot` and `end_boot` the bytes belong to a boot. Only a variant's reports become findings; those of
    the golden system are logged.
    """

    def __init__(self, console: Any, emit: EventSink, wakeup: Wakeup) -> None:
        self._console = console
        self._emit = emit
        self._wakeup = wakeup
        self._lock = threading.Lock()
        self._detector = Detector(has_crash_kernel=False)
        self._key: BootKey | None = None
        self._variant = False
        self._offset = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, name="console", daemon=True)
        self.ready: Ready | None = None
        """The last ready line of this boot."""
        self.fatal: Report | None = None
        """The first fatal report of the running kernel; the report that caused it, if that is another one."""
        self.reports: list[Report] = []
        """Reports of the variant in this boot that became findings."""
        self._findings_left = FINDINGS_LIMIT
        self.read_error: str | None = None
        """Why the console can no longer be read; None while it can."""
        self._tail = b""
        self.bytes_while_off = 0
        """Bytes read between the power off and the power on of this boot."""
        self.last_output = 0.0
        """time.monotonic() of the last byte."""

    def start(self) -> None:
        self._thread.start()

    def reopen(self, stopped: Callable[[], bool], timeout_s: float) -> None:
        """Open the console again after a read error. `read_error` stays if it cannot be opened in `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        self._thread.join(timeout=5)
        self._console.close()
        while True:
            try:
                self._console.open()
            except (SerialException, OSError) as error:
                self.read_error = f"the connection to the console broke and cannot be opened again: {error}"
            else:
                break
            if self._wakeup.wait_for(stopped, min(REOPEN_INTERVAL_S, deadline - time.monotonic())):
                return
            if time.monotonic() >= deadline:
                return
        self.read_error = None
        self._thread = threading.Thread(target=self._read, name="console", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def begin_boot(self, key: BootKey) -> None:
        """Begin a boot at offset 0. Call it with the power off, so that the first byte is recorded."""
        with self._lock:
            self._key, self._offset, self._variant = key, 0, False
            self._detector = Detector(has_crash_kernel=False)
            self.ready = self.fatal = None
            self.reports = []
            self._findings_left = FINDINGS_LIMIT
            self._tail = b""
            self.last_output = time.monotonic()

    def begin_variant(self) -> None:
        """Attribute the console to the variant from here on: the golden system has jumped."""
        with self._lock:
            self._handle(self._detector.flush())
            self._detector.begin_kernel()
            self._variant = True
            self.ready = self.fatal = None

    def expect_crash_kernel(self) -> None:
        """Believe from here on that a crash kernel has started if the console says so: it is loaded now."""
        with self._lock:
            self._detector.has_crash_kernel = True

    def feed(self, data: bytes) -> None:
        """Process the next bytes of this boot's console, read elsewhere."""
        with self._lock:
            self._process(data)

    def flush(self) -> None:
        """Complete a report without an end marker; call it when no more output will come."""
        with self._lock:
            self._handle(self._detector.flush())

    def end_boot(self) -> None:
        """End the boot and complete an open report."""
        with self._lock:
            self._handle(self._detector.flush())
            self._key = None

    def contains(self, text: str) -> bool:
        """Return True if `text` is among the last TAIL_LIMIT bytes of this boot's console."""
        return text.encode() in self._tail

    @property
    def tail(self) -> bytes:
        """The last TAIL_LIMIT bytes of this boot's console."""
        return self._tail

    def count_while_off(self) -> None:
        """Count the bytes from here until the next boot begins: a device without power prints nothing."""
        self.bytes_while_off = 0

    @property
    def offset(self) -> int:
        """Bytes of this boot's console read so far."""
        return self._offset

    @property
    def reporting(self) -> bool:
        """True while a kernel report is being printed."""
        return self._detector.reporting

    @property
    def crash_kernel_started(self) -> bool:
        """True once the console shows that a crash kernel has started. It starts only if the variant has crashed."""
        return self._detector.crash_kernel_started

    @property
    def crash_log_ended(self) -> bool:
        """True once the crash kernel has printed the variant's log."""
        return self._detector.crash_log_ended

    @property
    def fatal_has_stack(self) -> bool:
        """True if there is a fatal report with a call trace."""
        return self.fatal is not None and bool(self.fatal.stack)

    def add_finding(self, kind: FindingKind, title: str, excerpt: str) -> Report:
        """Add a fatal finding that the console does not show, such as a hang."""
        with self._lock:
            report = Report(kind, title, excerpt, self._offset, fatal=True)
            self._handle([report])
            return report

    def _read(self) -> None:
        while not self._stopping.is_set():
            try:
                data = self._next_bytes()
            except (SerialException, OSError) as error:
                self.read_error = f"the connection to the console broke: {error}"
                self._wakeup.notify()
                return
            with self._lock:
                if data:
                    self._process(data)
                elif self._detector.reporting and time.monotonic() - self.last_output > REPORT_IDLE_S:
                    self._handle(self._detector.flush())
            self._wakeup.notify()

    def _next_bytes(self) -> bytes:
        """Wait for a byte, then read all that is available: pyserial's socket does not tell how much that is."""
        try:
            first: bytes = self._console._read(size=1, timeout=READ_S)
        except TIMEOUT:
            return b""
        try:
            more: bytes = self._console._read(size=65536, timeout=0.0)
        except TIMEOUT:
            more = b""
        return first + more

    def _process(self, data: bytes) -> None:
        if self._key is None:
            self.bytes_while_off += len(data)
            return
        self.last_output = time.monotonic()
        offset, self._offset = self._offset, self._offset + len(data)
        self._tail = (self._tail + data)[-TAIL_LIMIT:]
        self._emit.console(self._key, offset, data)
        self._handle(self._detector.feed(data))

    def _handle(self, events: list[Report | Ready]) -> None:
        for item in events:
            if isinstance(item, Ready):
                self.ready = item
            else:
                self._report(item)

    def _report(self, report: Report) -> None:
        if self._key is None:
            return
        if report.fatal and (self.fatal is None or self._is_cut_off(self.fatal)):
            cause = cause_of(report, self.reports)
            self.fatal = replace(cause, fatal=True) if cause else report
        if not self._variant:
            log.warning("golden system reported", kind=report.kind.value, title=report.title)
            return
        if report.of_hardware:
            log.warning("hardware reported an uncorrected error", title=report.title)
            return
        if not report.fatal:
            self._findings_left -= 1
            if self._findings_left < 0 and any(known.kind is report.kind for known in self.reports):
                return
        self.reports.append(report)
        self._emit_finding(report)
        if self._findings_left == 0 and not report.fatal:
            title = f"{FINDINGS_LIMIT} findings in this boot: later reports that are not fatal are on the console only"
            self._emit_finding(Report(report.kind, title, "", self._offset, fatal=False))

    def _is_cut_off(self, fatal: Report) -> bool:
        """Return True if the report has no call trace and a crash log may contain the whole report."""
        return self._detector.crash_kernel_started and not fatal.stack and not fatal.of_hardware

    def _emit_finding(self, report: Report) -> None:
        assert self._key  # noqa: S101 - `_report` checked it
        self._emit.event(
            Finding(
                at=datetime.now(UTC),
                boot=self._key,
                kind=report.kind,
                title=report.title,
                excerpt=shorten(report.excerpt),
                console_offset=report.offset,
                fatal=report.fatal,
                stack=report.stack,
                defect=report.defect,
            )
        )
