"""Parser of plan rt-app-scopes: the metrics of plan rt-app, fio's I/Os per second, and where dm-crypt's works ran.

Frames as in parser rt_app; instead of `loads`, `fio` has fio's result and, in traced repetitions, `pairs` has the works
of kcryptd by the CPUs that queued and started them.
"""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, NotMeasured, Records, Unsupported, compute_measurement
from . import rt_app
from .fio import apply_fio_result, read_fio
from .pairs import locality

LOCALITY = ("local_cpu_share", "local_l3_share", "local_l3_by_chance")
TRACED = (*rt_app.TRACED, *LOCALITY)
UNTRACED = (*rt_app.REQUESTS, "load_iops")

operations = rt_app.operations


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    measurement = compute_measurement(
        records, TRACED if traced else UNTRACED, lambda: _traced(records, topology) if traced else _untraced(records)
    )
    return apply_fio_result(measurement, records)


def _ios(records: Records) -> float:
    """Return the I/Os of the dm-crypt device while requests were executed. Raises NotMeasured if there was none."""
    fio = read_fio(records)
    ios = records.value("load_ios")
    if not ios or not fio.read.ios + fio.write.ios:
        raise NotMeasured("fio completed no I/O while requests were executed")
    return ios


def _traced(records: Records, topology: MeasuredTopology) -> dict[str, float | Unsupported]:
    _ios(records)
    found = rt_app.scheduling_metrics(records)
    if "pairs" in records.frames:
        places = locality(records, topology)
        found |= {name: places[name] for name in LOCALITY}
    return found


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    ios = _ios(records)
    return {**rt_app.request_metrics(records), "load_iops": ios / records.value("seconds")}
