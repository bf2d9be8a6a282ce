"""Parser for plans without arithmetic on the host: the script's `value` records, and a framed fio result.

The plan's metrics select the values; a metric without a value is "not measured".
"""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import TRACED_METRICS, Measurement, NotMeasured, Records, Unsupported, compute_measurement
from .fio import FioResult, apply_fio_result, read_fio

FIO = ("bandwidth", "iops", "read_p99", "write_p99")


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    """Return metrics by the names in the script's records, and fio's: bandwidth (MiB/s), iops (1/s), read_p99 and
    write_p99 (completion latency in us). A value of the script takes precedence over fio's."""
    found: dict[str, float | Unsupported] = dict(records.values)
    names = list(found)
    unreadable: NotMeasured | None = None
    if "fio" in records.frames:
        try:
            found = {**_fio_metrics(read_fio(records)), **found}
            names = list(found)
        except NotMeasured as error:
            unreadable = error
            names = [*names, *FIO]

    def compute() -> dict[str, float | Unsupported]:
        if unreadable is not None:
            raise unreadable
        return found

    unsupported = [metric for metric, _ in records.unsupported if metric != TRACED_METRICS]
    return apply_fio_result(compute_measurement(records, dict.fromkeys([*names, *unsupported]), compute), records)


def _fio_metrics(fio: FioResult) -> dict[str, float]:
    """Return fio's metrics. Raises NotMeasured for a run that moved no data."""
    runtime = max(fio.read.runtime_s, fio.write.runtime_s)
    values = {
        "bandwidth": fio.bandwidth_mib_s,
        "iops": (fio.read.ios + fio.write.ios) / runtime,
        "read_p99": fio.read.p99_us,
        "write_p99": fio.write.p99_us,
    }
    return {name: value for name, value in values.items() if value is not None}
