"""Find the kernel report that caused another one of the same boot. The comparison counts only causes, and so does
`wqlab read-console`.

Texts of panics: kernel/panic.c, watchdog.c, hung_task.c, rcu/tree_stall.h, workqueue.c, arch/*/kernel/traps.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from .enums import FindingKind


class KernelReport(Protocol):
    """What a cause is found from: part of a worker's report, a finding and a view of a finding."""

    @property
    def kind(self) -> FindingKind: ...
    @property
    def title(self) -> str: ...
    @property
    def excerpt(self) -> str: ...
    @property
    def fatal(self) -> bool: ...


R = TypeVar("R", bound=KernelReport)

_CRASHES = frozenset({FindingKind.OOPS, FindingKind.BUG})
_WARNED = frozenset({FindingKind.WARNING, FindingKind.LOCKDEP, FindingKind.KASAN, FindingKind.BUG})
_PANICS_AFTER: tuple[tuple[re.Pattern[str], frozenset[FindingKind]], ...] = (
    (re.compile(r"panic_on_warn set|kasan\.fault=panic set|(?:panic_on_kmsan|kmsan\.panic) set"), _WARNED),
    (re.compile(r"panic_on_taint set"), frozenset(FindingKind)),
    (re.compile(r"not syncing: scheduling while atomic"), frozenset({FindingKind.BUG})),
    (re.compile(r"not syncing: (?:softlockup: hung tasks|Hard LOCKUP)"), frozenset({FindingKind.LOCKUP})),
    (re.compile(r"not syncing: hung_task: blocked tasks"), frozenset({FindingKind.HUNG_TASK})),
    (re.compile(r"not syncing: RCU Stall"), frozenset({FindingKind.RCU_STALL})),
    (re.compile(r"not syncing: workqueue"), frozenset({FindingKind.WORKQUEUE_STALL})),
)
"""Panics that a setting calls for after another report, and the kinds of that report."""
_TAINTED_BY_CRASH = re.compile(r"\bTainted: [A-Z ]*D[A-Z ]*")
_INSIDE_PANIC = re.compile(r"\s(?:v?panic|nmi_panic)\+0x")
_PANIC_ENDED = "---[ end Kernel panic"


def cause_of(report: KernelReport, earlier: Sequence[R]) -> R | None:
    """Return the first of the `earlier` reports of the same boot, oldest first, that caused `report`; None if none did.

    Caused are panics after an oops or a BUG, panics that a setting calls for (`panic_on_warn`, lockups, hung tasks),
    reports of a kernel that an oops has tainted (D), and whatever a kernel prints while and after it panics.
    """
    crash = next((each for each in earlier if each.fatal and each.kind in _CRASHES), None)
    if report.kind is FindingKind.PANIC:
        if crash:
            return crash
        for pattern, kinds in _PANICS_AFTER:
            if pattern.search(report.title):
                # The newest: a boot may have warned long before.
                return next((each for each in reversed(earlier) if each.kind in kinds), None)
        return None
    panic = next((each for each in earlier if each.kind is FindingKind.PANIC), None)
    if panic and (_PANIC_ENDED in panic.excerpt or _INSIDE_PANIC.search(report.excerpt)):
        return cause_of(panic, earlier[: earlier.index(panic)]) or panic
    if crash and _TAINTED_BY_CRASH.search(report.excerpt):
        return crash
    if report.kind is FindingKind.BUG and "panic_on_wq_watchdog" in report.excerpt:
        return next((each for each in earlier if each.kind is FindingKind.WORKQUEUE_STALL), None)
    return None


def causes(reports: Sequence[R]) -> list[R]:
    """Return the reports of one boot, oldest first, that no other one caused."""
    return [each for number, each in enumerate(reports) if cause_of(each, reports[:number]) is None]
