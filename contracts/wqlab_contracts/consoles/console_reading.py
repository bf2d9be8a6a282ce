"""Read a console log without a lab: the kernel reports in it, and which of them count against the kernel."""

from __future__ import annotations

from collections.abc import Sequence

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
    lines = [read_line(clean(line)) for line in data.split(b"\n")]
    return ReadConsole(
        reports=[_read(data, report, found) for report in found], hardware_errors=hardware_error_lines(lines)
    )


def _read(data: bytes, report: Report, found: Sequence[Report]) -> ReadReport:
    kernel = data.count(_KERNEL_BEGINS, 0, report.offset)
    earlier = [
        each
        for each in found[: found.index(report)]
        if not each.of_hardware and data.count(_KERNEL_BEGINS, 0, each.offset) == kernel
    ]
    cause = cause_of(report, earlier)
    return ReadReport(
        kind=report.kind,
        fatal=report.fatal,
        title=report.title,
        first_line=data.count(b"\n", 0, report.offset) + 1,
        last_line=data.count(b"\n", 0, report.last_offset) + 1,
        excerpt=report.excerpt,
        stack=[frame.function for frame in report.stack],
        defect=report.defect,
        defect_key=defect_key(report.defect),
        of_hardware=report.of_hardware,
        caused_by=found.index(cause) if cause else None,
        charged=cause is None and not report.of_hardware,
    )
