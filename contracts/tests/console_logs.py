"""Kernel logs as Linux 6.1 to 7.x print them on a serial console, and what the detector finds in them."""

from __future__ import annotations

from wqlab_contracts.consoles.detect import ConsoleEvent, Detector, Report
from wqlab_contracts.enums import FindingKind

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
