"""Turn the windows of a boot into its instrument profile, and into the counts that the metrics are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import structlog

from wqlab_bench.instrument import build_plugin, qemu_arguments
from wqlab_bench.instrument.stream import Moved, Window
from wqlab_bench.qemu import describe_version
from wqlab_contracts import instrument
from wqlab_contracts.instrument import (
    LINE_LIMIT,
    PAIR_LIMIT,
    CpuPlace,
    HotLine,
    InstrumentProfile,
    LevelCounts,
    TransferPair,
    VirtualTime,
    shorten_symbol,
)
from wqlab_contracts.messages import Artifact, BootKey, RanLines, RunJob

from ...measure.collect import NotMeasured, read_records
from ...measure.counts import operations
from ...measure.script_calls import calls, repetitions
from ...stacks.changed_code import ChangedCode
from ...stacks.counted_code import KERNEL_SPACE, CountedCode, address_of_text
from .boot_output import BootOutput
from .data_names import merged_caches, name_of, per_cpu_offset
from .function_sums import PS_PER_NS, function_at, functions_of, levels_of, subsystems_of, sum_levels
from .spin_waits import spin_waits

log = structlog.get_logger()
Code = TypeVar("Code", CountedCode, ChangedCode)

PAIRS_LOOKED_UP = 2 * PAIR_LIMIT
"""Pairs of instructions whose source lines are looked up; several may be on one line."""


class Profiler:
    """Profiles of one run's boots. Names of functions are looked up once for each kernel."""

    def __init__(
        self, job: RunJob, fetch: Callable[[Artifact], Path], guest: qemu_arguments.Guest, plugin: Path
    ) -> None:
        self._job = job
        self._code = {arm: [CountedCode(each, fetch) for each in job.kernels_of(arm)] for arm in job.kernels}
        self._changed = {
            arm: [
                ChangedCode(each, fetch, [lines for lines in job.changed if lines.arm is arm])
                for each in job.kernels_of(arm)
            ]
            for arm in job.kernels
        }
        self._emulator = describe_version(job.device.arch)
        self._plugin = build_plugin.sha256(plugin)
        self._touched = set(job.touched)
        #: The guest's number of each CPU, in the order in which the plugin numbers them.
        self._cpus = list(qemu_arguments.guest_cpus(guest.topology))
        places = dict(zip(self._cpus, qemu_arguments.places(guest.topology), strict=True))
        self._places = [CpuPlace(core=core, l3=l3, node=node) for _, (core, l3, node) in sorted(places.items())]

    def counts(self, key: BootKey, window: Window) -> dict[str, int]:
        """Return the count of each instrumented metric, without the ending `_per_op`."""
        levels = levels_of(window.moved)
        code = self._code_of(key)
        touched = {address for address, function in code.functions.items() if function.name in self._touched}
        found = {
            "instructions": window.instructions,
            "kernel_instructions": window.kernel_instructions,
            "transfers_across_l3": levels.across_l3,
            "transfers_within_l3": levels.within_l3,
            "transfers_across_nodes": levels.remote,
            "locked": window.locked,
        }
        if self._touched and not code.lacking:
            found["touched_instructions"] = sum(n for pc, n in window.code.items() if pc in touched)
            found["touched_transfers"] = sum(each.count for each in window.moved if each.pc in touched)
        if (locks := _pool_locks(window)) is not None:
            found["pool_lock_transfers"] = locks.total
        return found

    def profile(self, key: BootKey, output: BootOutput) -> bytes | None:
        """Return the boot's profile as a file; None if nothing was counted."""
        if not output.windows:
            return None
        code = self._code_of(key)
        self._look_up(code, output)
        found = InstrumentProfile(
            seed=key.block,
            emulator=self._emulator,
            plugin=self._plugin,
            topology=self._places,
            windows=list(self._windows(key, output, code)),
        )
        return instrument.write(found)

    def ran(self, key: BootKey, output: BootOutput) -> list[RanLines]:
        """Return which changed lines of the boot's kernel ran."""
        measured: dict[int, int] = {}
        for window in output.windows.values():
            for pc, size in window.sizes.items():
                if pc >= KERNEL_SPACE:
                    measured[pc] = max(measured.get(pc, 0), size)
        code = _of_layout(self._changed[key.arm], key)
        return code.ran(address_of_text(output.symbols), measured, output.blocks)

    def _code_of(self, key: BootKey) -> CountedCode:
        return _of_layout(self._code[key.arm], key)

    def _look_up(self, code: CountedCode, output: BootOutput) -> None:
        windows = output.windows.values()
        pcs = {pc for window in windows for pc in (*window.code, *window.locked_code, *window.times)}
        pcs |= {pc for window in windows for moved in window.moved for pc in (moved.pc, moved.writer_pc)}
        pcs |= {wait.pc for window in windows for wait in window.spins}
        pairs = {pc for window in windows for pair in _hottest_pairs(window) for pc in pair[:2]}
        pairs |= {wait.pc for window in windows for wait in window.spins}
        lines = [(window, line.virtual) for window in windows for line in window.lines[:LINE_LIMIT]]
        lines += [(window, wait.line) for window in windows for wait in window.spins]
        data = {address for _, address in lines}
        per_cpu = {found[1] for window, address in lines if (found := per_cpu_offset(window, address))}
        code.look_up(output.symbols, pcs, pairs, data, per_cpu)
        if code.lacking:
            log.warning("counts have no names", reason=code.lacking)

    def _windows(self, key: BootKey, output: BootOutput, code: CountedCode) -> Iterator[instrument.Window]:
        numbers = [repetition.number for repetition in repetitions(self._job)]
        merged = merged_caches(output.slabs)
        measured = 0
        for number, call in enumerate(calls(self._job, key.block)):
            if call.cell is None:
                continue
            repetition = numbers[measured % len(numbers)]
            measured += 1
            window, result = output.windows.get(number), output.results.calls.get(number)
            if window is None or result is None:
                continue
            try:
                done = operations(read_records(result.stdout), self._job.plan)
            except NotMeasured as error:
                log.warning("window without operations", call=number, reason=str(error))
                continue
            yield instrument.Window(
                scenario=call.cell.scenario.name,
                setting=call.cell.setting,
                repetition=repetition,
                operations=done.number,
                unit=done.unit,
                instructions=window.instructions,
                kernel_instructions=window.kernel_instructions,
                loads=window.loads,
                stores=window.stores,
                locked=window.locked,
                transfers=levels_of(window.moved),
                pool_locks=_pool_locks(window),
                time=_virtual_time(window, code, merged),
                subsystems=subsystems_of(window, code),
                functions=functions_of(window, code, self._touched),
                pairs=_pairs(window, code),
                lines=_lines(window, code, merged),
                cpus=self._matrix(window),
            )

    def _matrix(self, window: Window) -> list[list[int]]:
        """Return the transfers from CPU to CPU in the guest's numbering."""
        size = len(self._cpus)
        matrix = [[0] * size for _ in range(size)]
        for (source, target), count in window.cpus.items():
            if source < size and target < size:
                matrix[self._cpus[source]][self._cpus[target]] += count
        return matrix


def _of_layout(layouts: Sequence[Code], key: BootKey) -> Code:
    return layouts[key.block % len(layouts)]


def _virtual_time(window: Window, code: CountedCode, merged: dict[str, list[str]]) -> VirtualTime | None:
    """Return where the CPUs' virtual time went; None if the device is not modelled."""
    if not window.clocks:
        return None
    idle = sum(each.idle for each in window.clocks.values())
    whole = sum(each.end - each.begin for each in window.clocks.values())
    return VirtualTime(
        busy_ns=max(0, round((whole - idle) / PS_PER_NS)),
        idle_ns=round(idle / PS_PER_NS),
        spins=spin_waits(window, code, merged),
    )


def _hottest_pairs(window: Window) -> list[tuple[int, int, str, LevelCounts]]:
    """Return (taker's address, writer's address, kind, transfers) of the pairs that moved most lines."""
    pairs: dict[tuple[int, int, str], list[Moved]] = defaultdict(list)
    for each in window.moved:
        pairs[each.pc, each.writer_pc, each.kind].append(each)
    ordered = sorted(pairs.items(), key=lambda item: (-sum(each.count for each in item[1]), item[0]))
    return [(pc, writer, kind, levels_of(moved)) for (pc, writer, kind), moved in ordered[:PAIRS_LOOKED_UP]]


def _pairs(window: Window, code: CountedCode) -> list[TransferPair]:
    merged: dict[tuple[str, str, str, str, str], list[LevelCounts]] = defaultdict(list)
    sources: dict[str, str] = {}

    def place(pc: int) -> tuple[str, str]:
        found = code.lines.get(pc)
        line = f"{found.file}:{found.line}" if found and found.file and found.line else ""
        if found and line:
            sources[line] = found.source
        return shorten_symbol(function_at(code, pc).name) if pc else "", line

    for pc, writer_pc, kind, counts in _hottest_pairs(window):
        merged[(*place(pc), *place(writer_pc), kind)].append(counts)
    pairs = [
        TransferPair(
            taker=taker,
            taker_line=taker_line,
            taker_source=sources.get(taker_line, ""),
            writer=writer,
            writer_line=writer_line,
            writer_source=sources.get(writer_line, ""),
            kind="store" if kind == "store" else "load",
            transfers=sum_levels(counts),
        )
        for (taker, taker_line, writer, writer_line, kind), counts in merged.items()
    ]
    pairs.sort(key=lambda pair: (-pair.transfers.total, pair.taker, pair.taker_line, pair.writer, pair.writer_line))
    return pairs[:PAIR_LIMIT]


def _lines(window: Window, code: CountedCode, merged: dict[str, list[str]]) -> list[HotLine]:
    found = []
    for line in window.lines[:LINE_LIMIT]:
        name = name_of(window, line, code, merged)
        smt, l3, node, remote = line.transfers
        transfers = LevelCounts(smt=smt, l3=l3, node=node, remote=remote)
        found.append(
            HotLine(symbol=shorten_symbol(name.text), cpu=name.cpu, address=f"{line.physical:#x}", transfers=transfers)
        )
    return found


def _pool_locks(window: Window) -> LevelCounts | None:
    """Return the transfers of the lines of the locks of all worker pools; None if the plugin could not read the pools.

    Two locks are never on one line, because a pool is larger than a line.
    """
    if not window.pools:
        return None
    smt, l3, node, remote = (sum(level) for level in zip(*(pool.transfers for pool in window.pools), strict=True))
    return LevelCounts(smt=smt, l3=l3, node=node, remote=remote)
