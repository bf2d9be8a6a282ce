"""Addresses of kernel reports."""

from __future__ import annotations

import time

from wqlab_contracts.consoles.call_trace import REFERENCES_LIMIT, annotated, call_trace, references, stack_frames
from wqlab_contracts.consoles.stall_trace import stall_trace
from wqlab_contracts.messages import STACK_LIMIT, StackFrame

OOPS = """\
[   14.201337] BUG: kernel NULL pointer dereference, address: 0000000000000008
[   14.201341] Oops: Oops: 0002 [#1] PREEMPT SMP
[   14.201346] RIP: 0010:flush_workqueue_prep_pwqs+0x8e/0x1c0
[   14.201350] Code: 00 48 8b 45 00 48 39 c5
[   14.201361] Call Trace:
[   14.201362]  <TASK>
[   14.201363]  ? __die_body.cold+0x19/0x27
[   14.201365]  __flush_workqueue+0x13f/0x3f0
[   14.201369]  load_init+0x7c/0x250 [cmwq_load]
[   14.201373]  do_syscall_64+0x10b/0x2b0
[   14.201374] RIP: 0033:0x7f1f4e12a0f4
[   14.201375]  </TASK>
[   14.201376] ---[ end trace 0000000000000000 ]---
[   14.201377] RIP: 0010:flush_workqueue_prep_pwqs+0x8e/0x1c0"""
IN_INTERRUPT = """\
[    3.100000] RIP: 0010:timer_bug+0x10/0x20
[    3.100100] Call Trace:
[    3.100200]  <IRQ>
[    3.100300]  call_timer_fn+0x24/0x130
[    3.100400]  </IRQ>
[    3.100500]  <TASK>
[    3.100600]  whatever_ran+0x24/0x130
[    3.100700]  </TASK>"""
ARM = """\
[    7.000200] Internal error: Oops: 0000000096000004 [#1] PREEMPT SMP
[    7.000210] pc : process_one_work+0x15c/0x2b0
[    7.000220] lr : worker_thread+0x54/0x300
[    7.000300] Call trace:
[    7.000400]  process_one_work+0x15c/0x2b0 (P)
[    7.000410]  worker_thread+0x54/0x300
[    7.000500] ---[ end trace 0000000000000000 ]---"""


def names(report: str) -> list[str]:
    return [found.function for found in call_trace(report)]


def test_call_trace_begins_at_the_failed_instruction() -> None:
    trace = call_trace(OOPS)
    assert names(OOPS) == ["flush_workqueue_prep_pwqs", "__flush_workqueue", "load_init", "do_syscall_64"]
    assert [found.exact for found in trace] == [True, False, False, False]
    assert (trace[0].offset, trace[0].size, trace[2].module) == (0x8E, 0x1C0, "cmwq_load")
    assert len(references(OOPS)) == 5, "unreliable addresses are decoded, but identify nothing"


def test_interrupted_task_is_no_part_of_the_trace() -> None:
    assert names(IN_INTERRUPT) == ["timer_bug", "call_timer_fn"]


def test_arm64_trace_names_each_function_once() -> None:
    assert names(ARM) == ["process_one_work", "worker_thread"]


HEADLESS = """\
[   60.100000][  T904] BUG: KMSAN: uninit-value in crc_bytes+0x1c9/0x270
[   60.100100][  T904]  crc_bytes+0x1c9/0x270
[   60.100200][  T904]  crypt_convert+0x57b/0xb10 [dm_crypt]
[   60.100300][  T904]
[   60.100400][  T904] Uninit was created at:
[   60.100500][  T904]  alloc_bytes+0x57b/0xb10"""
RISCV = """\
[    9.100000][    C0] WARNING: kernel/a.c:3026 at wait_work+0x44c/0xbc0, CPU#0: kworker/u8:0/10
[    9.100100][    C0] epc : wait_work+0x44c/0xbc0
[    9.100200][    C0]  ra : wait_work+0x44c/0xbc0
[    9.100300][    C0] status: 0000000200000120 badaddr: ffffffff89b2c1c8 cause: 0000000000000003
[    9.100400][    C0] [<ffffffff80014264>] wait_work+0x44c/0xbc0
[    9.100500][    C0] [<ffffffff801c2668>] process_one_work+0x930/0x1e14"""
ARM32 = """\
[    9.200000] PC is at receive_buf+0xa4/0x1ec
[    9.200100] LR is at receive_buf+0x98/0x1ec
[    9.200200] Backtrace:
[    9.200300]  receive_buf from flush_buf+0x60/0xdc
[    9.200400] [<80c1e5e8>] (flush_buf) from [<80c1eb20>] (process_one_work+0x60/0xdc)"""


def test_traces_without_a_heading_and_of_other_architectures() -> None:
    assert names(HEADLESS) == ["crc_bytes", "crypt_convert"]
    assert names(RISCV) == ["wait_work", "process_one_work"]
    assert names(ARM32) == ["receive_buf", "flush_buf", "process_one_work"]


def test_places_are_written_behind_addresses() -> None:
    first, second, *_ = call_trace(OOPS)
    inlined = StackFrame(function="list_del", file="include/linux/list.h", line=220, source="__x();", inlined=True)
    caller = StackFrame(function=first.function, file="kernel/workqueue.c", line=3871, source="list_del(&pwq->node);")
    text = annotated(OOPS, {first: [inlined, caller], second: [StackFrame(function=second.function)]})
    assert (
        "RIP: 0010:flush_workqueue_prep_pwqs+0x8e/0x1c0 (include/linux/list.h:220 kernel/workqueue.c:3871)  "
        "list_del(&pwq->node);" in text
    )
    assert "__flush_workqueue+0x13f/0x3f0\n" in text
    frames = stack_frames(call_trace(OOPS), {first: [inlined, caller]})
    assert [frame.function for frame in frames[:3]] == ["list_del", first.function, second.function]


def test_hostile_reports_take_bounded_time() -> None:
    started = time.thread_time()
    many = "\n".join(f"[    1.000000]  f{n}+0x1/0x2" for n in range(3000))
    assert len(references(f"Call Trace:\n{many}")) == REFERENCES_LIMIT
    assert len(stack_frames(call_trace(f"Call Trace:\n{many}"))) == STACK_LIMIT
    for line in ("a" * 8000, "a+0x" * 2000, "[" * 8000, "? " * 4000, "a+0x1/0x1 [" * 700, "] " * 4000):
        call_trace("\n".join(["Call Trace:", *[line] * 500]))
        stall_trace("\n".join(["Call Trace:", *[line] * 500]))
    for name in ("queued_" * 28, "_idle" * 40, "sysvec_" * 28, "_" * 200):
        stall_trace("\n".join(["Call Trace:", *[f"{name}+0x1/0x2"] * 80]))
    assert time.thread_time() - started < 5
