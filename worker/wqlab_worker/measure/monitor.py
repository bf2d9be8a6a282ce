"""Parse the workqueue series that `monitor.sh` prints beside a plan's records into rows of a boot's table.

The device may print anything: unreadable lines are left out and counted in a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from wqlab_contracts.workqueue_series import COUNTERS, GAUGES, ROW_LIMIT, Row

from .collect import count, number

SCRIPT = "monitor.sh"
"""File of the plan that runs the plan's script and monitors workqueues meanwhile."""
FULL = "the table is full: later rows, of this cell and others, are left out"
_BEGIN, _END = "\nbegin\tworkqueues\n", "\nend\tworkqueues"


def split_output(stdout: str) -> tuple[str, list[str] | None]:
    """Split off the series: return the plan script's output and the lines of the series, or None without one."""
    output, begin, rest = stdout.rpartition(_BEGIN)
    series, end, _ = rest.rpartition(_END)
    return (output, series.split("\n")) if begin and end else (stdout, None)


def parse_rows(series: list[str], scenario: str, setting: str, repetition: int, phase: str) -> Iterator[Row]:
    """Yield the rows of one repetition. Workqueues with the same name at the same time are added up."""
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


def truncate_table(table: list[Row]) -> None:
    """Truncate a boot's table to ROW_LIMIT rows. The last row is then a note, shown where the figures end."""
    if len(table) > ROW_LIMIT:
        table[ROW_LIMIT - 1 :] = [table[ROW_LIMIT - 2].model_copy(update={"workqueue": "", "values": {}, "note": FULL})]
