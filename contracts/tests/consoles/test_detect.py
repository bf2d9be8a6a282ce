"""Detection of each kind of report in kernel logs."""

from __future__ import annotations

import pytest
from console_logs import CASES, OOPS, PANIC, SOFT, WARNING_OLD, reports, seen

from wqlab_contracts.consoles.detect import Ready
from wqlab_contracts.enums import FindingKind


@pytest.mark.parametrize(("log", "expected"), CASES, ids=lambda value: value[0][0].value if type(value) is list else "")
def test_every_format_is_found_once(log: bytes, expected: list[tuple[FindingKind, bool]]) -> None:
    assert [(report.kind, report.fatal) for report in reports(log)] == expected


@pytest.mark.parametrize(
    ("line", "kind", "fatal"),
    [
        ("Unhandled fault at 0xffff800081234567", FindingKind.OOPS, True),
        ("Unhandled fault: page domain fault (0x01b) at 0x00000008", FindingKind.OOPS, True),
        ("Internal error: Oops: 5 [#1] SMP ARM", FindingKind.OOPS, True),
        ("BUG: Unable to handle kernel data access at 0x8000000041a25f20", FindingKind.OOPS, True),
        ("Internal error: UBSAN: array index out of bounds: 00000000f2005512 [#1]  SMP", FindingKind.OOPS, True),
        ("Internal error: synchronous external abort: 0000000096000410 [#1]  SMP", FindingKind.OOPS, True),
        ("Unable to handle kernel pointer dereference in virtual kernel address space", FindingKind.OOPS, True),
        ("Oops: 0004 ilc:2 [#1] SMP", FindingKind.OOPS, True),
        (
            "CPU 1 Unable to handle kernel paging request at virtual address 0000000000000000, era == 9000, ra == 90",
            FindingKind.OOPS,
            True,
        ),
        ("Oops[#1]:", FindingKind.OOPS, True),
        ("WARNING: at mm/a.c:12 f+0x9c/0x67f [mac80211]()", FindingKind.WARNING, False),
        ("WARNING: at arch/powerpc/platforms/pseries/eeh.c:390", FindingKind.WARNING, False),
        ("INFO: inconsistent lock state", FindingKind.LOCKDEP, False),
        ("INFO: suspicious rcu_dereference_check() usage.", FindingKind.LOCKDEP, False),
        ("BUG: unable to handle kernel NULL pointer dereference at           (null)", FindingKind.OOPS, True),
        ("INFO: task wqlab:421 can't die for more than 143 seconds.", FindingKind.HUNG_TASK, False),
        ("VFS: Busy inodes after unmount of vdb (xfs)", FindingKind.BUG, False),
        ("VFS: Close: file count is 0 (f_op=shmem_file_operations)", FindingKind.BUG, False),
    ],
)
def test_message_that_names_a_kind(line: str, kind: FindingKind, fatal: bool) -> None:
    (report,) = reports(f"[    1.0] quiet\n[    2.0] {line}\n[    9.0] quiet\n".encode())
    assert (report.kind, report.fatal, report.title) == (kind, fatal, line)


@pytest.mark.parametrize("text", ["INFO: possible recursive locking detected", "BUG: bad unlock balance detected!"])
def test_brackets_are_no_part_of_the_title_of_an_old_kernel(text: str) -> None:
    (report,) = reports(f"[    2.0] [ {text} ]\n".encode())
    assert (report.kind, report.title) == (FindingKind.LOCKDEP, text)


def test_warnings_without_a_function_differ_by_their_lines() -> None:
    first, second = reports(b"WARNING: at arch/s390/a.c:11\n[    9.0] x\nWARNING: at arch/s390/a.c:12\n")
    assert first.defect == "warning: WARNING: at arch/s390/a.c@11" != second.defect


def test_header_of_a_part_of_pstore_does_not_end_a_report() -> None:
    (report,) = reports(OOPS.replace(b"Call Trace:", b"Oops#1 Part1\n[    1.5] Call Trace:", 1))[:1]
    assert [frame.function for frame in report.stack] == ["flush_workqueue_prep_pwqs", "__flush_workqueue"]


def test_message_of_a_rust_panic_belongs_to_its_bug() -> None:
    log = (
        b"[    2.0][  T298] rust_kernel: panicked at drivers/block/rnull.rs:77:13:\n"
        b"[    2.0][  T298] attempt to subtract with overflow\n"
        b"[    2.1][  T298] ------------[ cut here ]------------\n"
        b"[    2.1][  T298] kernel BUG at rust/helpers/bug.c:7!\n"
        b"[    2.1][  T298] Oops: invalid opcode: 0000 [#1] SMP\n"
        b"[    2.2][  T298] ---[ end trace 0000000000000000 ]---\n"
    )
    (report,) = reports(log)
    assert "attempt to subtract with overflow" in report.excerpt and report.kind is FindingKind.BUG


def test_complete_report_is_kept() -> None:
    oops, panic = reports(OOPS)
    assert oops.title == "BUG: kernel NULL pointer dereference, address: 0000000000000008"
    assert oops.excerpt.splitlines()[0].endswith(oops.title)
    assert oops.excerpt.splitlines()[-1].endswith("---[ end trace 0000000000000000 ]---")
    assert "flush_workqueue_prep_pwqs+0x84/0x1b0" in oops.excerpt
    assert panic.title == "Kernel panic - not syncing: Fatal exception"


def test_report_begins_at_its_separator() -> None:
    before = b"[    0.1] boot \xff noise\r\n"
    (report,) = reports(before + WARNING_OLD)
    assert report.offset == len(before)
    assert report.excerpt.splitlines()[0].endswith("[ cut here ]------------")
    assert report.title.startswith("WARNING: CPU: 3 PID: 71 at lib/refcount.c:28")


@pytest.mark.parametrize(
    "line",
    [
        b"[    1.0] Kernel panic - not syn",
        b"systemd: handler for Kernel panic - not syncingly written\n",
        b"[    1.000000] Booting Linux with panic=0 oops=panic\n",
        b"[    1.000000] debug: WARNING: no entropy\n",
        b"[    1.000000] workqueue: round-robin CPU selection forced, expect performance impact\n",
        b"[    1.000000] rcu: INFO: preemption off\n",
        b"[    1.000000] RCU Tasks: BUGS none\n",
        b"==========================\nhello\n",
    ],
)
def test_ordinary_lines_are_no_report(line: bytes) -> None:
    assert reports(line) == []


def test_complete_ready_line_is_recognized() -> None:
    line = b"\r\nwqlab-ready token=ab12 boot_id=2c5bd1a6-4dd0-4a0d-8d2e-f6f2f2a6b6a1\r\n"
    assert seen(line) == [Ready("ab12", "2c5bd1a6-4dd0-4a0d-8d2e-f6f2f2a6b6a1")]
    assert seen(line[:-2]) == [], "half a line is no line"


def test_ready_after_kernel_text_on_the_same_line() -> None:
    line = b"[    4.2] random: crng init donewqlab-ready token=- boot_id=2c5bd1a6-4dd0-4a0d-8d2e-f6f2f2a6b6a1\n"
    assert [item for item in seen(line) if isinstance(item, Ready)]


def test_panic_is_found_among_terminal_sequences() -> None:
    garbled = b"\x1b[2J\x1b[1;31m" + PANIC.replace(b"[    1.204698] ", b"\x00\xfe[    1.204698] \x1b[0m")
    assert [report.kind for report in reports(garbled)] == [FindingKind.PANIC]


def test_reports_of_one_defect_have_equal_descriptions() -> None:
    first, second = reports(SOFT)[0], reports(SOFT.replace(b"CPU#1 stuck for 26s", b"CPU#7 stuck for 31s"))[0]
    assert first.defect == second.defect
    assert reports(OOPS)[0].defect != first.defect


def test_oopses_with_other_call_traces_are_other_defects() -> None:
    first = reports(OOPS)[0]
    moved = OOPS.replace(b"CPU: 1", b"CPU: 7").replace(b"PID: 117", b"PID: 9").replace(b"0x84/", b"0x88/")
    assert reports(moved)[0].defect == first.defect
    assert reports(OOPS.replace(b"__flush_workqueue", b"drain_workqueue"))[0].defect != first.defect
    assert [frame.function for frame in first.stack] == ["flush_workqueue_prep_pwqs", "__flush_workqueue"]
