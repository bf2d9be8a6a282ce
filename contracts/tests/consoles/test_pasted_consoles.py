"""Consoles as people paste them into mails: wrapped, decoded, with prose behind them, of several architectures."""

from __future__ import annotations

import pytest
from console_logs import reports

from wqlab_contracts.consoles.console_reading import ReadReport, read_console

STAMP = "[   12.345678] "
TRACE = ["Call Trace:", " <TASK>", " do_it+0x1/0x2", " </TASK>"]


def read(*lines: str) -> list[ReadReport]:
    return read_console("".join(f"{line}\n" for line in lines).encode()).reports


@pytest.mark.parametrize(
    ("first", "rest", "kind"),
    [
        ("WARNING: CPU: 2 PID: 0 at net/sched/sch_generic.c:443 ", "dev_watchdog+0x258/0x260", "warning"),
        ("WARNING: CPU: 1 PID: 57846 at", "drivers/iommu/io-pgtable-arm.c:603 __arm_lpae_unmap+0x4a0/0x4c4", "warning"),
        ("INFO: task kworker/2:3:1640 blocked for more than 122 ", "seconds.", "hung_task"),
        ("INFO: task systemd-journald-xyz:1640 blocked for more", "than 122 seconds.", "hung_task"),
        ("BUG: kernel NULL pointer dereference, address: ", "0000000000000008", "oops"),
        ("BUG: unable to handle page fault for address: ", "ffffc90042880018", "oops"),
        ("Oops: general protection fault, probably for ", "non-canonical address 0xd0: 0000 [#1] SMP NOPTI", "oops"),
        ("Unable to handle kernel NULL pointer dereference ", "at virtual address 00000010 when read", "oops"),
        ("Internal error: Oops - undefined instruction: 0 ", "[#1] PREEMPT SMP ARM", "oops"),
        ("watchdog: BUG: soft lockup - CPU#97 stuck for 26s! ", "[fio:93777]", "lockup"),
        ("rcu: INFO: rcu_preempt detected expedited stalls on ", "CPUs/tasks: { 3-... } 21 jiffies", "rcu_stall"),
        ("BUG: sleeping function called from invalid context at ", "kernel/locking/mutex.c:580", "bug"),
        ("BUG: KASAN: slab-use-after-free in ", "cifs_reconnect+0x1ab/0x2f0", "kasan"),
        ("BUG: kernel NULL ", "pointer dereference, address: 0000000000000000", "oops"),
        ("invalid ", "opcode: 0000 [#1] PREEMPT SMP NOPTI", "oops"),
    ],
)
@pytest.mark.parametrize(
    "stamp", [STAMP, "[   12.345678][  T123] ", "Oct 12 18:12:16 host kernel: ", "4,10,12345678,-;"]
)
def test_wrapped_title_is_read_as_a_whole(first: str, rest: str, kind: str, stamp: str) -> None:
    (report,) = read(stamp + first, rest, *(stamp + line for line in TRACE))
    whole = f"{first.rstrip()} {rest}".removeprefix("rcu: ").removeprefix("watchdog: ")
    assert (report.kind, report.title, report.first_line) == (kind, whole, 1)


@pytest.mark.parametrize(
    "lines",
    [
        ["Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks possible", "kernel+0x1/0x2"],
        [f"{STAMP}WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks ", f"{STAMP}EXT4-fs: at 0x1"],
        [f"{STAMP}INFO: NMI handler (perf_event_nmi_handler) took too long to run: ", "1.2 msecs"],
        ["WARNING: it is not", "at f+0x1/0x2"],
        ["WARNING: I3 - gitlint will be switching from using Python regex 'match' to", "'search': 12 [#1]"],
    ],
)
def test_other_lines_are_not_joined_to_a_report(lines: list[str]) -> None:
    assert read(*lines) == []


def test_wrapped_title_in_a_quotation_is_joined_without_its_marks() -> None:
    (report,) = read(f">> {STAMP}BUG: kernel NULL pointer dereference, address: ", ">> 0000000000000008")
    assert report.title == "BUG: kernel NULL pointer dereference, address: 0000000000000008"


def test_report_begins_after_a_line_that_only_looks_like_a_title() -> None:
    (report,) = read(f"{STAMP}WARNING: a driver says something that a mail may wrap", f"{STAMP}BUG: it")
    assert (report.first_line, report.title) == (2, "BUG: it")


@pytest.mark.parametrize(
    "title",
    [
        "WARNING: CPU: 3 PID: 7 at kernel/locking/rwsem.c:245 down_read (kernel/locking/rwsem.c:245 (discriminator 1))",
        "WARNING: CPU: 3 PID: 7 at kernel/locking/rwsem.c:245 down_read kernel/locking/rwsem.c:245 [inline]",
        "WARNING: kernel/locking/rwsem.c:245 at down_read+0x1/0x2 kernel/locking/rwsem.c:245, CPU#3: fsx/7",
    ],
)
def test_decoded_warning_is_the_defect_of_its_function(title: str) -> None:
    (report,) = read("------------[ cut here ]------------", title, *TRACE)
    assert report.defect == "warning: WARNING in down_read kernel/locking/rwsem.c@245"


def test_frames_of_a_decoded_trace_are_its_functions() -> None:
    (report,) = read(
        f"{STAMP}BUG: KASAN: slab-use-after-free in foo (kernel/foo.c:12)",
        f"{STAMP}Call Trace:",
        f"{STAMP} <TASK>",
        f"{STAMP} dump_stack_lvl (lib/dump_stack.c:117)",
        f"{STAMP} ? guessed (kernel/foo.c:1)",
        f"{STAMP} foo (kernel/foo.c:12 include/linux/list.h:9)",
        f"{STAMP} </TASK>",
    )
    assert report.stack == ["dump_stack_lvl", "foo"] and report.defect.endswith(" in foo")


@pytest.mark.parametrize("title", ["BUG: KASAN: wild-memory-access in {}", "WARNING: CPU: 1 PID: 5 at mm/v.c:5 {}"])
def test_title_of_each_inlined_function_is_one_report(title: str) -> None:
    inner, outer, real = (f"{name} mm/v.c:5 [inline]" for name in "abc")
    (report,) = read(*(title.format(each) for each in (inner, outer, real.replace(" mm", "+0x1/0x2 mm"))), *TRACE)
    assert (report.title, report.last_line) == (title.format(inner), 7)


@pytest.mark.parametrize(
    ("stamp", "caller"),
    [
        ("oct. 12 18:12:16 host kernel: ", ""),
        ("Oct 12 18:12:16 kernel: ", ""),
        ("   Jan 24 15:15:20 host.example.org kernel: ", ""),
        ("kernel: ", ""),
        ("[Vi feb 14 19:45:28 2025] ", ""),
        ("[ T6790] ", "T6790"),
        ("2025-05-12T22:31:54.794090+02:00 lisa kernel: [   C13] ", "C13"),
        ("    2023-12-07T06:28:16.250148  kern  :alert : ", ""),
        ("[\u00a0\u00a0 37.378219] ", ""),
    ],
)
def test_report_behind_a_prefix(stamp: str, caller: str) -> None:
    (report,) = read(f"{stamp}BUG: unable to handle page fault for address: ffffc90042880018")
    assert (report.kind, report.title[:11]) == ("oops", "BUG: unable")
    (found,) = reports(f"{stamp}BUG: it\n[  C99] BUG: other\n".encode())[:1]
    assert found.excerpt.endswith("BUG: it"), caller


@pytest.mark.parametrize(
    "title", ["WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2", "BUG: KASAN: wild-memory-access in f+0x1/0x2"]
)
def test_prose_behind_a_report_is_no_part_of_it(title: str) -> None:
    without_stamps = read(title, *TRACE, "", "I bisected it to this patch.")
    with_stamps = read(f"{STAMP}{title}", *(STAMP + line for line in TRACE), "I bisected it to this patch.")
    assert [(each.last_line, each.excerpt.splitlines()[-1][-7:]) for each in [*without_stamps, *with_stamps]] == [
        (5, "</TASK>")
    ] * 2


@pytest.mark.parametrize(
    "trace",
    [
        ["Call Trace:", "[<ffffffe000202698>] f+0x0/0xa4"],  # riscv
        ["Call Trace:", "[<9000000000223ac4>] f+0x60/0x180"],  # loongarch
        ["Call Trace:", "[c0000000012e] [c0000000000f0a30] f+0x30/0x60 (unreliable)", "--- interrupt: 3000 at 0x7f"],
        ["Call Trace:", " [<000000020d757322>] f+0x82/0xb0", "([<000000020d757322>] f+0x82/0xb0)"],  # s390
        ["Call trace: ", " f from g+0x10/0x14", "Exception stack(0xf0b2bfb0 to 0xf0b2bff8)", "bfa0: 00000000"],  # arm
        ["Call Trace:", " [<ffffffff8177f229>] schedule+0x29/0x70", "RIP: 0033:0x7f", "RAX: ffffffffffffffda"],
    ],
)
def test_report_with_one_trace_ends_with_it(trace: list[str]) -> None:
    lines = ["INFO: task a:1 blocked for more than 64 seconds.", *trace, "EXT4-fs (vda): mounted filesystem"]
    (report,) = read(*(STAMP + line for line in lines))
    assert report.last_line == len(lines) - 1


def test_scissors_of_arm_begin_a_report() -> None:
    (report,) = read(
        f"{STAMP}8<--- cut here ---",
        f"{STAMP}Unable to handle kernel paging request at virtual address fee00000 when write",
        f"{STAMP}Internal error: Oops: 805 [#1] SMP ARM",
    )
    assert (report.first_line, report.kind, report.last_line) == (1, "oops", 3)


def test_trace_of_arm_without_a_heading() -> None:
    lines = [" unwind_backtrace from show_stack+0x10/0x14", " show_stack from do_it+0x8/0x20 [mod]"]
    (report,) = read("WARNING: CPU: 0 PID: 0 at lib/refcount.c:25 kobject_get+0xbc/0xc4", *lines)
    assert report.stack == ["show_stack", "do_it"]


def test_title_of_a_mail_by_syzbot_is_no_stall() -> None:
    (report,) = read("INFO: rcu detected stall in corrupted", "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:^M")
    assert report.title == "INFO: rcu_preempt detected stalls on CPUs/tasks:"


def test_functions_of_powerpc_begin_with_a_dot() -> None:
    (report,) = read("WARNING: CPU: 16 PID: 1263 at crypto/testmgr.c:5652 .alg_test+0x874/0xcd0", *TRACE)
    assert report.defect == "warning: WARNING in alg_test crypto/testmgr.c@5652"


@pytest.mark.parametrize("margin", ["  ", "\t", "        ", "| ", "  |  "])
@pytest.mark.parametrize("stamp", ["", "[] ", STAMP])
def test_indented_report_is_read_as_one_that_is_not(margin: str, stamp: str) -> None:
    lines = [
        "------------[ cut here ]------------",
        "WARNING: CPU: 1 PID: 5 at mm/v.c:5 f+0x1/0x2",
        *TRACE,
        "---[ end trace 0000000000000000 ]---",
    ]
    lines = ["Tested on a board:", "", *(f"{margin}{stamp}{line}" for line in lines), "", "It is gone."]
    (report,) = read(*lines)
    assert (report.first_line, report.last_line, report.stack) == (3, 9, ["do_it"])
    assert report.excerpt.splitlines()[1].endswith("WARNING: CPU: 1 PID: 5 at mm/v.c:5 f+0x1/0x2")


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("WARNING: CPU: 0 PID: 15 at kernel/irq_work.c:144 irq_work_queue_on", "warning"),
        ("WARNING: CPU: 5 PID: 95 at drivers/a.c:304  f+0x2d0/0x3f0", "warning"),
        ("WARNING: arch/arm64/kernel/topology.c:410 at counters_read_on_cpu", "warning"),
        ("Unable to handle kernel NULL pointer dereference", "oops"),
        ("Unable to handle kernel paging request at virtual address ...", "oops"),
        ("BUG: unable to handle page fault for address: ...", "oops"),
        ("Oops: general protection fault, probably for non-canonical address", "oops"),
        ("Oops: general protection fault, 0000 [#1] SMP KASAN NOPTI", "oops"),
        ("Oops: 0038 ilc:3 [#1]SMP", "oops"),
    ],
)
def test_shortened_title_is_that_of_its_report(title: str, kind: str) -> None:
    (report,) = read(title, *TRACE)
    assert (report.kind, report.title) == (kind, title)


def test_report_begins_behind_the_prose_that_follows_another() -> None:
    first, second = "BUG: unable to handle page fault for address: ...", "Unable to handle kernel paging request at"
    panic, end = "Kernel panic - not syncing: Attempted to kill init!", "---[ end Kernel panic - not syncing: Attempted"
    found = read(first, *TRACE, "", "On arm64:", second, "virtual address 00", panic, end, "to kill init! ]---", panic)
    assert [(each.kind, each.first_line) for each in found] == [("oops", 1), ("oops", 8), ("panic", 10), ("panic", 13)]
    assert found[0].title == first
