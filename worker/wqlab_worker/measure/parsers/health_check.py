"""Parser of plan health-check: no metrics; the check passes if the script reports `fact healthy yes`."""

from __future__ import annotations

from dataclasses import replace

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import Failure, MeasuredTopology

from ..collect import Measurement, Records, compute_measurement
from .fio import apply_fio_result

TRACED: tuple[str, ...] = ()
UNTRACED: tuple[str, ...] = ()


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    measurement = apply_fio_result(compute_measurement(records, (), dict), records)
    if measurement.failure is None and records.facts.get("healthy") != "yes":
        # A check that was cut off has found no fault, but it has not passed.
        why = "; ".join(records.damage) or "its output ends early"
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the health check did not finish: {why}")
        return replace(measurement, failure=failure)
    return measurement
