"""Which kernel reports of a boot are causes, and which another one caused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from wqlab_contracts.consequences import causes
from wqlab_contracts.enums import FindingKind


@dataclass(frozen=True)
class Seen:
    kind: FindingKind
    title: str
    excerpt: str = ""
    fatal: bool = False


WARN = Seen(FindingKind.WARNING, "WARNING: a.c:1")
OOPS = Seen(FindingKind.OOPS, "BUG: kernel NULL pointer dereference", fatal=True)
STALL = Seen(FindingKind.WORKQUEUE_STALL, "BUG: workqueue lockup - pool")
KMSAN = Seen(FindingKind.BUG, "BUG: KMSAN: uninit-value in f+0x1/0x2")
KASAN = Seen(FindingKind.KASAN, "BUG: KASAN: slab-out-of-bounds in f+0x1/0x2")
TAINTED = Seen(FindingKind.BUG, "BUG: scheduling while atomic", "CPU: 0 PID: 9 Comm: a Tainted: G      D W   6.12")


def panic(title: str, excerpt: str = "") -> Seen:
    return Seen(FindingKind.PANIC, f"Kernel panic - not syncing: {title}", excerpt, fatal=True)


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([OOPS, panic("Fatal exception")], [OOPS]),
        ([OOPS, TAINTED], [OOPS]),
        ([TAINTED], [TAINTED]),
        ([WARN, panic("kernel: panic_on_warn set ...")], [WARN]),
        ([KMSAN, panic("kmsan.panic set ...")], [KMSAN]),
        ([KASAN, panic("kasan.fault=panic set ...")], [KASAN]),
        ([STALL, WARN, panic("panic_on_taint set ...")], [STALL, WARN]),
        ([panic("kernel: panic_on_warn set ...")], [panic("kernel: panic_on_warn set ...")]),
        ([WARN, panic("VFS: x")], [WARN, panic("VFS: x")]),
        ([panic("x"), Seen(FindingKind.WARNING, "w", "Call Trace:\n panic+0x1/0x2")], [panic("x")]),
        ([panic("x"), WARN], [panic("x"), WARN]),
        ([panic("x", "---[ end Kernel panic - not syncing: x ]---"), WARN], 1),
        ([STALL, Seen(FindingKind.BUG, "kernel BUG", " panic_on_wq_watchdog+0x1/0x2", fatal=True)], [STALL]),
    ],
)
def test_consequences_are_no_causes(reports: list[Seen], expected: list[Seen] | int) -> None:
    assert causes(reports) == (reports[:expected] if isinstance(expected, int) else expected)
