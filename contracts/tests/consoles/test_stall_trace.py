"""Where a CPU was stuck: soft and hard lockups, RCU stalls, and interrupts that nobody cared for."""

from __future__ import annotations

import pytest
from console_logs import reports

from wqlab_contracts.consoles.detect import Report
from wqlab_contracts.enums import FindingKind

SOFT = """\
watchdog: BUG: soft lockup - CPU#{cpu} stuck for {time}s! [{task}:{pid}]
Modules linked in:
hardirqs last  enabled at (1127): [<ffffffff81a01f2a>] asm_sysvec_apic_timer_interrupt+0x1a/0x20
CPU: {cpu} UID: 0 PID: {pid} Comm: {task} Not tainted 6.12.117 #1
RIP: 0010:{top}+0x1c/0x40
Code: 00 48 8b 45
Call Trace:
 <IRQ>
 ? watchdog_timer_fn+0x1a0/0x210
 ? hrtimer_interrupt+0x10/0x20
 </IRQ>
 <TASK>
 ? asm_sysvec_apic_timer_interrupt+0x1a/0x20
 {callers}
 process_one_work+0x171/0x310
 </TASK>
"""
DUMPED = """\
NMI backtrace for cpu {cpu}
CPU: {cpu} PID: {pid} Comm: {task} Not tainted 5.10.9 #1
Call Trace:
 <IRQ>
 dump_stack+0x1c4/0x2b4
 nmi_cpu_backtrace.cold.3+0x63/0xa2
 nmi_trigger_cpumask_backtrace+0x1b3/0x1ed
 arch_trigger_cpumask_backtrace+0x14/0x20
 rcu_dump_cpu_stacks+0x175/0x1c2
 print_cpu_stall.cold+0x2d3/0x524
 rcu_sched_clock_irq.cold+0x2d3/0x524
 update_process_times+0x2d/0x70
 tick_sched_timer+0x45/0x130
 __hrtimer_run_queues+0x41c/0x10d0
 hrtimer_interrupt+0x313/0x780
 sysvec_apic_timer_interrupt+0x1a1/0x760
 </IRQ>
 asm_sysvec_apic_timer_interrupt+0x12/0x20
RIP: 0010:native_queued_spin_lock_slowpath+0x62/0x1c0
Code: 00 48 8b 45
RSP: 0018:ffff880191beeed0 EFLAGS: 00000246
 _raw_spin_lock_irqsave+0x44/0x50
 {place}+0x29e/0x6a0
 worker_thread+0x53/0x3e0
RIP: 0033:0x457099
"""
SELF = (
    """\
rcu: INFO: rcu_preempt self-detected stall on CPU
rcu: \t{cpu}-...!: (3 GPs behind) idle=19a/1/0x4000000000000002 softirq=12356/12357 fqs=2
rcu: \t(t={time}00 jiffies g=12045 q=155)
rcu: rcu_preempt kthread starved for 10492 jiffies! g12045 f0x0 RCU_GP_WAIT_FQS(5) ->state=0x0 ->cpu=0
rcu: RCU grace-period kthread stack dump:
task:rcu_preempt     state:R  running task     stack:28872 pid:   14 ppid:     2 flags:0x00004000
Call Trace:
 __schedule+0x86c/0x1ed0
 schedule+0xfe/0x460
 schedule_timeout+0x140/0x260
 rcu_gp_kthread+0x9d9/0x2310
 kthread+0x35a/0x420
"""
    + DUMPED
)
BY_OTHER = """\
rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
rcu: \t{cpu}-...0: (1 GPs behind) idle=59a/1/0x4000000000000000 softirq=8266/8267 fqs=5250
\t(detected by 1, t={time}02 jiffies, g=6117, q=61)
Sending NMI from CPU 1 to CPUs 0,{cpu}:
NMI backtrace for cpu 0
CPU: 0 PID: 0 Comm: swapper/0 Not tainted 6.12.117 #1
RIP: 0010:pv_native_safe_halt+0xf/0x20
Call Trace:
 <TASK>
 default_idle+0x9/0x20
 do_idle+0x1e0/0x240
 </TASK>
NMI backtrace for cpu {cpu}
CPU: {cpu} UID: 0 PID: {pid} Comm: {task} Not tainted 6.12.117 #1
RIP: 0010:{place}+0xe/0x150
Call Trace:
 <NMI>
 ? nmi_cpu_backtrace+0xb8/0x130
 </NMI>
 <TASK>
 process_one_work+0x171/0x310
 </TASK>
"""
BLOCKED = """\
rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: {{ P{pid} }} {time} jiffies s: 845 root: 0x0/T
task:{task}  state:R  running task     stack:24880 pid:{pid} ppid: 13379 flags:0x00004000
Call Trace:
 __schedule+0x911/0x21b0
 preempt_schedule_irq+0x4e/0x90
 irqentry_exit+0x7a/0xa0
 asm_sysvec_apic_timer_interrupt+0x12/0x20
RIP: 0010:lock_acquire+0x1ef/0x740
Code: 50 a8 7e 83
 {place}+0x11b/0x890
 process_one_work+0x171/0x310
"""
IN_TIMER = """\
rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
NMI backtrace for cpu {cpu}
CPU: {cpu} PID: {pid} Comm: {task} Not tainted 6.1.5 #1
RIP: 0010:preempt_count_add+0xe/0x150
Call Trace:
 <IRQ>
 _raw_spin_lock+0xe/0x40
 {place}+0x47/0x8c0
 __hrtimer_run_queues+0x47f/0x930
 hrtimer_interrupt+0x373/0xd60
 </IRQ>
 <TASK>
 whatever_ran+0x24/0x130
 </TASK>
"""
ARM64 = """\
rcu: INFO: rcu_sched self-detected stall on CPU
Task dump for CPU {cpu}:
task:{task} state:R  running task on cpu   {cpu}   stack:    0 pid: {pid} ppid:  1407 flags:0x00000002
Call trace:
 show_stack+0x18/0x24
 sched_show_task+0x160/0x1a0
 dump_cpu_task+0x44/0x54
 rcu_dump_cpu_stacks+0xf4/0x138
 rcu_sched_clock_irq+0x83c/0xe70
 update_process_times+0x98/0x180
 arch_timer_handler_virt+0x34/0x50
 handle_percpu_devid_irq+0x84/0x140
 generic_handle_domain_irq+0x2c/0x44
 gic_handle_irq+0x5c/0x130
 call_on_irq_stack+0x24/0x4c
 do_interrupt_handler+0x80/0x8c
 el1_interrupt+0x34/0x54
 el1h_64_irq_handler+0x18/0x24
 el1h_64_irq+0x64/0x68
 queued_spin_lock_slowpath+0x70/0x3c0
 {place}+0x2c/0x60
"""
HARD = """\
watchdog: CPU{cpu}: Watchdog detected hard LOCKUP on cpu {cpu}
CPU: {cpu} PID: {pid} Comm: {task} Not tainted 6.18.2 #1
RIP: 0010:native_queued_spin_lock_slowpath+0x62/0x1c0
Call Trace:
 <TASK>
 _raw_spin_lock+0x2a/0x40
 {place}+0x1a/0x90
 </TASK>
"""
POWERPC = """\
watchdog: CPU {cpu} self-detected hard LOCKUP @ {place}+0x4c/0x60
watchdog: CPU {cpu} TB:{time}, last heartbeat TB:1 (10ms ago)
CPU: {cpu} PID: {pid} Comm: {task} Not tainted 6.12.1 #1
NIP:  c0000000000f0a4c LR: c0000000000f0a30 CTR: 0
NIP [c0000000000f0a4c] {place}+0x4c/0x60
LR [c0000000000f0a30] other+0x30/0x60
Call Trace:
[c000000001234560] [c0000000000f0a30] other+0x30/0x60 (unreliable)
[c000000001234590] [c0000000000f0b30] kthread+0x30/0x60
"""
CSD = """\
smp: csd: Detected non-responsive CSD lock (#1) on CPU#0, waiting 50000{time} ns for CPU#{cpu} do_flush+0x0/0x20(0x0).
Sending NMI from CPU 0 to CPUs {cpu}:
NMI backtrace for cpu {cpu}
CPU: {cpu} UID: 0 PID: {pid} Comm: {task} Not tainted 6.18.2 #1
RIP: 0010:{place}+0xe/0x150
"""


def report_of(text: str, **fields: object) -> Report:
    lines = text.format_map({"time": 26, "cpu": 1, "pid": 93, "task": "kworker/1:2", **fields}).splitlines()
    (report,) = reports("".join(f"[   60.1234{n:02}] {line}\n" for n, line in enumerate(lines)).encode())
    return report


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (SELF, FindingKind.RCU_STALL),
        (BY_OTHER, FindingKind.RCU_STALL),
        (BLOCKED, FindingKind.RCU_STALL),
        (IN_TIMER, FindingKind.RCU_STALL),
        (ARM64, FindingKind.RCU_STALL),
        (HARD, FindingKind.LOCKUP),
        (POWERPC, FindingKind.LOCKUP),
        (CSD, FindingKind.LOCKUP),
    ],
)
def test_stall_is_the_defect_of_the_place_where_the_cpu_was_stuck(text: str, kind: FindingKind) -> None:
    first = report_of(text, place="stuck_here")
    assert first.kind is kind and first.defect.endswith(" in stuck_here")
    assert first.defect == report_of(text, place="stuck_here", cpu=5, pid=7, task="dd", time=48).defect
    assert first.defect != report_of(text, place="stuck_there").defect


def test_stall_is_one_defect_whoever_detects_it() -> None:
    of_rcu = {report_of(text, place="stuck_here").defect for text in (SELF, BY_OTHER, BLOCKED, IN_TIMER, ARM64)}
    assert of_rcu == {"rcu_stall: INFO: RCU stall in stuck_here"}
    hard = {report_of(text, place="stuck_here").defect for text in (HARD, POWERPC)}
    assert hard == {"lockup: hard LOCKUP in stuck_here"}


@pytest.mark.parametrize(
    "above",
    [
        "native_queued_spin_lock_slowpath _raw_spin_lock_irq",
        "smp_call_function_many_cond on_each_cpu_cond_mask",
        "delay_tsc __const_udelay wait_for_lsr serial8250_console_write console_unlock vprintk_emit _printk",
        "__sanitizer_cov_trace_pc lock_is_held_type",
        "mutex_spin_on_owner __mutex_lock.constprop.0",
    ],
)
def test_soft_lockup_in_a_helper_is_the_callers(above: str) -> None:
    top, *helpers = above.split()

    def defect(function: str, **fields: object) -> str:
        callers = "\n ".join(f"{name}+0x1a/0x90" for name in [*helpers, function])
        return report_of(SOFT, top=top, callers=callers, **fields).defect

    assert defect("flush_all") == "lockup: BUG: soft lockup in flush_all"
    assert defect("flush_all") == defect("flush_all", cpu=3, pid=7, task="a b] c", time=134)
    assert defect("flush_all") != defect("drain_all")


@pytest.mark.parametrize(
    ("outside", "stuck"),
    [
        ("loops\n process_one_work\n worker_thread\n kthread", "loops"),
        ("loops\n kthread\n ret_from_fork_asm", "loops"),
        ("loops\n call_timer_fn\n run_timer_softirq\n handle_softirqs", "loops"),
        ("loops\n net_rx_action\n handle_softirqs\n run_ksoftirqd", "loops"),
        ("loops\n ext4_file_write_iter\n vfs_write\n ksys_write\n do_syscall_64", "ext4_file_write_iter"),
        ("loops\n exit_mmap\n __mmput\n do_exit\n __x64_sys_exit_group\n do_syscall_64", "exit_mmap"),
    ],
)
def test_soft_lockups_at_different_places_of_one_loop_are_one_defect(outside: str, stuck: str) -> None:
    callers = "\n ".join(f"{name.strip()}+0x1/0x2" for name in outside.split("\n"))
    found = {
        report_of(SOFT.replace("process_one_work+0x171/0x310", "end+0x1/0x2"), top=top, callers=callers).defect
        for top in ("first_place", "second_place")
    }
    assert found == {f"lockup: BUG: soft lockup in {stuck}"}


def test_stall_without_a_known_caller_is_the_defect_of_its_innermost_function() -> None:
    text = SOFT.replace("process_one_work+0x171/0x310", "unknown+0x1/0x2")
    assert report_of(text, top="loops", callers="caller+0x1/0x2").defect == "lockup: BUG: soft lockup in loops"


def test_stall_of_an_idle_cpu_names_it() -> None:
    report = report_of(BY_OTHER, place="default_idle")
    assert report.kind is FindingKind.RCU_STALL and report.defect.startswith("rcu_stall: INFO: RCU stall")


IRQ = """\
irq {irq}: nobody cared (try booting with the "irqpoll" option)
CPU: 0 PID: 0 Comm: swapper/0 Not tainted 6.12.117 #1
Call Trace:
 <IRQ>
 dump_stack_lvl+0x5d/0x80
 __report_bad_irq+0x35/0xa7
 note_interrupt.cold+0xb/0x61
 </IRQ>
 <TASK>
 asm_common_interrupt+0x26/0x40
RIP: 0010:{place}+0xd6/0x3a0
 do_idle+0x1e0/0x240
 </TASK>
handlers:
[<00000000c1b2a3d4>] usb_hcd_irq
[<000000002c11fe12>] {handler} [i2c_i801] threaded [<00000000deadbee1>] i801_thread [i2c_i801]
Disabling IRQ #{irq}
e1000e 0000:00:1f.6 eth0: NIC Link is Down
"""


def test_interrupt_that_nobody_cared_for_is_the_defect_of_its_handlers() -> None:
    first = report_of(IRQ, irq=16, handler="i801_isr", place="cpuidle_enter_state")
    assert (first.kind, first.fatal) == (FindingKind.WARNING, False)
    assert first.title == 'irq 16: nobody cared (try booting with the "irqpoll" option)'
    assert first.excerpt.endswith("Disabling IRQ #16")
    assert first.defect == report_of(IRQ, irq=129, handler="i801_isr", place="whatever_ran").defect
    assert first.defect != report_of(IRQ, irq=16, handler="ahci_handler", place="cpuidle_enter_state").defect


def test_bogus_return_value_of_a_handler_ends_with_the_handlers() -> None:
    text = IRQ.replace("irq {irq}: nobody", "irq event {irq}: bogus return value ffffffea\nnobody")
    report = report_of(text.replace("Disabling IRQ #{irq}\n", ""), irq=16, handler="a_handler", place="do_idle")
    assert "bogus return value" in report.title and report.excerpt.endswith("i801_thread [i2c_i801]")


@pytest.mark.parametrize(
    "line",
    [
        "__common_interrupt: 1.55 No irq handler for vector",
        "irq: type mismatch, failed to map hwirq-27 for gic!",
        "Disabling IRQ #16",
        "watchdog: CPU 1 became unstuck TB:1",
        "smp: csd: CSD lock (#1) got unstuck on CPU#00, CPU#01 released the lock.",
        "NMI backtrace for cpu 1 skipped: idling at default_idle+0xb/0x10",
        "INFO: NMI handler (perf_event_nmi_handler) took too long to run: 1.2 msecs",
        "workqueue: cgwb_release hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
    ],
)
def test_lines_like_those_of_stalls_are_no_report(line: str) -> None:
    assert reports(f"[    1.000000] {line}\n".encode()) == []
