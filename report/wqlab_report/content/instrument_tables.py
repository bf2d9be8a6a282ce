"""Titles, notes and tables of what an instrumented device counted, shared by all formats. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from wqlab_comparison import deciding, words
from wqlab_contracts.api.instrument import (
    FunctionChange,
    InstrumentCell,
    LineChange,
    Moves,
    NoiseFloor,
    SubsystemChange,
)
from wqlab_contracts.api.report import Comparison, TargetReport
from wqlab_contracts.enums import SEEDED, Arm, Question, Role
from wqlab_contracts.instrument import OTHER, USER_SPACE, CpuPlace

from ..parts.instrument_sentences import count

EVIDENCE = (
    "The emulator counted every instruction and every cache line that moved between CPUs: the same kernel, script, "
    "seed and emulator give the same counts. They are counts, not times, and are never compared with figures from "
    "hardware. They do not show contention (no CPU stalls for a lock or a line), prefetch or bandwidth, and each CPU "
    "executes one instruction a cycle."
)
BESIDE_A_MODEL = (
    "The emulator also counted every instruction and every cache line that moved between CPUs. The counts are exact "
    "for this kernel, script, seed and cost profile; the times follow from them by the costs that the profile states."
)
HEADING = "Where it comes from"
UNKNOWN_SOURCE = "source not known"
WHOLE_KERNEL = "whole kernel"
SUBSYSTEMS = (
    "Subsystems are folders of the source, two levels deep, and the files of kernel/; all but user space add up to the "
    "whole kernel."
)
SAME_NAME = (
    "Lines of data with one name are summed: the objects of a slab cache, or a variable of each CPU. Beside the name "
    "is the number of such lines in the measurement that has the most."
)
TEXTS = frozenset({"file", "access", "wrote it last"})
"""Columns of the tables that are no figures, besides the first one."""
_MAX_DOMAIN_ROWS = 16


def where(cell: InstrumentCell) -> str:
    """Return the scenario and setting of the cell."""
    return " ".join(part for part in (cell.scenario, cell.setting) if part)


def basis(cell: InstrumentCell) -> str:
    """Return what the figures are: `counts per fsync, means of 6 seeds`."""
    return f"counts per {cell.operation}, means of {words.count(len(cell.seeds), 'seed')}"


def by_change(target: TargetReport) -> list[InstrumentCell]:
    """Return the cells, that with the largest change first."""
    return sorted(target.instrument, key=_largest_change, reverse=True)


def subsystem_header(cell: InstrumentCell) -> list[str]:
    return ["subsystem", *_columns(cell, "cache lines"), *_columns(cell, "instructions")]


def subsystem_rows(cell: InstrumentCell) -> list[list[str]]:
    """Return a row for the kernel, one for user space, and then one for each subsystem of the kernel."""
    user = [each for each in cell.subsystems if each.name == USER_SPACE]
    parts = [each for each in cell.subsystems if each.name != USER_SPACE]
    named = [(subsystem_name(each), each) for each in [*user, *parts]]
    if cell.kernel is not None:
        named.insert(0, (WHOLE_KERNEL, cell.kernel))
    return [
        [
            name,
            *_counts(cell, [one.transfers for one in each.per_op.values()], each.transfer_seeds),
            *_counts(cell, [one.instructions for one in each.per_op.values()], each.instruction_seeds),
        ]
        for name, each in named
    ]


def subsystem_name(subsystem: SubsystemChange) -> str:
    """Return the name of a subsystem for people."""
    return "other subsystems" if subsystem.name == OTHER else subsystem.name or UNKNOWN_SOURCE


def subsystem_of(function: FunctionChange) -> str:
    """Return the name of a function's subsystem for people; empty for the sum of functions of several."""
    if function.name == OTHER and not (function.subsystem or function.file):
        return ""
    return function.subsystem or UNKNOWN_SOURCE


def function_name(function: FunctionChange) -> str:
    """Return the name of a function for people, or what a sum of functions is of."""
    if function.name != OTHER:
        return function.name
    if function.file:
        return "other functions of this file"
    return "other files of this subsystem" if function.subsystem else "other functions"


def function_header(cell: InstrumentCell) -> list[str]:
    return ["function", *_columns(cell, "cache lines"), *_columns(cell, "instructions"), "file"]


def function_rows(cell: InstrumentCell) -> list[list[str]]:
    """Return a row per function that changed most; `*` marks those that the series changes."""
    return [
        [
            f"{each.name}{' *' if each.touched else ''}",
            *_counts(cell, [one.transfers for one in each.per_op.values()], each.transfer_seeds),
            *_counts(cell, [one.instructions for one in each.per_op.values()], each.instruction_seeds),
            each.file,
        ]
        for each in cell.changed
    ]


def pair_header(cell: InstrumentCell) -> list[str]:
    return ["takes the cache line", *_columns(cell, "cache lines"), "access", "wrote it last"]


def pair_rows(cell: InstrumentCell) -> list[list[str]]:
    return [
        [
            _place(each.taker, each.taker_line, each.taker_source),
            *_counts(cell, [one.transfers for one in each.per_op.values()], each.seeds),
            each.kind,
            _place(each.writer, each.writer_line, each.writer_source) or "not seen",
        ]
        for each in cell.pairs
    ]


def line_header(cell: InstrumentCell) -> list[str]:
    return ["data of a cache line", *_columns(cell, "transfers")]


def line_rows(cell: InstrumentCell) -> list[list[str]]:
    return [
        [line_name(each), *_counts(cell, [one.transfers for one in each.per_op.values()], each.seeds)]
        for each in cell.lines
    ]


def tables_of(cell: InstrumentCell) -> list[tuple[list[str], list[list[str]]]]:
    """Return header and rows of each table of a cell."""
    return [
        (subsystem_header(cell), subsystem_rows(cell)),
        (function_header(cell), function_rows(cell)),
        (pair_header(cell), pair_rows(cell)),
        (line_header(cell), line_rows(cell)),
    ]


def line_name(line: LineChange) -> str:
    """Return the name of data, and the number of cache lines that have it if it is more than one."""
    return f"{line.symbol} (up to {line.addresses} lines)" if line.addresses > 1 else line.symbol


def domain_header(cell: InstrumentCell) -> list[str]:
    return ["from", "to", *(f"{arm}" for arm in cell.cpus)]


def domain_rows(cell: InstrumentCell) -> list[list[str]]:
    """Return the transfers between last-level cache domains, the most first."""
    sums: dict[tuple[str, str], dict[Arm, float]] = defaultdict(lambda: defaultdict(float))
    for arm, matrix in cell.cpus.items():
        for source, row in zip(cell.topology, matrix, strict=True):
            for taker, moved in zip(cell.topology, row, strict=True):
                sums[domain(source), domain(taker)][arm] += moved
    largest = sorted(sums.items(), key=lambda each: -max(each[1].values()))
    return [
        [source, taker, *(count(by_arm[arm]) for arm in cell.cpus)]
        for (source, taker), by_arm in largest[:_MAX_DOMAIN_ROWS]
    ]


def domain(place: CpuPlace) -> str:
    """Return the name of the last-level cache domain of a CPU: `L3 2`."""
    return f"L3 {place.l3}"


def cell_note(cell: InstrumentCell) -> str:
    """Return what the figures are, how functions are marked, and what is missing."""
    parts = [f"{basis(cell).capitalize()}, counted by {cell.emulator}."]
    if cell.subsystems:
        parts.append(SUBSYSTEMS)
    if any(each.touched for each in cell.changed):
        parts.append("* is a function that the series changes.")
    if any(each.addresses > 1 for each in cell.lines):
        parts.append(SAME_NAME)
    if len(cell.totals) > 1:
        parts.append("Seeds: under how many of them the count changed in the direction of the mean change.")
    return " ".join([*parts, *(f"{each[:1].upper()}{each[1:]}." for each in cell.notes)])


# --- noise floor ----------------------------------------------------------------------------------------------------

NOT_MEASURED = "noise floor not measured"


def noise_floor(target: TargetReport, cell: Comparison) -> str:
    """Return the noise floor of a judged count or modelled figure: `noise floor 0.03 %`, or that it was not measured;
    empty for figures of other devices."""
    if cell.evidence not in SEEDED or cell.role is Role.EXPLANATORY:
        return ""
    # The control is a kernel; the noise of a change of settings is not known.
    found = _floor(target, cell) if cell.question is Question.KERNEL else None
    return NOT_MEASURED if found is None else f"noise floor {words.amount(found.floor, cell.effect_unit)}"


def headline(target: TargetReport) -> str:
    """Return the target's headline, with the noise floor of its deciding counts or modelled figures."""
    found = deciding(target.comparisons)
    kernels = [cell for cell in found if cell.question is Question.KERNEL]
    floors = dict.fromkeys(text for cell in kernels or found if (text := noise_floor(target, cell)))
    if not floors:
        return target.headline
    what = [] if target.plan.is_modelled else [words.INSTRUMENTED]  # a model's headline says what it is
    return "; ".join([target.headline, *what, " or ".join(floors)])


def noise_note(target: TargetReport) -> str:
    """Return how the noise floor was measured, or how to measure it; empty if the target has no judged count."""
    judged = [cell for cell in target.comparisons if noise_floor(target, cell)]
    if not judged:
        return ""
    about = "a control kernel that differs from its baseline by nops only"
    kernels = [cell for cell in judged if cell.question is Question.KERNEL]
    floors = [floor for cell in kernels if (floor := _floor(target, cell)) is not None]
    if not floors:
        return f"Noise floor: not measured for this plan on this device type. It is the effect of {about}."
    dates = sorted({f"{each.measured_at:%Y-%m-%d}" for each in floors})
    seeds = sorted({each.seeds for each in floors})
    text = (
        f"Noise floor: the largest effect in the 95 % interval of {about}, measured with "
        f"{' or '.join(map(str, seeds))} seeds on {' and '.join(dates)}."
    )
    needed = {
        f"{words.metric_name(each.metric)} {each.seeds_needed}": None
        for each in floors
        if each.seeds_needed is not None
    }
    if needed:
        text += f" Seeds that find an effect of the threshold with 95 % power: {', '.join(needed)}."
    missing = len(judged) - len(floors)
    return f"{text} Not measured for {words.count(missing, 'comparison')}." if missing else text


def _floor(target: TargetReport, cell: Comparison) -> NoiseFloor | None:
    key = (cell.scenario, cell.setting, cell.metric)
    return next((each for each in target.noise_floors if (each.scenario, each.setting, each.metric) == key), None)


# --- pieces ---------------------------------------------------------------------------------------------------------


def _columns(cell: InstrumentCell, what: str) -> list[str]:
    if len(cell.totals) < 2:
        return [what]
    first, second = (str(arm) for arm in cell.totals)
    return [f"{what}: {first}", second, "seeds"]


def _counts(cell: InstrumentCell, counts: Sequence[float], seeds: int) -> list[str]:
    shown = [count(each) for each in counts]
    return [*shown, f"{seeds}/{len(cell.seeds)}"] if len(cell.totals) > 1 else shown


def _place(function: str, line: str, source: str) -> str:
    return " ".join(part for part in (function, line, source) if part)


def _largest_change(cell: InstrumentCell) -> float:
    totals: Mapping[Arm, Moves] = cell.totals
    counts = [each.transfers for each in totals.values()]
    return abs(counts[-1] / counts[0] - 1) if len(counts) > 1 and counts[0] else 0.0


def totals_of(function: FunctionChange, instructions: bool) -> dict[Arm, float]:
    """Return the instructions or the transfers of a function by arm."""
    return {arm: each.instructions if instructions else each.transfers for arm, each in function.per_op.items()}
