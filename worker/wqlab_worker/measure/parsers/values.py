"""Parser for plans without arithmetic on the host: the script's `value` records, and a framed fio result.

The plan's metrics select the values; a metric without a value is "not measured".
"""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import TRACED_METRICS, Measurement, NotMeasured, Operations, Records, Unsupported, compute_measurement
from .fio import PERCENTILES, FioResult, apply_fio_result, read_fio
from .shares import cpu_utilisation

FIO = ("bandwidth", "iops", *(f"{stream}_{name}" for stream in ("read", "write") for name in PERCENTILES))


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    """Return metrics by the names in the script's records, and fio's: bandwidth (MiB/s), iops (1/s), and the completion
    latency of reads and writes (us), such as read_p50, read_p99 and read_p999. A script's value takes precedence."""
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
        return found | ({"cpu_utilisation": cpu_utilisation(records)} if "cpu_utilisation" in records.values else {})

    unsupported = [metric for metric, _ in records.unsupported if metric != TRACED_METRICS]
    return apply_fio_result(compute_measurement(records, dict.fromkeys([*names, *unsupported]), compute), records)


def operations(records: Records) -> dict[str, Operations]:
    """Return the value `operations` of the script, by which counts are divided. Raises NoSamples if it is missing."""
    return {"operations": Operations(int(records.value("operations")), "operation")}


def _fio_metrics(fio: FioResult) -> dict[str, float]:
    """Return fio's metrics. Raises NotMeasured for a run that moved no data."""
    runtime = max(fio.read.runtime_s, fio.write.runtime_s)
    return {
        "bandwidth": fio.bandwidth_mib_s,
        "iops": (fio.read.ios + fio.write.ios) / runtime,
        **{f"read_{name}": us for name, us in fio.read.percentiles_us.items()},
        **{f"write_{name}": us for name, us in fio.write.percentiles_us.items()},
    }
