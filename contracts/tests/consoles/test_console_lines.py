"""Lines of consoles, as programs and boards print them: what is before the kernel's message."""

from __future__ import annotations

import pytest

from wqlab_contracts.consoles.console_lines import clean, read_line
from wqlab_contracts.consoles.console_reading import read_console

STAMPED = {
    "printk": ("[   12.345678] ", ""),
    "caller": ("[   12.345678][  T123] ", "T123"),
    "Android": ("[   12.345678] [4:     kworker/4:1:  825] ", "825"),
    "ser2net": ("[2026-11-30 10:00:00] [   12.345678] ", ""),
    "conserver": ("[Mon Nov 30 10:00:00 2026][   12.345678] ", ""),
    "dmesg --decode": ("kern  :warn  : [   12.345678] ", ""),
    "journalctl": ("Nov 30 10:00:00 host kernel: [   12.345678] ", ""),
    "short-monotonic": ("[   12.345678] host kernel: ", ""),
    "short-delta": ("[   12.345678 <    0.000012 >] host kernel: ", ""),
    "/dev/kmsg": ("4,1234,12345678,-,caller=T123;", "T123"),
    "extended netconsole": ("6.12.48,4,1234,12345678,-;", ""),
    "quoted": ("> [   12.345678] ", ""),
    "kernel without a host": ("[   12.345678] kernel: ", ""),
    "logread": ("Mon Nov 30 10:00:00 2026 kern.warn kernel: [   12.345678] ", ""),
    "space behind the time": ("[   12.345678 ] ", ""),
    "level behind the thread": ("[  12.345678][ T123][E] ", "T123"),
    "CPU behind the time": ("[   12.345678]c0  ", ""),
    "CPU in the time": ("[   12.345678,3] ", ""),
    "date in the time": ("[   12.345678 / 11-30 10:00:00.123] ", ""),
    "CPU and thread": ("<4>[   12.345678]-(1)[825:kworker/4:1]", "825"),
    "/proc/last_kmsg": (" 12.345678:   <1> (11-30 10:00:00.123456789) ", ""),
}
WITHOUT_TIME = {
    "dmesg -T": "[Mon Nov 30 10:00:00 2026] ",
    "dmesg --time-format=iso": "2026-11-30T10:00:00,123456+00:00 ",
    "dmesg --decode --time-format=iso": "kern  :err   : 2026-11-30T10:00:00,123456+00:00 ",
    "dmesg --human": "[Nov30 10:00] ",
    "dmesg --human, later": "[  +0.000012] ",
    "short-precise": "Nov 30 10:00:00.123456 host kernel: ",
    "short-iso": "2026-11-30T10:00:00+0000 host kernel: ",
    "short-full": "Mon 2026-11-30 10:00:00 UTC host kernel: ",
    "dmesg -T, day of one digit": "[Mon Nov 9 10:00:00 2026] ",
    "dmesg -T, day before the month": "[lun.  9 nov. 10:00:00 2026] ",
    "dmesg --human, comma": "[  +0,000012] ",
    "busybox": "Nov 30 10:00:00 host kern.alert kernel: ",
    "RFC 5424": "<4>1 2026-11-30T10:00:00.003Z host kernel - - - ",
    "hours up to 12": "Nov 30 10:00:00 PM host kernel: ",
    "year and zone": "Nov 30 10:00:00 2026 CEST host kernel: ",
    "name of a console before the date": "node1 Nov 30 10:00:00 host kernel: ",
    "time without a date": "10:00:00 host kernel: ",
    "log viewer": "30.11.2026 10:00:00:123 kernel  ",
    "time removed": "[] ",
    "time replaced by dots": "[...] ",
    "time cut off": "739.934016] ",
    "Android": "11-30 10:00:00.195     0     0 E         : ",
    "Android, tag": "11-30 10:00:00.195  root     0     0 W kernel  : ",
    "Android, -v time": "11-30 10:00:00.195 W/        (    0): ",
}


@pytest.mark.parametrize("name", STAMPED)
def test_time_and_caller_are_read_before_the_message(name: str) -> None:
    prefix, caller = STAMPED[name]
    line = read_line(f"{prefix}BUG: it")
    assert (line.message, line.caller, line.time_s) == ("BUG: it", caller, pytest.approx(12.345678))


@pytest.mark.parametrize("name", WITHOUT_TIME)
def test_date_before_the_message_is_left_out(name: str) -> None:
    line = read_line(f"{WITHOUT_TIME[name]}BUG: it")
    assert (line.message, line.time_s) == ("BUG: it", None)


@pytest.mark.parametrize("line", ["W BUG     : it", "W/BUG     (    0): it"])
def test_tag_of_androids_log_is_the_beginning_of_the_message(line: str) -> None:
    before = "11-30 10:00:00.195 " + ("    0     0 " if "(" not in line else "")
    assert read_line(before + line).message == "BUG: it"


@pytest.mark.parametrize(
    "text",
    [
        "11-30 10:00:00.195  1230  1231 W BUG     : it",
        "10:00 test: in kernel: BUG: it",
        "Then on 12:13:14 in my kernel: BUG: it",
        "In v6.1 at 12:30 this morning the new kernel: BUG: it",
        "On Nov 30 10:00:00 we booted a new kernel: BUG: it",
        "program: BUG: it",
        "2026-11-30T10:00:00 BUG: it",
        "12,5;BUG: it",
        "[42] BUG: it",
        "[Nov 30] BUG: it",
    ],
)
def test_other_text_is_part_of_the_message(text: str) -> None:
    assert read_line(text).message == text


@pytest.mark.parametrize(
    "form",
    [
        '- {"dt": "2026-11-30T10:00:00.123456", "lvl": "target", "msg": "%s"}',
        "- {dt: '2026-11-30T10:00:00.123456', lvl: target, msg: '%s'}",
    ],
)
def test_job_log_of_lava_is_read_as_its_console(form: str) -> None:
    log = [
        "[    5.100000] ------------[ cut here ]------------",
        "[    5.100100] WARNING: CPU: 3 PID: 71 at kernel/workqueue.c:1638 __queue_work+0x3be/0x4e0",
        "[    5.100200] Call Trace:",
        "[    5.100300]  queue_work_on+0x3b/0x50",
        "[    5.100400] ---[ end trace 0000000000000000 ]---",
    ]
    (report,) = read_console("\n".join(form % line for line in log).encode()).reports
    assert (report.first_line, report.last_line, report.stack) == (1, 5, ["queue_work_on"])
    assert clean(b'- {"dt": "x", "lvl": "target"') == '- {"dt": "x", "lvl": "target"'


def test_titles_that_a_mail_program_has_wrapped_are_joined() -> None:
    log = """[   30.0] ------------[ cut here ]------------
[   30.1] WARNING: block/a.c:309 at 
dma_start+0x2f0/0x7c4, CPU#3: kworker/3:1/71
[   30.2] ---[ end trace 0000000000000000 ]---
[   31.0] Unable to handle kernel NULL pointer dereference at 
virtual address 0000000000000008
[   31.1] Internal error: Oops: 0000000096000004 [#1] SMP
[   31.2] ---[ end trace 0000000000000000 ]---
"""  # noqa: W291 - as such programs leave it
    found = [(report.kind, report.title) for report in read_console(log.encode()).reports]
    assert found == [
        ("warning", "WARNING: block/a.c:309 at dma_start+0x2f0/0x7c4, CPU#3: kworker/3:1/71"),
        ("oops", "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000008"),
    ]


def test_message_of_a_cfi_failure_begins_its_report() -> None:
    log = b"""[    1.0] CFI failure at process_one_work+0x1/0x2 (target: foo+0x0/0x10; expected type: 0x12345678)
[    1.1] Oops: invalid opcode: 0000 [#1] SMP NOPTI
[    1.2] ---[ end trace 0000000000000000 ]---
"""
    (report,) = read_console(log).reports
    assert (report.first_line, report.kind, report.fatal) == (1, "oops", True)


def test_null_pointer_of_powerpc_is_an_oops() -> None:
    log = b"[   30.0] BUG: Kernel NULL pointer dereference on read at 0x00000010\n"
    (report,) = read_console(log).reports
    assert (report.kind, report.fatal) == ("oops", True)
