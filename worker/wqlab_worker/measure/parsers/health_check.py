"""Plan health-check: no metric; a device is healthy when its script saw nothing wrong and said so."""

from __future__ import annotations

from dataclasses import replace

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import Failure, MeasuredTopology

from ..collect import Measurement, Records, measure
from .fio import said_by_fio

TRACED: tuple[str, ...] = ()
UNTRACED: tuple[str, ...] = ()


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    measurement = said_by_fio(measure(records, (), dict), records)
    if measurement.failure is None and records.facts.get("healthy") != "yes":
        # A check that was cut off has found nothing, which is not the same as finding nothing wrong.
        why = "; ".join(records.damage) or "its output ends early"
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the health check did not finish: {why}")
        return replace(measurement, failure=failure)
    return measurement
