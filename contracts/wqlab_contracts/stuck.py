"""Find the function that kept a CPU or a worker pool busy. Two lockups with the same function are one defect.

A lockup may be detected in any function that a loop calls, so the innermost function differs from boot to boot. The
outermost function of the task stays the same: its work function, the function of its thread, timer or softirq, or the
function that serves the system call. Formats: kernel/workqueue.c (show_pwq, show_cpu_pools_hogs), kernel/sched/core.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from .defect_text import without_reporting, without_suffix
from .messages.base import StackFrame

_DISPATCHING = re.compile(
    r"process_one_work|process_scheduled_works|worker_thread|rescuer_thread|bh_worker|workqueue_softirq_action"
    r"|kthread|kthread_worker_fn|smpboot_thread_fn|ret_from_\w+|run_ksoftirqd|\w*do_softirq\w*|handle_softirqs"
    r"|_{0,2}irq_exit\w*|call_timer_fn|__run_timer\w*|run_timer_\w+|expire_timers|__hrtimer_run_queues|hrtimer_\w*interrupt"
    r"|hrtimer_run_softirq|tasklet_action\w*|net_rx_action|_{0,2}napi_poll|rcu_core\w*|rcu_do_batch|rcu_cpu_kthread"
    r"|\w*handle_irq\w*|handle_\w+_irq|irq_thread\w*|napi_threaded_poll\w*|md_thread|__flush_smp_call_function_queue|do_syscall_\w+|do_fast_syscall_\w+|entry_\w+"
    r"|do_int80_\w+|x64_sys_call|invoke_syscall|system_call\w*|\w*el0\w*_(?:svc|sync|ia|da)\w*|el0_\w+|el0t_\w+|\w*asm_exc_\w+"
    r"|do_trap_\w+|handle_exception|(?:__)?do_syscall|ret_fast_syscall|asm_\w+|do_idle|secondary_startup_\w+|start_\w+"
)
"""Functions that call work items, threads, timers, interrupt handlers and system calls."""
_SERVING = re.compile(
    r"__(?:x64|ia32|arm64|se|s390x?|riscv|loongarch)_(?:compat_)?sys_\w+|__do_(?:compat_)?sys_\w+|_{0,3}sys_\w+|ksys_\w+|(?:compat_)?S[yY]S_\w+"
    r"|do_sys_\w+|_{0,2}vfs_\w+|do_vfs_\w+|new_sync_\w+|do_iter_\w+|do_loop_readv_\w+|_{0,2}sock_(?:send|recv|write)\w*"
    r"|do_exit|do_group_exit|get_signal|do_signal|do_notify_resume|arch_do_signal\w*|exit_to_user\w+|syscall_exit_\w+"
    r"|_{0,2}prepare_exit_to_usermode|exit_mm|_{0,2}mmput|task_work_run|_{2,4}fput|do_filp_open|path_openat|do_open|do_dentry_open|kernel_clone|copy_process|do_mmap|mmap_region"
    r"|_{0,2}exc_page_fault|do_user_addr_fault|do_page_fault|do_mem_abort|do_translation_fault|_{0,2}handle_mm_fault"
    r"|do_one_initcall|do_initcalls?|kernel_init\w*|do_init_module|load_module|notifier_call_chain|\w+_notifier_call_chain"
    r"|process_backlog|_{0,2}netif_receive_skb\w*"
)
"""Entry functions of system calls, page faults, process exit and received packets, which call many different loops."""
_POOL = r"cpus=(\S+)(?: node=(\S+))? flags=(\S+)(?: nice=(\S+)| (bh\S*))"
_LOCKED_UP = re.compile(rf"workqueue lockup - pool {_POOL}")
_POOL_QUEUE = re.compile(rf"\bpwq (\d+): {_POOL}")
_IN_FLIGHT = re.compile(r"\bin-flight: (.+)")
_ITEM = re.compile(r"(?:^|, )\d+(?:\(RESCUER\))?:([A-Za-z_]\w*)")
_WORKERS = re.compile(r"\bShowing backtraces of \w+ workers in stalled\b")
_WORKERS_POOL = re.compile(r"\bpool (\d+):\s*$")
_WORK = re.compile(r"\bWorkqueue: .+? ([A-Za-z_]\w*)(?: \[\w+\])?(?: \(.*\))?\s*$")
_LINE_LIMIT, _TASK_LIMIT = 2000, 300
"""Maximum number of characters searched in a line with work items, and in a line about a task."""


def stuck_work_functions(title: str, excerpt: str) -> list[str]:
    """Return the work functions that kept the pool of a workqueue lockup busy, sorted; empty if the report has none.

    It is the function of the worker that the kernel shows as running; else all functions in flight in the pool.
    """
    lines = [line[:_LINE_LIMIT] for line in excerpt.split("\n")]
    locked_up = _LOCKED_UP.search(title)
    found: set[str] = set()
    pool = number = ""
    for line in lines:
        if (queue := _POOL_QUEUE.search(line)) is not None:
            pool = queue[1] if locked_up and queue.groups()[1:] == locked_up.groups() else ""
            number = pool or number
        elif pool and (items := _IN_FLIGHT.search(line)) is not None:
            found.update(_ITEM.findall(items[1]))
    return [running] if (running := _running_work(lines, number)) else sorted(found)


def _running_work(lines: Sequence[str], number: str) -> str:
    """Return the work function of the first running worker of pool `number`; of any pool if `number` is empty."""
    shown = False
    pool = number
    for line in lines:
        if _WORKERS.search(line):
            shown = True
        elif shown and (heading := _WORKERS_POOL.search(line)) is not None:
            pool = heading[1]
        elif shown and pool == (number or pool) and (work := _WORK.search(line[:_TASK_LIMIT])) is not None:
            return work[1]
    return ""


def stuck_function(stack: Sequence[StackFrame]) -> str:
    """Return the outermost function of the task, interrupt or softirq in which a CPU was stuck.

    `stack` has the innermost frame first. If the trace does not reach the caller of that function, return the innermost
    function; without frames, an empty text.
    """
    frames = [frame.function for frame in without_reporting(stack, checking=True, spinning=True)]
    if not frames or _matches(_DISPATCHING, frames[0]):
        frames = [frame.function for frame in without_reporting(stack)]
    called = list(takewhile(lambda name: not _matches(_DISPATCHING, name), frames))
    if len(called) == len(frames):
        return next(iter(frames), "")
    return next((name for name in reversed(called) if not _matches(_SERVING, name)), next(iter(frames), ""))


def _matches(pattern: re.Pattern[str], function: str) -> bool:
    return pattern.fullmatch(without_suffix(function)) is not None
