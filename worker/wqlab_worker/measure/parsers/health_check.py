"""Parser of plan health-check: no metrics; the check passes if the script reports `fact healthy yes`."""

from __future__ import annotations

from dataclasses import replace

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import Failure, MeasuredTopology

from ..collect import Measurement, Records, Unsupported, compute_measurement
from .fio import apply_fio_result, read_fio
from .fio_command import check_work

TRACED: tuple[str, ...] = ()
UNTRACED: tuple[str, ...] = ()


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    measurement = apply_fio_result(compute_measurement(records, (), lambda: _checked(records)), records)
    if measurement.failure is None and records.facts.get("healthy") != "yes":
        # A check that was cut off has found no fault, but it has not passed.
        why = "; ".join(records.damage) or "its output ends early"
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the health check did not finish: {why}")
        return replace(measurement, failure=failure)
    return measurement


def _checked(records: Records) -> dict[str, float | Unsupported]:
    """Return no metric. Raises NotMeasured if the verified fio run on a memory disk left out work."""
    if "fio" in records.frames:
        check_work(records, read_fio(records))
    return {}
