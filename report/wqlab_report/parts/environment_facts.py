"""Facts of a boot's environment: which ones describe how it was measured, and which are measurements themselves."""

from __future__ import annotations

LAB_ARGUMENT_PREFIX = "wqlab."
"""Prefix of the kernel arguments that the lab adds to each boot; they differ by design."""
TUNABLE_PREFIXES = ("sysctl ", "workqueue parameter ", "scheduler ")
"""Prefixes of facts that are listed only if they differ, because there are dozens."""
NOT_COMPARED = frozenset(
    {
        *("kernel", "temperature", "locks_by_entry", "items_queued_not_started", "loaded_cpu"),
        *("throttled", "memory errors", "conditions put back", "user processes"),
        *(f"{scope}_pods" for scope in ("cpu", "smt", "cache", "numa", "system")),  # pods in which a worker ran
    }
)
"""Facts that a boot measures, or that identify the kernel. They differ between any two boots."""
MEASURED_PREFIXES = ("counters ", "monitor's effect ", "warm-up ", "preempted by ")
"""Prefixes of facts that a boot measures for each scenario and setting."""


def is_compared(name: str) -> bool:
    """Return True if a difference in this fact is one between systems, and not one between measurements."""
    return name not in NOT_COMPARED and not name.startswith(MEASURED_PREFIXES)
