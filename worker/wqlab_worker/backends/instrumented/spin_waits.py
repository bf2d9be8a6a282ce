"""Sum the waits for spinlocks of a window by lock and function."""

from __future__ import annotations

from collections import defaultdict

from wqlab_bench.instrument.stream import SpinWait, Window
from wqlab_contracts.instrument import SPIN_LIMIT, SpinWaits, shorten_symbol

from ...stacks.counted_code import CountedCode
from .data_names import name_of
from .function_sums import PS_PER_NS, function_at


def spin_waits(window: Window, code: CountedCode, merged: dict[str, list[str]]) -> list[SpinWaits]:
    """Return the waits for spinlocks by name of the lock's data and calling function, longest first."""
    found: dict[tuple[str, str], list[SpinWait]] = defaultdict(list)
    for each in window.spins:
        found[name_of(window, each, code, merged).text, function_at(code, each.pc).name].append(each)
    sums = []
    for (lock, site), waits in found.items():
        longest = code.lines.get(max(waits, key=lambda each: (each.picoseconds, each.pc)).pc)
        sums.append(
            SpinWaits(
                lock=shorten_symbol(lock),
                site=shorten_symbol(site),
                site_line=f"{longest.file}:{longest.line}" if longest and longest.file and longest.line else "",
                count=sum(each.count for each in waits),
                wait_ns=round(sum(each.picoseconds for each in waits) / PS_PER_NS),
            )
        )
    return sorted(sums, key=lambda each: (-each.wait_ns, each.lock, each.site))[:SPIN_LIMIT]
