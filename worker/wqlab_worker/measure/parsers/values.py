"""For plans that need no arithmetic on the host: a script's own `value` records, and a framed fio result.

The plan decides which of them it takes; one that it wants and that is not there is "not measured".
"""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import TRACED_METRICS, Lacking, Measurement, NotMeasured, Records, measure
from .fio import FioResult, read_fio, said_by_fio

FIO = ("bandwidth", "iops", "read_p99", "write_p99")


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    """Metrics by the names that the script gave them; fio's are bandwidth (MiB/s), iops (1/s), read_p99 and write_p99
    (us of completion latency). A value of the script comes before one of fio."""
    found: dict[str, float | Lacking] = dict(records.values)
    names = list(found)
    unreadable: NotMeasured | None = None
    if "fio" in records.frames:
        try:
            found = {**_of_fio(read_fio(records)), **found}
            names = list(found)
        except NotMeasured as error:
            unreadable = error
            names = [*names, *FIO]

    def compute() -> dict[str, float | Lacking]:
        if unreadable is not None:
            raise unreadable
        return found

    lacking = [metric for metric, _ in records.unsupported if metric != TRACED_METRICS]
    return said_by_fio(measure(records, dict.fromkeys([*names, *lacking]), compute), records)


def _of_fio(fio: FioResult) -> dict[str, float]:
    """Raises NotMeasured for a run that moved no data."""
    runtime = max(fio.read.runtime_s, fio.write.runtime_s)
    values = {
        "bandwidth": fio.bandwidth_mib_s,
        "iops": (fio.read.ios + fio.write.ios) / runtime,
        "read_p99": fio.read.p99_us,
        "write_p99": fio.write.p99_us,
    }
    return {name: value for name, value in values.items() if value is not None}
