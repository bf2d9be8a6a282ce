"""Make example profiles of an instrumented device: made-up counts of an XFS fsync workload, for tests of reports.

The figures have the size of a real run (77 cache lines and 270,000 instructions per fsync), and none was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from report_parts import FIO, PATCH, XFS, build, report, samples, target

from wqlab_contracts import instrument
from wqlab_contracts.api.instrument import NoiseFloor
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import PAIR, Arm
from wqlab_contracts.instrument import (
    CpuPlace,
    FunctionCounts,
    HotLine,
    InstrumentProfile,
    LevelCounts,
    SubsystemCounts,
    TransferPair,
    Window,
)
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import TestPlan, Topology
from wqlab_report.content.shared_text import METHOD, METHOD_OF_COUNTS
from wqlab_report.parts.instrument_cells import ProfileFile, instrument_cells

SEEDS = 6
OPERATIONS = 640
TOPOLOGY = Topology(sockets=1, l3_per_socket=4, cores_per_l3=2, threads_per_core=2)
CPUS = [CpuPlace(core=cpu // 2, l3=cpu // 4, node=0) for cpu in range(16)]
PLAN: TestPlan = XFS.for_instrumented()
DEVICE_TYPE = "four-l3-counted"


class _Function(NamedTuple):
    """Counts of a function per fsync: instructions, transfers, and both with the candidate."""

    name: str
    file: str
    before: tuple[float, float]
    after: tuple[float, float] | None = None
    touched: bool = False
    subsystem: str = ""


FUNCTIONS = (
    _Function("flush_workqueue_prep_pwqs", "kernel/workqueue.c", (2210, 41.0), (1480, 12.3), touched=True),
    _Function("_raw_spin_lock_irq", "kernel/locking/spinlock.c", (1320, 8.4), (610, 4.1)),
    _Function("update_sd_lb_stats", "kernel/sched/fair.c", (9400, 5.2)),
    _Function("idle_cpu", "kernel/sched/syscalls.c", (3100, 4.6)),
    _Function("try_to_wake_up", "kernel/sched/core.c", (7400, 3.1)),
    _Function("__flush_workqueue", "kernel/workqueue.c", (1900, 1.9), (1840, 1.8)),
    _Function("process_one_work", "kernel/workqueue.c", (4100, 2.2)),
    _Function("xlog_cil_push_work", "fs/xfs/xfs_log_cil.c", (18800, 1.7)),
    _Function("xfs_file_fsync", "fs/xfs/xfs_file.c", (2600, 0.4)),
    _Function("xfs_inode_item_format", "fs/xfs/xfs_inode_item.c", (9900, 0.3)),
    _Function("null_handle_cmd", "drivers/block/null_blk/main.c", (14300, 0.8)),
    _Function("memcpy_orig", "arch/x86/lib/memcpy_64.S", (61000, 1.2)),
    _Function("__blk_flush_plug", "block/blk-core.c", (5200, 0.5)),
    _Function("blk_mq_dispatch_rq_list", "block/blk-mq.c", (6900, 0.6)),
    _Function("(user space)", "", (24800, 0.2), subsystem="user space"),
    _Function("(unknown)", "", (1200, 0.1)),
    _Function(instrument.OTHER, "kernel/workqueue.c", (5200, 1.1), (4900, 0.9)),
    _Function(instrument.OTHER, "kernel/sched/fair.c", (14000, 2.1)),
    _Function(instrument.OTHER, "fs/xfs/xfs_log.c", (21000, 1.9)),
    _Function(instrument.OTHER, "fs/iomap/buffered-io.c", (9800, 0.4)),
    _Function(instrument.OTHER, "mm/filemap.c", (8200, 0.3)),
    _Function(instrument.OTHER, "", (36600, 1.5)),
)
OTHER_SUBSYSTEMS = {"kernel/time": 0.5, "security": 0.3, instrument.OTHER: 0.2}
"""Subsystems of the functions of the last entry, which has no file, with their shares of it."""
LOCK_PAIR = ("flush_workqueue_prep_pwqs", "kernel/workqueue.c", "raw_spin_lock_irq(&pool->lock);")


def profile(arm: Arm, seed: int, control: bool = False) -> InstrumentProfile:
    """Return the example profile of one boot; with `control` both arms have the same counts."""
    after = arm is Arm.CANDIDATE and not control
    by_seed, by_kernel = np.random.default_rng(seed), np.random.default_rng([seed, 1 + after])
    functions = [_counts(each, after, by_seed, by_kernel) for each in FUNCTIONS]
    transfers = _sum([each.transfers for each in functions])
    instructions = sum(each.instructions for each in functions)
    user = next(each.instructions for each in functions if each.subsystem == "user space")
    taken = functions[0].transfers
    line = 3991 if after else 3987
    lock = TransferPair(
        taker=LOCK_PAIR[0],
        taker_line=f"{LOCK_PAIR[1]}:{line}",
        taker_source=LOCK_PAIR[2],
        writer="try_to_wake_up",
        writer_line="kernel/sched/core.c:4100",
        writer_source="raw_spin_rq_lock(rq);",
        kind="store",
        transfers=_scaled(taken, 0.33 if after else 0.83),
    )
    color = TransferPair(
        taker=LOCK_PAIR[0],
        taker_line=f"{LOCK_PAIR[1]}:{line + 3}",
        taker_source="WARN_ON_ONCE(pwq->flush_color != -1);",
        writer="pwq_dec_nr_in_flight",
        writer_line="kernel/workqueue.c:1902",
        writer_source="pwq->flush_color = -1;",
        kind="load",
        transfers=_scaled(taken, 0.5 if after else 0.15),
    )
    window = Window(
        scenario="fsync",
        setting="",
        repetition=0,
        operations=OPERATIONS,
        unit="fsync",
        instructions=instructions,
        kernel_instructions=instructions - user,
        loads=instructions // 4,
        stores=instructions // 6,
        locked=sum(each.locked for each in functions),
        transfers=transfers,
        subsystems=_subsystems(functions),
        functions=functions,
        pairs=[lock, color],
        lines=[
            HotLine(symbol="unbound worker_pool + 0x40", address="0x1f4a40", transfers=lock.transfers),
            *(
                HotLine(
                    symbol="pool_workqueue cache + 0x80",
                    address=f"{0x2F4A80 + 0x200 * number:#x}",
                    transfers=_scaled(color.transfers, 0.25),
                )
                for number in range(4)
            ),
            *(
                HotLine(
                    symbol="runqueues (per-CPU) + 0x940",
                    cpu=cpu,
                    address=f"{0x7F4940 + 0x10000 * cpu:#x}",
                    transfers=_scaled(transfers, 0.1 / len(CPUS)),
                )
                for cpu in range(len(CPUS))
            ),
        ],
        cpus=_matrix(transfers),
    )
    return InstrumentProfile(seed=seed, emulator="QEMU 7.2.22", plugin="5e" * 32, topology=CPUS, windows=[window])


def files(arms: Sequence[Arm] = tuple(PAIR), seeds: int = SEEDS, control: bool = False) -> list[ProfileFile]:
    """Return the profile files of a run."""
    return [_file(arm, seed, control) for seed in range(seeds) for arm in arms]


def _file(arm: Arm, seed: int, control: bool) -> ProfileFile:
    data = instrument.write(profile(arm, seed, control))
    return ProfileFile(arm, seed, lambda: data)


def instrumented(control: bool = False, floors: bool = False) -> Report:
    """Return a report of the example profiles; with `floors` noise floors were measured."""
    measured = {
        ("fsync", "", metric.name, arm): values(metric.name, arm, control) for metric in PLAN.metrics for arm in PAIR
    }
    one = target(
        14,
        PLAN,
        DEVICE_TYPE,
        samples(PLAN, DEVICE_TYPE, measured),
        [""],
        list(PAIR),
        MeasuredTopology(
            cpus=16,
            core=[cpu.core for cpu in CPUS],
            l3=[cpu.l3 for cpu in CPUS],
            node=[0] * 16,
            package=[0] * 16,
        ),
        TOPOLOGY,
        (SEEDS, SEEDS),
        {"fsync": FIO},
        summary="four L3 domains of four CPUs, counted",
        facts={"seed": "0 to 5", "plugin": "5e" * 32},
    )
    floor = NoiseFloor(
        scenario="fsync",
        setting="",
        metric="kernel_instructions_per_op",
        floor=0.031,
        seeds=8,
        measured_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    one = one.model_copy(
        update={"instrument": instrument_cells(PLAN, [""], files(control=control)), "noise_floors": [floor] * floors}
    )
    made = report(
        9,
        "workqueue: Take a pool's lock once per run of pwqs that share it",
        [one],
        True,
        [build(Arm.BASELINE, 1), build(Arm.CANDIDATE, 2)],
        patches=[PATCH],
    )
    return made.model_copy(update={"method": f"{METHOD} {METHOD_OF_COUNTS}"})


def values(metric: str, arm: Arm, control: bool = False) -> list[float]:
    """Return a metric's value of each boot, as the worker calculates it from the window."""
    return [_value(metric, profile(arm, seed, control).windows[0]) for seed in range(SEEDS)]


def _value(metric: str, window: Window) -> float:
    touched = [each for each in window.functions if each.touched]
    counts = {
        "kernel_instructions_per_op": window.kernel_instructions,
        "instructions_per_op": window.instructions,
        "transfers_across_l3_per_op": window.transfers.across_l3,
        "transfers_within_l3_per_op": window.transfers.within_l3,
        "transfers_across_nodes_per_op": window.transfers.remote,
        "pool_lock_transfers_per_op": round(0.1 * window.transfers.total),
        "locked_per_op": window.locked,
        "touched_instructions_per_op": sum(each.instructions for each in touched),
        "touched_transfers_per_op": sum(each.transfers.total for each in touched),
    }
    return counts[metric] / window.operations


def _counts(of: _Function, after: bool, by_seed: np.random.Generator, by_kernel: np.random.Generator) -> FunctionCounts:
    """Return the counts of a function: most of the noise is that of the seed, which both kernels share."""
    instructions, transfers = of.after if after and of.after else of.before
    instructions *= 1 + 0.002 * by_seed.standard_normal() + 0.0002 * by_kernel.standard_normal()
    transfers *= 1 + 0.08 * by_seed.standard_normal() + 0.02 * by_kernel.standard_normal()
    folder = "/".join(of.file.split("/")[:-1][:2])
    return FunctionCounts(
        name=of.name,
        subsystem=of.subsystem or (of.file if folder == "kernel" else folder),
        file=of.file,
        touched=of.touched,
        instructions=round(instructions * OPERATIONS),
        transfers=_levels(round(transfers * OPERATIONS)),
        locked=round(instructions / 200 * OPERATIONS),
    )


def _subsystems(functions: Sequence[FunctionCounts]) -> list[SubsystemCounts]:
    """Sum the functions by subsystem. The last entry is of several."""
    *placed, others = functions
    groups: dict[str, list[FunctionCounts]] = defaultdict(list)
    for each in placed:
        groups[each.subsystem].append(each)
    sums = [
        SubsystemCounts(
            name=name,
            instructions=sum(each.instructions for each in parts),
            transfers=_sum([each.transfers for each in parts]),
            locked=sum(each.locked for each in parts),
        )
        for name, parts in groups.items()
    ]
    left = others.instructions, others.transfers.total, others.locked
    for name, share in OTHER_SUBSYSTEMS.items():
        last = name == instrument.OTHER
        instructions, moved, locked = left if last else tuple(round(share * count) for count in left)
        left = left[0] - instructions, left[1] - moved, left[2] - locked
        sums.append(SubsystemCounts(name=name, instructions=instructions, transfers=_levels(moved), locked=locked))
    return sorted(sums, key=lambda each: (each.name == instrument.OTHER, -each.instructions))


def _levels(total: int) -> LevelCounts:
    within, smt = round(total * 0.45), round(total * 0.25)
    return LevelCounts(smt=smt, l3=within, node=total - within - smt)


def _scaled(counts: LevelCounts, share: float) -> LevelCounts:
    return _levels(round(counts.total * share))


def _sum(counts: Sequence[LevelCounts]) -> LevelCounts:
    return LevelCounts(**{name: sum(getattr(each, name) for each in counts) for name in LevelCounts.model_fields})


def _matrix(transfers: LevelCounts) -> list[list[int]]:
    """Spread the transfers over the pairs of CPUs of each level, with more from the first CPUs of a domain."""
    size = len(CPUS)
    weights = np.zeros((size, size))
    for source in range(size):
        for taker in range(size):
            if source == taker:
                continue
            a, b = CPUS[source], CPUS[taker]
            level = transfers.smt / 16 if a.core == b.core else transfers.l3 / 32 if a.l3 == b.l3 else None
            weights[source, taker] = level if level is not None else transfers.node / 192
            weights[source, taker] *= 1.5 if source % 4 == 0 else 5 / 6
    return [[int(count) for count in row] for row in weights]
