"""Spread of a block's difference between equal kernels: what noise alone does on devices of a type."""

from __future__ import annotations

import math

from sqlalchemy.orm import Session

from wqlab_contracts.enums import Scale
from wqlab_contracts.specs import DeviceType, Profile

from . import canaries
from .noise_floors import control_spreads


def spreads(session: Session, plan: str, device_type: DeviceType, profile: Profile) -> dict[str, float]:
    """Return metric -> standard deviation of a block's difference, on the scale of the differences (logarithms for
    `ratio`); metrics that were not measured are missing.

    On instrumented devices it is that of the control series, on others that of the noisiest device's canaries.
    """
    if device_type.instrumented:
        return control_spreads(session, plan, device_type.name, profile)
    found: dict[str, float] = {}
    for record in canaries.records(session, device_type=device_type.name, plan=plan):
        for metric in record.metrics:
            if metric.floor is not None:
                # The floor is that of a boot, and a difference has the noise of two.
                boot = math.log1p(metric.floor / 100) if metric.scale is Scale.RATIO else metric.floor
                found[metric.metric] = max(found.get(metric.metric, 0.0), boot * math.sqrt(2))
    return found
