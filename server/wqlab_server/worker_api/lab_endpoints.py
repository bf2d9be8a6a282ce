"""Endpoints for lab workers: leases, external power switches, and the devices that a lab can run."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from wqlab_contracts.messages import LavaPool
from wqlab_contracts.specs import ExternalPower

from ..http.auth import Worker
from ..http.deps import Data, Db
from ..lab import service as lab_service
from .lab_scope import check_lab

router = APIRouter()


class Capacity(BaseModel):
    """What a lab worker reports of its lab."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    capacity: int = Field(ge=1, le=1000)
    """Number of devices that the lab can run at once."""
    refused: dict[str, str] | None = None
    """Device types that the lab's bench cannot provide, with the reason; null if the bench is not available now."""
    pool: LavaPool | None = None
    """State of the devices that a LAVA lab's server reports."""


@router.get("/labs/{lab}/leases")
def list_leases(lab: str, db: Db, principal: Worker) -> dict[str, Any]:
    check_lab(principal, lab)
    return {"leases": lab_service.live_leases(db, lab)}


@router.get("/labs/{lab}/power")
def list_power(lab: str, data: Data, principal: Worker) -> dict[str, dict[str, ExternalPower]]:
    check_lab(principal, lab)
    devices = [device for each in data.current().device_types.values() for device in each.units]
    return {"power": {device.name: device.power for device in devices if device.power and device.lab == lab}}


@router.post("/labs/{lab}/capacity", status_code=204)
def publish_capacity(lab: str, body: Capacity, db: Db, principal: Worker) -> None:
    check_lab(principal, lab)
    lab_service.publish_capacity(db, lab, body.capacity, body.pool)
    if body.refused is not None:
        lab_service.publish_refused(db, lab, body.refused)
