"""Reduce a kernel report to what names its defect: without task, CPU, page frame and address, with lock classes, work
function and source line.

Formats: kernel/locking/lockdep.c, kernel/workqueue.c, kernel/panic.c, lib/debugobjects.c, mm/memory.c, lib/refcount.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile

from .enums import FindingKind
from .messages.base import StackFrame

_VARYING = re.compile(r"(?P<file>[\w.-]*/[\w./-]+\.[chS]):(?P<line>\d+)(?::\d+)?|0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")
_TASKS = (
    (re.compile(r"(scheduling while atomic|leaked (?:atomic|lock)[^:]*|INFO: task) ?:? .*"), r"\1"),
    (re.compile(r"(using \S+ in preemptible) .*"), r"\1"),
    (re.compile(r"(Bad page \w+ in process) .*"), r"\1"),
    (re.compile(r"(spinlock|rwlock|rt_mutex)( [\w ]+?) on CPU#.*"), r"\1\2"),
    # Which CPU detects a stall, and in which kind of grace period, depends on time.
    (
        re.compile(r"INFO: rcu(?:_preempt|_sched|_bh)? (?:self-)?detected (?:expedited )?stalls? on CPU.*"),
        "INFO: RCU stall",
    ),
    (re.compile(r"(workqueue lockup - pool cpus=)\d+[,-][\d,-]*"), r"\1several"),
    (re.compile(r"soft lockup (?:- CPU#|detected on CPU#).*"), "soft lockup"),
    (re.compile(r"(non-responsive CSD lock) .*"), r"\1"),
    (re.compile(r"(irq \d+: nobody cared) .*|(irq event \d+: bogus return value).*"), r"\1\2"),
    (re.compile(r"(?:Watchdog |CPU \d+ (?:self-)?)detected hard LOCKUP .*"), "hard LOCKUP"),
    (re.compile(r" (?:Comm|Pid|val|mm):\S+"), ""),
    (re.compile(r"WARNING: .+/\d+ (still has locks held!)"), r"WARNING: \1"),
    (re.compile(r"\((?:Not tainted|Tainted: [^)]*)\)"), ""),
)
"""Parts of titles that name a task, a CPU or a page frame, and what is left of each."""
_WARNING = re.compile(
    r"WARNING: (?:CPU: \d+ PID: \d+ at )?(?:\[(?P<condition>.*)\] )?(?:at )?(?:(?P<place>\S+:\d+) )?(?:at )?"
    r"(?:\.?(?P<function>(?!at )[A-Za-z_][\w.$]*)(?:\+0x| \(?[\w./-]+\.[chS]:\d)|0x)"
)
_COMPILER_SUFFIX = re.compile(r"\.(?:isra|constprop|part|cold)\b(?:\.\d+)?")
_SEARCHED_LINES = 60
_SEARCHED_LINE = 400
"""Lines of an excerpt and characters of a line that are searched. What is searched for is near the beginning."""
_INSTANCE = re.compile(r"#\d+")
_WORK_FUNCTION = re.compile(r"\bworkfn=(\w+)|last function: (\w+)")
_RCU_PLACE = re.compile(r"(?:^|\] ?)(?P<place>[\w./-]+\.[chS]:\d+) [^\n]*!$")
_IRQ_HANDLER = re.compile(r"\[<[^>\s]{1,40}>\] \(?([A-Za-z_]\w*)")
_OBJECT = re.compile(r"ODEBUG: (\w+ \w+) .*object type: (\w+)(?: hint: ([\w.]+))?")

_PRINTING = re.compile(
    r"show_stack|dump_backtrace\b.*|__?dump_stack|dump_stack_lvl|dump_stack|v?panic|nmi_panic|add_taint|print_report"
    r"|check_panic_on_warn|__warn(?:_printk)?|warn_slowpath_\w+|report_bug|handle_bug|\w*exc_invalid_op"
    r"|arm64_serror_panic|do_serror|el1h_64_error\w*|bug_handler|call_el1_break_hook|brk_handler|el1_dbg"
    r"|el1h_64_sync\w*|el1_abort|do_debug_exception|do_mem_abort|do_\w+_fault|__do_kernel_fault|walk_stackframe|do_trap_break"
    r"|fixup_bug|do_error_trap|do_trap|do_invalid_op|invalid_op|print_address_description|_{0,2}kasan_report\w*"
)
"""Functions that print a report. Their first caller that is none of them is where it was requested."""
_CHECKING = re.compile(
    r"_{0,3}might_(?:sleep|resched|fault)|__schedule_bug|(?:preempt_)?schedule\w*|__schedule|io_schedule\w*"
    r"|check_preemption_disabled|debug_smp_processor_id|__this_cpu_preempt_check"
    r"|refcount_\w+|__refcount_\w+|__list_(?:add|del)\w*|_{0,2}debug_(?:print_|check_|object_)\w+|kasan_\w+|__(?:asan|kasan)_\w+"
    r"|usercopy_abort|__?check_(?:heap_)?object(?:_size)?|check_heap_object|_{0,2}fortify_\w+|__ubsan_\w+|ubsan_epilogue"
    r"|check_bytes_and_report|check_(?:object|slab)|slab_free\w*|free_to_partial_list|object_err|slab_err|print_trailer"
    r"|(?:alloc|free)_(?:debug|consistency)_\w+|__slab_free|kfree|kmem_cache_free|bad_page|print_bad_pte|spin_bug|spin_dump"
    r"|do_raw_\w+|_raw_\w+|print_\w+bug\w*|check_noncircular|check_prev_add|validate_chain|__lock_acquire|lock_acquire"
    r"|lock_release|mark_(?:lock|usage|held)\w*|lockdep_\w+|__might_\w+|rcu_\w*lockdep\w*|register_lock_class"
    r"|debug_check_no_\w+|trace_hardirqs_o\w+|skb_panic|_{0,2}mem(?:cpy|move|set|cmp|chr)\w*|str\w?cpy|str\w?cmp|strlen|strstr"
    r"|check_memory_region|__kcsan_\w+|__tsan_\w+|kcsan_\w+|kmsan_\w+|__msan_\w+|handle_overflow|usercopy_warn"
    r"|_copy_(?:to|from)_(?:user|iter)|copy_page_to_iter|work_is_static_object|lock_timer_base|__local_bh_\w+|__seqprop_\w+"
    r"|_{0,3}k[mvz]{1,2}alloc\w*|kmem_cache_\w+|___slab_alloc|_{0,2}alloc_(?:frozen_)?pages\w*|_{0,2}v[mz]alloc\w*"
)
"""Functions that check what their callers do; the defect is the caller's."""
_WAITING = re.compile(
    r"__switch_to|context_switch|_{0,2}mutex_lock\w*|rwsem_\w+|down_\w+|__down_\w+|wait_for_\w+|__wait_\w+"
    r"|_{0,2}rt_mutex_\w+|rtlock_\w+|rwbase_\w+|call_rwsem_\w+|ldsem_\w+|_{0,2}percpu_(?:down|rwsem)_\w+|bit_wait\w*"
    r"|out_of_line_wait_\w+|wait_on_\w+|_{0,2}folio_(?:lock|wait)\w*|__lock_page\w*|kthread_(?:stop|park)|do_wait_\w+"
    r"|_{0,2}flush_(?:work|workqueue|delayed_work|rcu_work)|drain_workqueue|_{0,2}cancel_(?:delayed_)?work\w*|destroy_workqueue"
    r"|_{0,2}synchronize_(?:s?rcu|irq|net|hardirq)\w*|exp_funnel_lock|s?rcu_barrier\w*|__wait_rcu_gp|_{0,2}wait_rcu_\w+"
)
"""Functions in which a task waits."""

_SPINNING = re.compile(
    r"\w*queued_(?:spin|read|write)_\w+|pv_\w+|kvm_wait|osq_lock|\w+_spin_on_owner|\w+_optimistic_spin|arch_spin_\w+"
    r"|csd_lock_\w+|__csd_lock_\w+|smp_call_function\w*|generic_exec_single|on_each_cpu\w*|kick_all_cpus_sync"
    r"|delay_\w+|_{0,2}(?:const_)?[mun]delay|__delay|cpu_relax|rep_nop"
    r"|_?printk\w*|v?printk_\w+|vprintk|console_\w+|msg_print_\w+|v?s?c?n?printf|nbcon_\w+|serial\w+|io_serial_\w+|mem\d*_serial_\w+"
    r"|wait_for_(?:xmitr|lsr)|uart_\w+|univ8250_\w+|pl011_\w+|dev_v?printk_emit|__dev_printk|_dev_[a-z]+|__netdev_printk"
    r"|__sanitizer_\w+|write_comp_data|check_kcov_mode|msan_\w+|lock_is_held\w*|__lock_is_held|match_held_lock|find_held_lock"
    r"|rcu_is_\w+|rcu_read_\w+|rcu_lockdep_\w+|debug_lockdep_\w+|preempt_\w+|in_lock_functions|arch_local_\w+|trace_\w*irqs_\w+"
    r"|unwind_\w+|__unwind_\w+|arch_stack_walk|stack_trace_\w+|save_stack\w*|get_stack_info|_{0,2}orc_\w+|\w*kernel_text_address"
    r"|is_bpf_text_address|in_task_stack|stack_depot_\w+|depot_\w+|__save_stack\w*|print_context_stack|dump_trace|is_ftrace_trampoline|qlist_\w+|quarantine_\w+"
    r"|__switch_to|context_switch|finish_task_switch|retint_kernel|rcu_dynticks_\w+|__s?rcu_read_\w+|__virt_addr_valid"
    r"|_{0,2}mutex_\w*lock\w*|rwsem_down_\w+|_{0,2}down_(?:read|write)\w*|_{0,4}cache_alloc_\w+"
)
"""Functions in which a CPU waits for another one, for time or for a console, and those of sanitizers and lockdep."""
_INTERRUPTING = re.compile(
    r"nmi_\w+|\w+_cpu_backtrace\w*|arch_trigger_\w+|trigger_\w*backtrace\w*|\w*exc_nmi\w*|(?:default_)?do_nmi|end_repeat_nmi"
    r"|watchdog_\w+|\w*watchdog_overflow\w*|softlockup_\w+|intel_pmu_\w+|x86_pmu_\w+|perf_event_\w*overflow|_?sched_show_task"
    r"|show_regs|show_trace_log_lvl|dump_cpu_task|rcu_dump_\w+|rcu_check_\w+|rcu_sched_clock_irq|_{0,2}rcu_pending|rcu_print_\w+"
    r"|rcu_exp_\w+|synchronize_rcu_expedited_\w+|print_(?:other_)?cpu_stall\w*|check_cpu_stall|update_process_times"
    r"|sched(?:uler)?_tick|tick_\w+|__(?:hrtimer_run_queues|run_hrtimer)|hrtimer_interrupt|\w*apic_timer_interrupt\w*"
    r"|\w+_timer_(?:handler|interrupt)\w*|timer_interrupt|handle_percpu_\w+|_{0,2}(?:generic_)?handle_(?:domain_)?irq\w*"
    r"|gic_\w+|__gic_\w+|el[01]\w*_irq\w*|el1_interrupt|do_interrupt_handler|do_irq|do_IRQ|riscv_intc_irq|call_on_irq_stack"
    r"|__irq_svc|irqentry_\w+|irq_(?:enter|exit)\w*|\w*sysvec_\w+|asm_call_\w+|\w*common_interrupt|ret_from_intr"
)
"""Functions of the interrupt that prints where its CPU is stuck."""
_IDLE = re.compile(r"(?:\w+_)?(?:safe_halt|idle(?:_\w+)?)|cpu_startup_entry|acpi_processor_ffh_\w+")


def without_suffix(function: str) -> str:
    """Return the name of a function without what a compiler adds to it."""
    return _COMPILER_SUFFIX.sub("", function)


def without_varying(title: str) -> str:
    """Return the title of a report without tasks, CPUs, addresses and other parts that differ between two reports of
    one defect. A source line is kept, written as `file.c@line`."""
    for pattern, left in _TASKS:
        title = pattern.sub(left, title)
    return _VARYING.sub(lambda match: f"{match['file']}@{match['line']}" if match["file"] else "#", title)


def without_reporting(
    stack: Sequence[StackFrame], *, checking: bool = False, waiting: bool = False, spinning: bool = False
) -> list[StackFrame]:
    """Return the frames from the innermost function that does not only report. Inlined functions are left out.

    `checking` also skips functions that check what their callers do, `waiting` those in which a task waits, `spinning`
    those in which a CPU does.
    """

    def reports(frame: StackFrame) -> bool:
        name = without_suffix(frame.function)
        return bool(
            _PRINTING.fullmatch(name)
            or ((checking or waiting) and _CHECKING.fullmatch(name))
            or (waiting and _WAITING.fullmatch(name))
            or (spinning and is_spinning(name))
        )

    return list(dropwhile(reports, (frame for frame in stack if not frame.inlined)))


def is_spinning(function: str) -> bool:
    """Return True if a CPU may wait for others in a function, or if the function only checks its callers."""
    name = without_suffix(function)
    return bool(_SPINNING.fullmatch(name) or _CHECKING.fullmatch(name) or prints_stall(name))


def prints_stall(function: str) -> bool:
    """Return True if a function belongs to the interrupt that prints where its CPU is stuck."""
    name = without_suffix(function)
    return bool(_INTERRUPTING.fullmatch(name) or _PRINTING.fullmatch(name))


def is_idle(function: str) -> bool:
    """Return True if a CPU in this function has nothing to do."""
    return _IDLE.fullmatch(without_suffix(function)) is not None


def describe_warning(title: str, stack: Sequence[StackFrame], excerpt: str) -> str:
    """Describe a WARN by its condition, function and line; one of a checking function also by its caller. An interrupt
    that nobody cared for is described by its handlers: its number differs between boots."""
    found = _WARNING.search(title)
    if not found:
        handlers = sorted(set(_IRQ_HANDLER.findall(excerpt.partition("handlers:")[2])))
        return without_varying(title) + (f" ({', '.join(handlers)})" if handlers else "")
    function = found["function"] or next((frame.function for frame in without_reporting(stack)), "")
    condition = f" [{_VARYING.sub('#', found['condition'])}]" if found["condition"] else ""
    place = f"{found['place']}".replace(":", "@") if found["place"] else ""
    text = f"WARNING{condition} in {function or 'unknown'} {place}".rstrip()
    if checked := _OBJECT.search("\n".join(_beginning(excerpt)[:4])):
        text += f" ({' '.join(part for part in checked.groups() if part)})"
    if function and _CHECKING.fullmatch(without_suffix(function)):
        # What is above the function only handles the trap.
        below = list(dropwhile(lambda frame: frame.function != function, stack)) or stack
        if callers := without_reporting(below, checking=True):
            text += f" of {callers[0].function}"
    return text


def distinguishing_mark(kind: FindingKind, excerpt: str, stack: Sequence[StackFrame] = ()) -> str:
    """Return what tells apart two reports of equal titles; empty if nothing does.

    It is the lock classes or the work function; of lockdep's reports about RCU the source line and the function that
    does not only check; of a key without a class the latter.
    """
    lines = _beginning(excerpt)
    if kind is FindingKind.LOCKDEP:
        caller = next((f"in {frame.function}" for frame in without_reporting(stack, checking=True)), "")
        if place := next((found["place"] for line in lines if (found := _RCU_PLACE.search(line))), ""):
            return f"{without_varying(place)} {caller}".rstrip()
        classes = [found for found in map(_lock_class, lines) if found][:2]
        return ", ".join(sorted(set(classes))) or caller
    if kind is FindingKind.BUG and (work := _WORK_FUNCTION.search("\n".join(lines))):
        return work[1] or work[2]
    return ""


def _beginning(excerpt: str) -> list[str]:
    return [line for line in excerpt.split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES] if len(line) <= _SEARCHED_LINE]


def _lock_class(line: str) -> str:
    """Return the class of the lock in a line as `ffff888100a0c940 (&wq->mutex){+.+.}-{4:4}, at: f+0x1/0x2`."""
    first, last = line.find("("), line.rfind("){")
    if first < 0 or last < first or " at:" not in line[last:]:
        return ""
    return _INSTANCE.sub("", line[first + 1 : last])
