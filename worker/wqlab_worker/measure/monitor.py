"""The series of workqueue counters that `monitor.sh` prints beside a plan's records -> rows of a boot's table.

A device's kernel may print anything: a line that makes no sense is left out, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterator

from wqlab_contracts.workqueue_series import COUNTERS, GAUGES, ROW_LIMIT, Row

from .collect import count, number

SCRIPT = "monitor.sh"
"""Among a plan's files: runs the plan's script, watched."""
FULL = "the table is full: what came later, in this cell and others, is left out"
_BEGIN, _END = "\nbegin\tworkqueues\n", "\nend\tworkqueues"


def separate(stdout: str) -> tuple[str, list[str] | None]:
    """What the plan's script printed, and the lines of the series behind it; None when there is none."""
    said, begin, rest = stdout.rpartition(_BEGIN)
    series, end, _ = rest.rpartition(_END)
    return (said, series.split("\n")) if begin and end else (stdout, None)


def rows(series: list[str], scenario: str, setting: str, repetition: int, phase: str) -> Iterator[Row]:
    """Of one repetition; rows of workqueues that share a name at one moment are added up."""
    source, columns = "", list[str]()
    pending: dict[tuple[float, str], dict[str, int]] = {}
    notes: list[tuple[float, str]] = []
    unreadable = 0
    for line in series[:ROW_LIMIT]:
        kind, *fields = line.split("\t")
        try:
            if kind == "source" and fields in (["stats"], ["tracepoints"]):
                source = fields[0]
            elif kind == "columns" and set(fields) <= {*COUNTERS, *GAUGES}:
                columns = fields
            elif kind == "note" and len(fields) == 2:
                notes.append((number(fields[0]), fields[1][:300]))
            else:
                name, *cells = fields
                values = {c: count(cell) for c, cell in zip(columns, cells, strict=True) if cell != "-"}
                total = pending.setdefault((number(kind), name[:100]), {})
                for column, value in values.items():
                    total[column] = total.get(column, 0) + value
        except ValueError:
            unreadable += 1
    if unreadable:
        notes.append((0.0, f"{unreadable} unreadable lines are left out"))
    if len(series) > ROW_LIMIT:
        notes.append((0.0, f"the series is too long: its last {len(series) - ROW_LIMIT} lines are left out"))

    def row(seconds: float, workqueue: str, values: dict[str, int], note: str = "") -> Row:
        return Row(
            scenario=scenario,
            setting=setting,
            repetition=repetition,
            phase=phase,
            source=source,
            seconds=max(0.0, min(seconds, 1e6)),
            workqueue=workqueue,
            values=values,
            note=note,
        )

    for seconds, note in notes:
        yield row(seconds, "", {}, note)
    for (seconds, workqueue), values in pending.items():
        yield row(seconds, workqueue, values)


def fit(table: list[Row]) -> None:
    """Cuts a boot's table that is longer than ROW_LIMIT; its last row is then a note of what remains, so that it is
    shown where the figures end."""
    if len(table) > ROW_LIMIT:
        table[ROW_LIMIT - 1 :] = [table[ROW_LIMIT - 2].model_copy(update={"workqueue": "", "values": {}, "note": FULL})]
