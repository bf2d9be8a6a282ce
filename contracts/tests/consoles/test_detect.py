"""Detection in kernel logs as Linux 6.1 to 7.x print them on a serial console."""

from __future__ import annotations

import itertools
import time
import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts.consoles.detect import LINE_LIMIT, ConsoleEvent, Detector, Ready, Report
from wqlab_contracts.enums import FindingKind
from wqlab_contracts.messages import EXCERPT_LIMIT

PANIC = b"""\
[    1.204312] VFS: Unable to mount root fs on unknown-block(0,0)\r
[    1.204698] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\r
[    1.205171] CPU: 1 UID: 0 PID: 1 Comm: swapper/0 Not tainted 6.12.117 #1\r
[    1.205533] Hardware name: QEMU Standard PC (i440FX + PIIX, 1996), BIOS 1.16.2-debian-1.16.2-1 04/01/2014\r
[    1.206071] Call Trace:\r
[    1.206227]  <TASK>\r
[    1.206370]  dump_stack_lvl+0x5d/0x80\r
[    1.206601]  panic+0x118/0x2f0\r
[    1.206802]  mount_root_generic+0x1a2/0x330\r
[    1.207400]  ret_from_fork_asm+0x1a/0x30\r
[    1.207631]  </TASK>\r
[    1.207883] Kernel Offset: disabled\r
[    1.208103] ---[ end Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0) ]---\r
"""

OOPS = b"""\
[   12.345678][  T117] BUG: kernel NULL pointer dereference, address: 0000000000000008
[   12.345900][  T117] #PF: supervisor read access in kernel mode
[   12.346120][  T117] #PF: error_code(0x0000) - not-present page
[   12.346330][  T117] PGD 0 P4D 0
[   12.346500][  T117] Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI
[   12.346800][  T117] CPU: 1 UID: 0 PID: 117 Comm: kworker/1:2 Not tainted 6.12.117 #1
[   12.347000][  T117] RIP: 0010:flush_workqueue_prep_pwqs+0x84/0x1b0
[   12.347700][  T117] Call Trace:
[   12.347800][  T117]  <TASK>
[   12.347900][  T117]  __flush_workqueue+0x1c1/0x4f0
[   12.348300][  T117]  </TASK>
[   12.348800][  T117] ---[ end trace 0000000000000000 ]---
[   12.349000][  T117] RIP: 0010:flush_workqueue_prep_pwqs+0x84/0x1b0
[   12.349500][  T117] Kernel panic - not syncing: Fatal exception
[   12.349700][  T117] Kernel Offset: disabled
[   12.349900][  T117] ---[ end Kernel panic - not syncing: Fatal exception ]---
"""

KERNEL_BUG = b"""\
[    3.100000] ------------[ cut here ]------------
[    3.100100] kernel BUG at kernel/workqueue.c:3829!
[    3.100200] Oops: invalid opcode: 0000 [#1] SMP
[    3.100300] CPU: 0 UID: 0 PID: 33 Comm: insmod Not tainted 6.18.2 #3 PREEMPT(full)
[    3.100400] RIP: 0010:__flush_workqueue+0x4e6/0x4f0
[    3.100500] ---[ end trace 0000000000000000 ]---
"""

WARNING_OLD = b"""\
[   20.000100] ------------[ cut here ]------------
[   20.000200] refcount_t: underflow; use-after-free.
[   20.000300] WARNING: CPU: 3 PID: 71 at lib/refcount.c:28 refcount_warn_saturate+0xbe/0x110
[   20.000400] Modules linked in:
[   20.000500] CPU: 3 PID: 71 Comm: kworker/3:1 Not tainted 6.1.55 #1
[   20.000600] Workqueue: events do_work
[   20.000700] ---[ end trace 0000000000000000 ]---
"""

WARNING_NEW = b"""\
[   20.000100] ------------[ cut here ]------------
[   20.000300] WARNING: kernel/workqueue.c:2351 at __queue_work+0x3c4/0x4e0, CPU#3: kworker/3:1/71
[   20.000500] CPU: 3 UID: 0 PID: 71 Comm: kworker/3:1 Not tainted 7.0.0 #1 PREEMPT(lazy)
[   20.000700] ---[ end trace 0000000000000000 ]---
"""

LOCKDEP = b"""\
[   30.1] noise that is no timestamp
[   30.100000] ======================================================
[   30.100100] WARNING: possible circular locking dependency detected
[   30.100200] 6.12.117 #1 Not tainted
[   30.100300] ------------------------------------------------------
[   30.100400] kworker/0:1/10 is trying to acquire lock:
[   30.100500] ffff888100a0c940 (&wq->mutex){+.+.}-{4:4}, at: __flush_workqueue+0x92/0x4f0
[   30.100600] but task is already holding lock:
[   30.100700] other info that might help us debug this:
[   30.100800]  *** DEADLOCK ***
[   30.100900] stack backtrace:
[   30.101000] Call Trace:
[   30.101100]  <TASK>
[   30.101200]  dump_stack_lvl+0x5d/0x80
[   30.101300]  </TASK>
[   31.000000] EXT4-fs (vda): mounted
"""

HUNG = b"""\
[  243.712345] INFO: task fio:412 blocked for more than 120 seconds.
[  243.712400]       Not tainted 6.12.117 #1
[  243.712500] "echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.
[  243.712600] task:fio             state:D stack:0     pid:412   tgid:412   ppid:1      flags:0x00004002
[  243.712700] Call Trace:
[  243.712800]  <TASK>
[  243.712900]  __schedule+0x3f5/0xa80
[  243.713000]  </TASK>
"""

SOFT = b"""\
[   60.123456][    C1] watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [kworker/u8:0:11]
[   60.123500][    C1] CPU: 1 UID: 0 PID: 11 Comm: kworker/u8:0 Not tainted 6.12.117 #1
[   60.123600][    C1] Call Trace:
[   60.123700][    C1]  <TASK>
[   60.123800][    C1]  _raw_spin_lock_irq+0x13/0x30
[   60.123900][    C1]  </TASK>
"""

HARD = b"""\
[   70.123456] watchdog: Watchdog detected hard LOCKUP on cpu 2
[   70.123500] Modules linked in:
[   70.123700]  </TASK>
"""

STALL = b"""\
[   90.000100] BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 33s!
[   90.000200] Showing busy workqueues and worker pools:
[   90.000300] workqueue events: flags=0x0
[   90.000400]   pwq 2: cpus=0 node=0 flags=0x0 nice=0 active=1 refcnt=2
[   90.000500]     pending: vmstat_shepherd
[   90.000600] Showing backtraces of running workers in stalled CPU-bound worker pools:
"""

RCU = b"""\
[  100.000100][    C0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
[  100.000200][    C0] rcu: \t1-...!: (0 ticks this GP) idle=6d4c/0/0x1 softirq=95/95 fqs=0
[  100.000300][    C0] rcu: \t(detected by 0, t=21002 jiffies, g=-1111, q=4 ncpus=2)
[  100.000400][    C0] Sending NMI from CPU 0 to CPUs 1:
"""

RCU_SELF = b"[   10.5] x\n[  100.000100] rcu: INFO: rcu_sched self-detected stall on CPU\n"

KASAN = b"""\
[    5.000000] ==================================================================
[    5.000100] BUG: KASAN: slab-use-after-free in process_one_work+0x8b1/0x9d0
[    5.000200] Read of size 8 at addr ffff888104f0a018 by task kworker/1:1/41
[    5.000300] Call Trace:
[    5.000400]  <TASK>
[    5.000500]  </TASK>
[    5.000600] Memory state around the buggy address:
[    5.000700] ==================================================================
[    5.000800] Disabling lock debugging due to kernel taint
"""

ATOMIC = b"""\
[    8.000000] BUG: sleeping function called from invalid context at kernel/workqueue.c:3999
[    8.000100] in_atomic(): 1, irqs_disabled(): 0, non_block: 0, pid: 200, name: insmod
[    8.000200] Call Trace:
[    8.000300]  <TASK>
[    8.000400]  </TASK>
"""

ARM = b"""\
[    7.000000] Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010
[    7.000100] Mem abort info:
[    7.000200] Internal error: Oops: 0000000096000004 [#1] PREEMPT SMP
[    7.000300] Call trace:
[    7.000400]  process_one_work+0x15c/0x2b0
[    7.000500] ---[ end trace 0000000000000000 ]---
"""

LOCKS_HELD = b"""\
[    9.000000] ====================================
[    9.000100] WARNING: fio/412 still has locks held!
[    9.000200] 6.12.117 #1 Not tainted
[    9.000300] ------------------------------------
[    9.000400] 1 lock held by fio/412:
[    9.000500] stack backtrace:
[    9.000600]  <TASK>
[    9.000700]  </TASK>
"""

NO_KEY = b"""\
[    9.000000] INFO: trying to register non-static key.
[    9.000100] The code is fine but needs lockdep annotation, or maybe
[    9.000200] you didn't initialize this object before use?
[    9.000300] turning off the locking correctness validator.
[    9.000400]  <TASK>
[    9.000500]  </TASK>
"""

# CONFIG_DEBUG_BUGVERBOSE=n: no file, no line.
WARNINGS_TERSE = b"""\
[    4.000000] WARNING: CPU: 0 PID: 1 at __queue_work+0x3c4/0x4e0
[    4.000100] ---[ end trace 0000000000000000 ]---
[    5.000000] WARNING: at __queue_work+0x3c4/0x4e0, CPU#0: swapper/0/1
[    5.000100] ---[ end trace 0000000000000000 ]---
"""

BUG_TERSE = b"""\
[    4.000000] kernel BUG at __flush_workqueue+0x4e6/0x4f0 [verbose debug info unavailable]
[    4.000100] ---[ end trace 0000000000000000 ]---
"""

RCU_SHORT = b"""\
[  100.0] x
[  100.000100] rcu: INFO: rcu_preempt detected stall, but suppressed full report due to a stuck CSD-lock.
"""

CASES = [
    (LOCKS_HELD, [(FindingKind.LOCKDEP, False)]),
    (NO_KEY, [(FindingKind.LOCKDEP, False)]),
    (WARNINGS_TERSE, [(FindingKind.WARNING, False)] * 2),
    (BUG_TERSE, [(FindingKind.BUG, True)]),
    (RCU_SHORT, [(FindingKind.RCU_STALL, False)]),
    (HUNG.replace(b"blocked for", b"blocked in I/O wait for"), [(FindingKind.HUNG_TASK, False)]),
    (PANIC, [(FindingKind.PANIC, True)]),
    (OOPS, [(FindingKind.OOPS, True), (FindingKind.PANIC, True)]),
    (KERNEL_BUG, [(FindingKind.BUG, True)]),
    (WARNING_OLD, [(FindingKind.WARNING, False)]),
    (WARNING_NEW, [(FindingKind.WARNING, False)]),
    (LOCKDEP, [(FindingKind.LOCKDEP, False)]),
    (HUNG, [(FindingKind.HUNG_TASK, False)]),
    (SOFT, [(FindingKind.LOCKUP, False)]),
    (HARD, [(FindingKind.LOCKUP, True)]),
    (STALL, [(FindingKind.WORKQUEUE_STALL, False)]),
    (RCU, [(FindingKind.RCU_STALL, False)]),
    (RCU_SELF, [(FindingKind.RCU_STALL, False)]),
    (KASAN, [(FindingKind.KASAN, False)]),
    (ATOMIC, [(FindingKind.BUG, False)]),
    (ARM, [(FindingKind.OOPS, True)]),
]
EVERYTHING = b"".join(log for log, _ in CASES)


def seen(*chunks: bytes) -> list[ConsoleEvent]:
    detector = Detector()
    found = [item for chunk in chunks for item in detector.feed(chunk)]
    return found + detector.flush()


def reports(*chunks: bytes) -> list[Report]:
    return [item for item in seen(*chunks) if isinstance(item, Report)]


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
        ("BUG: unable to handle kernel NULL pointer dereference at           (null)", FindingKind.OOPS, True),
        ("INFO: task wqlab:421 can't die for more than 143 seconds.", FindingKind.HUNG_TASK, False),
        ("VFS: Busy inodes after unmount of vdb (xfs)", FindingKind.BUG, False),
        ("VFS: Close: file count is 0 (f_op=shmem_file_operations)", FindingKind.BUG, False),
    ],
)
def test_message_that_names_a_kind(line: str, kind: FindingKind, fatal: bool) -> None:
    (report,) = reports(f"[    1.0] quiet\n[    2.0] {line}\n[    9.0] quiet\n".encode())
    assert (report.kind, report.fatal, report.title) == (kind, fatal, line)


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


def test_unfinished_report_is_returned_by_flush() -> None:
    detector = Detector()
    cut = PANIC[: PANIC.index(b"[    1.206071]")]
    assert detector.feed(cut) == []
    assert detector.reporting
    assert detector.fatal_open
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
