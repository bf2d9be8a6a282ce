"""Bounds of the detector: any chunks and bytes, memory, excerpts and time."""

from __future__ import annotations

import itertools
import time
import timeit

import pytest
from console_logs import EVERYTHING, PANIC, STALL, reports, seen
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts.consoles.console_reading import read_console
from wqlab_contracts.consoles.detect import LINE_LIMIT, Detector, Report
from wqlab_contracts.enums import FindingKind
from wqlab_contracts.messages import EXCERPT_LIMIT


def test_unfinished_report_is_returned_by_flush() -> None:
    detector = Detector()
    cut = PANIC[: PANIC.index(b"[    1.206071]")]
    assert detector.feed(cut) == []
    assert detector.reporting
    (report,) = detector.flush()
    assert isinstance(report, Report)
    assert report.kind is FindingKind.PANIC


def test_excerpts_and_memory_are_bounded() -> None:
    endless = STALL + b"[   91.000000]   pending: something\n" * 2_000 + b"[   91.000000]   the last line\n"
    (report,) = reports(endless)
    assert len(report.excerpt) <= EXCERPT_LIMIT
    lines = report.excerpt.split("\n")
    assert lines[0] in STALL.decode(), "a report begins with its first line"
    assert lines[-1].endswith("the last line")
    assert any(line.endswith(" lines omitted]") for line in lines)
    detector = Detector()
    detector.feed(b"\x55" * (10 * LINE_LIMIT + 5))
    assert len(detector._partial) < LINE_LIMIT


@given(st.lists(st.integers(0, len(EVERYTHING)), max_size=60))
def test_result_does_not_depend_on_chunks(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(EVERYTHING)]
    chunks = [EVERYTHING[a:b] for a, b in itertools.pairwise(places)]
    assert seen(*chunks) == seen(EVERYTHING)


@given(st.binary(max_size=4000))
def test_arbitrary_bytes_do_not_raise(data: bytes) -> None:
    seen(data, PANIC)
    assert any(report.kind is FindingKind.PANIC for report in reports(data + b"\n", PANIC))


@pytest.mark.parametrize(
    "pump", [b"WARNING: a+0x1", b"Internal error: ", b"BUG: unable to handle kernel for ", b"INFO: task a:1", b"\x1b[0"]
)
def test_hostile_line_takes_about_the_time_of_an_ordinary_one(pump: bytes) -> None:
    """Before, a line of 8 KiB took three seconds."""

    def seconds(text: bytes) -> float:
        chunk = text * ((1 << 16) // len(text))
        return min(timeit.repeat(lambda: Detector().feed(chunk), number=1, repeat=3, timer=time.process_time))

    assert seconds(pump) < 100 * seconds(b"[    1.0] some message of a driver, without any report in it\n")


def test_empty_lines_in_a_large_chunk_take_linear_time() -> None:
    """Before, the rest of a chunk was copied after each line."""

    def seconds(size: int) -> float:
        return min(timeit.repeat(lambda: Detector().feed(b"\n" * size), number=1, repeat=3, timer=time.process_time))

    assert seconds(1 << 18) < 8 * (1 << 8) * seconds(1 << 10)


def test_long_title_is_not_continued_on_the_next_line() -> None:
    """Before, the title grew by each piece of a line, and was searched as a whole."""

    def seconds(size: int) -> float:
        line = b"[    1.0] BUG: KASAN: " + b"," * size
        return min(timeit.repeat(lambda: Detector().feed(line), number=1, repeat=2, timer=time.process_time))

    assert seconds(1 << 18) < 20 * seconds(1 << 15)


def test_cause_is_found_among_thousands_of_reports() -> None:
    """Before, the log was searched from its beginning for each pair of reports."""
    bugs = b"".join(b"[    1.0] BUG: Bad rss-counter state mm:%d type:MM val:1\n" % number for number in range(3000))
    warning = b"[    1.0] WARNING: CPU: 1 PID: 2 at mm/a.c:1 f+0x1/0x2\n[    1.0] ---[ end trace 0 ]---\n"
    panic = b"[    1.1] Kernel panic - not syncing: kernel: panic_on_warn set ...\n"
    begin = time.process_time()
    found = read_console(bugs + warning + bugs + panic + b"[    0.0] Linux version 7.3\n" + panic).reports
    assert [each.kind for each in found[3000::3001]] == ["warning", "panic"]
    assert [(each.first_line, each.caused_by) for each in found[-2:]] == [(6003, 6000), (6005, None)]
    assert found[3000].charged and not found[-2].charged and found[-1].charged
    assert time.process_time() - begin < 60
