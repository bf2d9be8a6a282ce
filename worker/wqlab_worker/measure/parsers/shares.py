"""Shares in percent: of two counts, and of the CPU time that a device was busy."""

from __future__ import annotations

from ..collect import NotMeasured, Records

TICK_SHARE = 5.0
"""How far a share of CPU time may be above 100. The kernel's idle times may go back by a tick of 10 ms, which is 5 % of
the shortest runs, of 0.1 s on two CPUs."""


def share(part: float, whole: float, what: str) -> float:
    """Return the share of `part` in `whole` in percent (0..100). `what` describes the part: `inodes freed at home`.

    Raises NotMeasured, with both numbers, for a part below 0 or above the whole, and for a whole of 0.
    """
    if not 0 <= part <= whole or not whole:
        raise NotMeasured(f"{what}: {part:.0f} of {whole:.0f}")
    return 100.0 * part / whole


def cpu_utilisation(records: Records) -> float:
    """Return the busy share of all CPUs in percent (0..100), as device.sh records it.

    Raises NotMeasured if it is missing, negative, or further above 100 than the kernel's times can be wrong.
    """
    found = records.value("cpu_utilisation")
    if not 0 <= found <= 100 + TICK_SHARE:
        raise NotMeasured(f"cpu_utilisation would be {found:g} %")
    return min(found, 100.0)
