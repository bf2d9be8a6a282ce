"""Write the counts of instrumented and modelled devices as collapsed stacks, for speedscope and Firefox Profiler.

Each line is `frame;frame;function count` (https://github.com/brendangregg/FlameGraph#2-fold-stacks). The emulator
records no call stacks, so the frames are places: target, quantity, kernel, subsystem, file and function.
"""

from __future__ import annotations

from collections.abc import Iterator

from wqlab_contracts.api.instrument import FunctionChange, InstrumentCell
from wqlab_contracts.api.report import Report

from ..content import instrument_tables
from ..parts.instrument_sentences import count
from ..plain_text import printable

SAMPLES = 10_000
"""Samples of the kernel with the larger count, for each quantity of a scenario and setting. Firefox Profiler makes an
entry of each, and only whole numbers are allowed; both kernels have the same unit, so that widths can be compared."""


def render_profile(report: Report) -> str:
    """Render the functions of all scenarios and settings; empty if nothing was counted."""
    return "".join(
        f"{line}\n"
        for target in report.targets
        for cell in target.instrument
        for instructions in (True, False)
        for line in _stacks(f"{target.plan.name}@{target.device_type}", cell, instructions=instructions)
    )


def _stacks(target: str, cell: InstrumentCell, *, instructions: bool) -> Iterator[str]:
    totals = [each.instructions if instructions else each.transfers for each in cell.totals.values()]
    unit = max(totals, default=0.0) / SAMPLES
    if not unit:
        return
    what = "instructions" if instructions else "cache line transfers"
    root = [
        " ".join(filter(None, [target, instrument_tables.where(cell)])),
        f"{what} per {cell.operation} (a sample is {count(unit)})",
    ]
    for arm in cell.totals:
        for function in cell.functions:
            counts = instrument_tables.totals_of(function, instructions)
            if samples := round(counts.get(arm, 0.0) / unit):
                frames = [*root, str(arm), *path_of(function)]
                yield f"{';'.join(_frame(each) for each in frames)} {samples}"


def path_of(function: FunctionChange) -> list[str]:
    """Return the frames from subsystem to function. A file that is a subsystem of its own is one frame."""
    places = dict.fromkeys([instrument_tables.subsystem_of(function), function.file])
    return [*(place for place in places if place), instrument_tables.function_name(function)]


def _frame(text: str) -> str:
    return printable(text).replace(";", ",").replace("\n", " ")
