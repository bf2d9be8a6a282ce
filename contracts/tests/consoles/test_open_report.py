"""Where kernel reports end, and which lines of other CPUs belong to them."""

from __future__ import annotations

import pytest

from wqlab_contracts.consoles.detect import Detector, Report


def reports(console: bytes) -> list[Report]:
    detector = Detector()
    return [each for each in [*detector.feed(console), *detector.flush()] if isinstance(each, Report)]


def stamped(*lines: str) -> bytes:
    return b"".join(b"[   20.%06d] %s\n" % (number, line.encode()) for number, line in enumerate(lines))


@pytest.mark.parametrize(
    ("first", "others", "last"),
    [
        ("Kernel panic - not syncing: x", ["Rebooting in 5 seconds.."], "EXT4-fs"),
        ("BUG: sleeping function called from invalid context at a.c:1", ["Call trace:", " f+0x1/0x2 (P)"], "EXT4-fs"),
        ("INFO: task a:1 blocked for more than 64 seconds.", ["Call trace:", " f+0x1/0x2"], "Showing all locks held"),
        ("kernel BUG at a.c:3!", ["Oops: invalid opcode: 0000 [#1] SMP"], "SeaBIOS (version 1.16)"),
        ("BUG: non-zero pgtables_bytes on freeing mm: 4096", [], "EXT4-fs"),
        ("BUG: workqueue lockup - pool", [" cpus=1 stuck for 31s!"], "Linux version 6.12.20"),
    ],
)
def test_a_report_ends_before_the_next_message(first: str, others: list[str], last: str) -> None:
    (report,) = reports(stamped(first, *others, last))
    assert report.excerpt.split("\n")[-1].endswith(others[-1] if others else first)


def test_a_report_without_an_end_ends_where_the_kernel_is_silent() -> None:
    late = b"[   23.000000] EXT4-fs (vda): mounted\n"
    (report,) = reports(stamped("BUG: atomic", "Call Trace:", " f+0x1/0x2") + late)
    assert "EXT4-fs" not in report.excerpt


def test_backtrace_of_another_cpu_belongs_to_the_stall() -> None:
    stall = b"[   10.000000][    C0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n"
    other = b"[   10.000100][    C1] NMI backtrace for cpu 1\n[   10.000200][    C1]  loop+0x1/0x2\n"
    (report,) = reports(stall + other + b"[   10.000300][   T41] EXT4-fs (vda): mounted\n")
    assert "loop+0x1" in report.excerpt and "EXT4-fs" not in report.excerpt


WARN = ["------------[ cut here ]------------", "WARNING: mm/slub.c:1217 at object_err+0x24/0x30, CPU#1: a/189"]
TRACED = ["Call Trace:", " <TASK>", " kfree+0x1/0x2", " test_clobber_zone+0x3/0x4", " </TASK>"]
END = "---[ end trace 0000000000000000 ]---"


@pytest.mark.parametrize(
    "message",
    [
        ["=" * 77, "BUG kmalloc-64 (Not tainted): Redzone overwritten", "-" * 77, "", "Slab 0xffffea0 objects=64"],
        ["BUG: Dentry ffff888119d8a000{i=0,n=.index}  still in use (1) [unmount of ramfs ramfs]"],
    ],
)
def test_warning_that_prints_the_trace_of_a_bug_is_no_report_of_its_own(message: list[str]) -> None:
    (report,) = reports(stamped(*message, *WARN, *TRACED, END, "EXT4-fs (vda): mounted"))
    assert (report.kind, report.fatal) == ("bug", False)
    assert report.excerpt.endswith(END) and report.defect.endswith(" in test_clobber_zone")


@pytest.mark.parametrize(
    "bug",
    [
        ["BUG: scheduling while atomic: a/1/0x2", *TRACED],
        ["=" * 66, "BUG: KCSAN: data-race in f / g", "write to 0xffff8881 of 8 bytes by task 1:", " f+0x1/0x2"],
        ["BUG: Bad rss-counter state mm:00000000 type:MM_FILEPAGES val:1"],
    ],
)
def test_warning_behind_a_bug_that_needs_none_is_a_report(bug: list[str]) -> None:
    assert [each.kind for each in reports(stamped(*bug, *WARN, *TRACED, END))] == ["bug", "warning"]
