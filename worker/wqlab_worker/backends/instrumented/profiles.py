"""Turn the windows of a boot into its instrument profile, and into the counts that the metrics are made of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import structlog

from wqlab_bench.instrument import build_plugin, qemu_arguments
from wqlab_bench.instrument.stream import Moved, Window
from wqlab_bench.qemu import describe_version
from wqlab_contracts import instrument
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import (
    FUNCTION_LIMIT,
    LINE_LIMIT,
    OTHER,
    PAIR_LIMIT,
    CpuPlace,
    FunctionCounts,
    HotLine,
    InstrumentProfile,
    LevelCounts,
    TransferPair,
    shorten_symbol,
)
from wqlab_contracts.messages import Artifact, BootKey, RunJob

from ...measure.collect import NotMeasured, read_records
from ...measure.counts import operations
from ...measure.script_calls import calls, repetitions
from ...stacks.counted_code import KERNEL_SPACE, CountedCode, Function
from .boot_output import BootOutput

log = structlog.get_logger()

USER_SPACE = Function("(user space)")
USER_SUBSYSTEM = "user space"
PAIRS_LOOKED_UP = 2 * PAIR_LIMIT
"""Pairs of instructions whose source lines are looked up; several may be on one line."""
_NO_LEVELS = (0, 0, 0, 0)


class Profiler:
    """Profiles of one run's boots. Names of functions are looked up once for each kernel."""

    def __init__(
        self, job: RunJob, fetch: Callable[[Artifact], Path], guest: qemu_arguments.Guest, plugin: Path
    ) -> None:
        self._job = job
        self._code = {arm: CountedCode(kernel, fetch) for arm, kernel in job.kernels.items()}
        self._emulator = describe_version(job.device.arch)
        self._plugin = build_plugin.sha256(plugin)
        self._touched = set(job.touched)
        #: The guest's number of each CPU, in the order in which the plugin numbers them.
        self._cpus = list(qemu_arguments.guest_cpus(guest.topology))
        places = dict(zip(self._cpus, qemu_arguments.places(guest.topology), strict=True))
        self._places = [CpuPlace(core=core, l3=l3, node=node) for _, (core, l3, node) in sorted(places.items())]

    def counts(self, arm: Arm, window: Window) -> dict[str, int]:
        """Return the count of each instrumented metric, without the ending `_per_op`."""
        levels = _levels(window.moved)
        code = self._code[arm]
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
        return found

    def profile(self, key: BootKey, output: BootOutput) -> bytes | None:
        """Return the boot's profile as a file; None if nothing was counted."""
        if not output.windows:
            return None
        code = self._code[key.arm]
        self._look_up(code, output)
        found = InstrumentProfile(
            seed=key.block,
            emulator=self._emulator,
            plugin=self._plugin,
            topology=self._places,
            windows=list(self._windows(key, output, code)),
        )
        return instrument.write(found)

    def _look_up(self, code: CountedCode, output: BootOutput) -> None:
        windows = output.windows.values()
        pcs = {pc for window in windows for pc in (*window.code, *window.locked_code)}
        pcs |= {pc for window in windows for moved in window.moved for pc in (moved.pc, moved.writer_pc)}
        pairs = {pc for window in windows for pair in _hottest_pairs(window) for pc in pair[:2]}
        data = {line.virtual for window in windows for line in window.lines[:LINE_LIMIT]}
        code.look_up(output.symbols, pcs, pairs, data)
        if code.lacking:
            log.warning("counts have no names", reason=code.lacking)

    def _windows(self, key: BootKey, output: BootOutput, code: CountedCode) -> Iterator[instrument.Window]:
        numbers = [repetition.number for repetition in repetitions(self._job)]
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
                transfers=_levels(window.moved),
                functions=self._functions(window, code),
                pairs=_pairs(window, code),
                lines=_lines(window, code),
                cpus=self._matrix(window),
            )

    def _functions(self, window: Window, code: CountedCode) -> list[FunctionCounts]:
        """Return the counts by function: those with the most instructions or transfers, then the sum of the others."""
        instructions, locked = Counter[Function](), Counter[Function]()
        moved: dict[Function, list[Moved]] = defaultdict(list)
        for pc, count in window.code.items():
            instructions[_function(code, pc)] += count
        for pc, count in window.locked_code.items():
            locked[_function(code, pc)] += count
        for each in window.moved:
            moved[_function(code, each.pc)].append(each)
        counted = [
            FunctionCounts(
                name=shorten_symbol(function.name),
                subsystem=subsystem(function),
                file=function.file,
                touched=function.name in self._touched,
                instructions=instructions[function],
                transfers=_levels(moved.get(function, ())),
                locked=locked[function],
            )
            for function in instructions.keys() | moved.keys() | locked.keys()
        ]
        all_moved = max(1, sum(each.transfers.total for each in counted))
        all_instructions = max(1, window.instructions)

        def weight(each: FunctionCounts) -> tuple[bool, float, str]:
            share = max(each.instructions / all_instructions, each.transfers.total / all_moved)
            return not each.touched, -share, each.name

        counted.sort(key=weight)
        kept, rest = counted[: FUNCTION_LIMIT - 1], counted[FUNCTION_LIMIT - 1 :]
        if not rest:
            return kept
        other = FunctionCounts(
            name=OTHER,
            instructions=sum(each.instructions for each in rest),
            transfers=_sum(each.transfers for each in rest),
            locked=sum(each.locked for each in rest),
        )
        return [*kept, other]

    def _matrix(self, window: Window) -> list[list[int]]:
        """Return the transfers from CPU to CPU in the guest's numbering."""
        size = len(self._cpus)
        matrix = [[0] * size for _ in range(size)]
        for (source, target), count in window.cpus.items():
            if source < size and target < size:
                matrix[self._cpus[source]][self._cpus[target]] += count
        return matrix


def subsystem(function: Function) -> str:
    """Return the folder of a function's source, two levels deep: `fs/xfs`."""
    if function == USER_SPACE:
        return USER_SUBSYSTEM
    return "/".join(function.file.split("/")[:-1][:2])


def _function(code: CountedCode, pc: int) -> Function:
    if pc < KERNEL_SPACE:
        return USER_SPACE
    return code.functions.get(pc) or Function("(unknown)")


def _levels(moved: Iterable[Moved]) -> LevelCounts:
    counts = Counter[str]()
    for each in moved:
        counts[each.level] += each.count
    return LevelCounts(smt=counts["smt"], l3=counts["l3"], node=counts["node"], remote=counts["remote"])


def _sum(counts: Iterable[LevelCounts]) -> LevelCounts:
    smt, l3, node, remote = (
        sum(level) for level in zip(_NO_LEVELS, *((c.smt, c.l3, c.node, c.remote) for c in counts), strict=True)
    )
    return LevelCounts(smt=smt, l3=l3, node=node, remote=remote)


def _hottest_pairs(window: Window) -> list[tuple[int, int, str, LevelCounts]]:
    """Return (taker's address, writer's address, kind, transfers) of the pairs that moved most lines."""
    pairs: dict[tuple[int, int, str], list[Moved]] = defaultdict(list)
    for each in window.moved:
        pairs[each.pc, each.writer_pc, each.kind].append(each)
    ordered = sorted(pairs.items(), key=lambda item: (-sum(each.count for each in item[1]), item[0]))
    return [(pc, writer, kind, _levels(moved)) for (pc, writer, kind), moved in ordered[:PAIRS_LOOKED_UP]]


def _pairs(window: Window, code: CountedCode) -> list[TransferPair]:
    merged: dict[tuple[str, str, str, str, str], list[LevelCounts]] = defaultdict(list)
    sources: dict[str, str] = {}

    def place(pc: int) -> tuple[str, str]:
        found = code.lines.get(pc)
        line = f"{found.file}:{found.line}" if found and found.file and found.line else ""
        if found and line:
            sources[line] = found.source
        return shorten_symbol(_function(code, pc).name) if pc else "", line

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
            transfers=_sum(counts),
        )
        for (taker, taker_line, writer, writer_line, kind), counts in merged.items()
    ]
    pairs.sort(key=lambda pair: (-pair.transfers.total, pair.taker, pair.taker_line, pair.writer, pair.writer_line))
    return pairs[:PAIR_LIMIT]


def _lines(window: Window, code: CountedCode) -> list[HotLine]:
    return [
        HotLine(
            symbol=shorten_symbol(code.data.get(line.virtual, "")),
            address=f"{line.physical:#x}",
            transfers=LevelCounts(
                smt=line.transfers[0], l3=line.transfers[1], node=line.transfers[2], remote=line.transfers[3]
            ),
        )
        for line in window.lines[:LINE_LIMIT]
    ]
