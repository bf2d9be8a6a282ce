"""Read a console log without a lab: the kernel reports in it, and which of them count against the kernel."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from ..consequences import cause_of
from ..enums import FindingKind
from ..keys import defect_key
from ..messages import Message
from .console_lines import clean, read_line
from .detect import Detector, Report
from .hardware_evidence import hardware_error_lines

_KERNEL_BEGINS = b"Linux version "


class ReadReport(Message):
    """A kernel report in a console log. Lines are counted from 1, reports from 0."""

    kind: FindingKind
    fatal: bool
    title: str
    first_line: int
    last_line: int
    excerpt: str
    stack: list[str]
    """Functions of the call trace, innermost first."""
    defect: str
    """Equal for reports of one kernel about the same defect."""
    defect_key: str
    """Equal for the same defect of two kernels."""
    of_hardware: bool
    """True if the hardware reported an uncorrected error before."""
    caused_by: int | None
    """The report that caused this one, if it is only a consequence."""
    charged: bool
    """True if it counts against the kernel under test, unless the baseline shows the same defect."""


class ReadConsole(Message):
    """What the lab reads in a console log."""

    reports: list[ReadReport]
    hardware_errors: list[str]
    """Lines about hardware errors of this boot, corrected ones included."""


def read_console(data: bytes) -> ReadConsole:
    """Read the console log or dmesg of one boot. A log of several boots is read kernel by kernel."""
    detector = Detector()
    found = [
        each
        for each in [*detector.feed(data if data.endswith(b"\n") else data + b"\n"), *detector.flush()]
        if isinstance(each, Report)
    ]
    found.sort(key=lambda report: report.offset)
    lines = data.split(b"\n")
    begins = [0, *accumulate(len(line) + 1 for line in lines)]
    kernels = [begin for begin, line in zip(begins, lines, strict=False) if _KERNEL_BEGINS in line]
    reports: list[ReadReport] = []
    numbers: dict[int, int] = {}
    earlier = _Earlier()
    kernel = 0
    for number, report in enumerate(found):
        if (last := bisect_left(kernels, report.offset)) != kernel:
            kernel, earlier = last, _Earlier()
        cause = cause_of(report, earlier.reports)
        first_line, last_line = (bisect_right(begins, each) for each in (report.offset, report.last_offset))
        reports.append(_read(report, first_line, last_line, numbers[id(cause)] if cause else None))
        numbers[id(report)] = number
        if not report.of_hardware:
            earlier.add(report)
    return ReadConsole(reports=reports, hardware_errors=hardware_error_lines(read_line(clean(line)) for line in lines))


class _Earlier:
    """The reports of a kernel that may have caused a later one: the first and the newest of each kind, up to a panic.

    There may be thousands of reports, and each is compared with the earlier ones.
    """

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def add(self, report: Report) -> None:
        if any(each.kind is FindingKind.PANIC for each in self.reports):
            return
        same = [each for each in self.reports if (each.kind, each.fatal) == (report.kind, report.fatal)]
        self.reports = [each for each in self.reports if each not in same[1:]] + [report]


def _read(report: Report, first_line: int, last_line: int, cause: int | None) -> ReadReport:
    return ReadReport(
        kind=report.kind,
        fatal=report.fatal,
        title=report.title,
        first_line=first_line,
        last_line=last_line,
        excerpt=report.excerpt,
        stack=[frame.function for frame in report.stack],
        defect=report.defect,
        defect_key=defect_key(report.defect),
        of_hardware=report.of_hardware,
        caused_by=cause,
        charged=cause is None and not report.of_hardware,
    )
