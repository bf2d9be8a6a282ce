"""Detection in the log that a crash kernel prints of the kernel before it."""

from __future__ import annotations

from console_logs import OOPS, PANIC, WARNING_OLD

from wqlab_contracts.consoles.detect import Detector, Report
from wqlab_contracts.enums import FindingKind


def crash_log(lines: bytes, *of_crash_kernel: bytes) -> bytes:
    """Return the lines as a crash kernel prints them, each after its own time, with what it prints while it boots."""
    first = [b"Linux version 6.12.117", b"Command line: console=ttynull nr_cpus=1 wqlab.crash_kernel", *of_crash_kernel]
    printed = [*first, b"wqlab-crash-log begins", *lines.splitlines(), b"wqlab-crash-log ends"]
    return b"".join(b"[    9.%06d] %s\n" % (number, line) for number, line in enumerate(printed))


def test_a_panic_in_the_log_of_a_crash_kernel_is_found_like_one_on_the_console() -> None:
    [direct] = Detector().feed(PANIC)
    detector = Detector()
    [found] = detector.feed(crash_log(PANIC.replace(b"\r", b"")))
    assert isinstance(direct, Report) and isinstance(found, Report)
    assert (found.kind, found.title, found.fatal, found.stack) == (direct.kind, direct.title, True, direct.stack)
    assert found.excerpt == direct.excerpt
    assert not detector.reporting


def test_a_panic_without_its_last_line_ends_with_the_crash_log() -> None:
    """A panicking kernel that has a crash kernel starts it, and never prints `end Kernel panic`."""
    whole = PANIC.replace(b"\r", b"").splitlines(keepends=True)
    [found] = Detector().feed(crash_log(b"".join(whole[:-1])))
    assert isinstance(found, Report)
    assert "wqlab-crash-log" not in found.excerpt


def test_reports_of_the_crash_kernel_itself_are_not_those_of_the_kernel_under_test() -> None:
    detector = Detector()
    own = b"Kernel panic - not syncing: System is deadlocked on memory"
    [found] = detector.feed(crash_log(PANIC.replace(b"\r", b""), own))
    assert isinstance(found, Report) and "Unable to mount root" in found.title
    assert detector.crash_log_ended
    assert not detector.feed(OOPS), "nothing but the crash kernel runs any more"


def test_a_panic_ends_where_the_crash_kernel_starts() -> None:
    detector = Detector()
    whole = PANIC.replace(b"\r", b"").splitlines(keepends=True)
    [found] = detector.feed(b"".join(whole[:-1]) + b"[    0.000000] Linux version 6.12.117\n")
    assert isinstance(found, Report) and "Linux version" not in found.excerpt
    assert not detector.crash_kernel_started


def test_a_report_that_was_cut_off_is_found_again_in_the_crash_log() -> None:
    detector = Detector()
    first = OOPS.splitlines(keepends=True)[0]
    [cut_off] = detector.feed(first) + detector.flush()
    [found, _] = detector.feed(crash_log(OOPS))
    assert isinstance(cut_off, Report) and isinstance(found, Report)
    assert (cut_off.title, cut_off.stack) == (found.title, ())
    assert found.stack


def test_a_report_of_the_golden_system_does_not_hide_one_of_the_variant() -> None:
    detector = Detector()
    assert detector.feed(WARNING_OLD) + detector.flush()
    detector.begin_kernel()
    assert len(detector.feed(crash_log(WARNING_OLD))) == 1


def test_a_crash_log_repeats_no_report_that_the_console_has_shown() -> None:
    detector = Detector()
    shown = detector.feed(WARNING_OLD) + detector.flush()
    assert len(shown) == 1
    found = [each.kind for each in detector.feed(crash_log(WARNING_OLD + OOPS)) if isinstance(each, Report)]
    assert found == [FindingKind.OOPS, FindingKind.PANIC]
