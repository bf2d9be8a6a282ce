"""What is simulated: the heads of a tree, and the values that each device type would give. Pure.

The figures are made up. Only the locks per flush follow a rule of the kernel: without the example series a flush takes
the lock of every CPU's pool, with it that of every L3 domain.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from datetime import timedelta

TREE = "simulated"
PLAN = "xfs-fsync"
BLOCKS = 6
HEADS = 48
EVERY = timedelta(hours=12)
COMPILERS = ("gcc 12.2.0", "gcc 13.1.0")
NEW_COMPILER = 20
"""Head from which the kernels are built with the second compiler."""
FEWER_LOCKS = 9
"""Head with the example series."""
MORE_LOCKS, FEWER_AGAIN = 35, 41
"""Heads that take the example series back, and apply it again."""
SAME_KERNEL = frozenset({6, 16, 27, 33, 45})
"""Heads that change only comments: their kernels are byte-identical to those before."""
NOT_CONFIRMED = 47
"""Head whose shift still waits for its paired run."""


@dataclass(frozen=True)
class Machine:
    """What a device type's locks depend on."""

    cpus: int
    domains: int
    per_fsync: float
    """Locks for each fsync beside those of flushes."""

    def locks(self, index: int) -> float:
        """Return the locks per flush at a head."""
        fewer = FEWER_LOCKS <= index < MORE_LOCKS or index >= FEWER_AGAIN
        return float((self.domains if fewer else self.cpus) + 2)


MACHINES = {
    "tiny": Machine(2, 1, 5.0),
    "ryzen-3900x": Machine(24, 4, 9.0),
    "xeon-2s": Machine(32, 2, 11.0),
    "chromebook-biglittle": Machine(8, 2, 7.0),
}

STEPS = {
    ("xeon-2s", "locks_per_flush_mean"): (38, 1.11),
    ("ryzen-3900x", "locks_per_fsync"): (43, 1.14),
    ("chromebook-biglittle", "locks_per_fsync"): (NOT_CONFIRMED, 1.13),
}
"""Device type and metric -> head from which its values are higher, and by which factor."""
OUTLIER = ("tiny", "locks_per_fsync", 36, 1.13)
"""Device type, metric and head whose values were higher in its first run, and were not in the second."""
_NOISE = {"locks_per_flush": 0.0, "locks_per_flush_mean": 0.012, "locks_per_fsync": 0.02}
"""Standard deviation between boots, relative."""
_SUBJECTS = (
    "workqueue: Explain when a pool gets another worker",
    "workqueue: Initialise the pools of a new CPU in one place",
    "workqueue: Use a helper to find the default pwq",
    "workqueue: Count idle workers under the pool's lock",
    "workqueue: Remove an argument that all callers agree on",
    "workqueue: Document the order of flush colours",
)
_TITLES = {
    FEWER_LOCKS: "workqueue: Take a pool's lock once per run of pwqs when flushing",
    MORE_LOCKS: "workqueue: Walk the pwqs of a flush one by one",
    FEWER_AGAIN: "workqueue: Restore runs of pwqs when flushing",
    36: "workqueue: Keep the list of pools sorted",
    38: "workqueue: Lock the pool while a rescuer is attached",
    43: "xfs: Queue log completions from the log's own workqueue",
    NOT_CONFIRMED: "xfs: Flush the log's workqueue before a checkpoint",
}


def commit(index: int) -> str:
    """Return the made-up commit of a head."""
    return hashlib.sha1(f"head {index}".encode()).hexdigest()


def title(index: int) -> str:
    if index in SAME_KERNEL:
        return "workqueue: Correct a comment"
    return _TITLES.get(index, _SUBJECTS[index % len(_SUBJECTS)])


def compiler(index: int) -> str:
    """Return the compiler of the kernels that are built when a head is measured."""
    return COMPILERS[index >= NEW_COMPILER]


def content(index: int) -> str:
    """Return the digest of a head's kernel."""
    while index in SAME_KERNEL:
        index -= 1
    return hashlib.sha256(f"kernel of {commit(index)}".encode()).hexdigest()


def values(device_type: str, index: int, *, measured_at: int, again: bool, noise: random.Random) -> dict[str, float]:
    """Return what a boot of a head's kernel counts: metric -> value.

    `measured_at`: the head for which it was booted, which decides what the environment was; `again`: for a paired run
    of a shift.
    """
    machine = MACHINES[device_type]
    locks = machine.locks(index)
    means = {
        "locks_per_flush": locks,
        "locks_per_flush_mean": 1.15 * locks + 3,
        "locks_per_fsync": locks + machine.per_fsync,
    }
    found = {}
    for metric, mean in means.items():
        begin, step = STEPS.get((device_type, metric), (HEADS, 1.0))
        factor = step if index >= begin else 1.0
        if (device_type, metric, index) == OUTLIER[:3] and not again and measured_at == index:
            factor *= OUTLIER[3]
        if measured_at >= NEW_COMPILER and _NOISE[metric]:
            factor *= 1.025
        found[metric] = mean * factor * (1 + noise.gauss(0, _NOISE[metric]))
    return found
