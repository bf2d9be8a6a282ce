"""Endpoints for workers: leases, external power switches, the devices that a lab can run, and storage."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, field_validator
from sqlalchemy import select

from wqlab_contracts.enums import AuditAction
from wqlab_contracts.messages import LabPower, LavaPool
from wqlab_contracts.messages.storage import StorageUse

from ..http.audit import Audit
from ..http.auth import Worker
from ..http.deps import Data, Db
from ..http.problems import ApiProblem
from ..lab import service as lab_service
from ..models import Device
from ..retention import service as retention
from .lab_scope import check_lab

router = APIRouter()

POOL_BYTES = 1 << 20
"""State of a LAVA server as JSON: some thousand devices."""


class Capacity(BaseModel):
    """What a lab worker reports of its lab."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    capacity: int = Field(ge=1, le=1000)
    """Number of devices that the lab can run at once."""
    refused: dict[str, str] | None = None
    """Device types that the lab's bench cannot provide, with the reason; null if the bench is not available now."""
    pool: LavaPool | None = None
    """State of the devices that a LAVA lab's server reports."""

    @field_validator("refused")
    @classmethod
    def _limit_refused(cls, refused: dict[str, str] | None) -> dict[str, str] | None:
        if refused and (len(refused) > 1000 or any(len(name) + len(why) > 2000 for name, why in refused.items())):
            raise ValueError("at most 1000 device types, each with at most 2000 characters")
        return refused

    @field_validator("pool")
    @classmethod
    def _check_pool(cls, pool: LavaPool | None) -> LavaPool | None:
        """Raise ValueError for an address that is not a URL, which a page could not link to, and for a huge pool."""
        if pool is not None:
            try:
                parts = urlsplit(pool.url)
                valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
            except ValueError:
                valid = False
            if not valid:
                raise ValueError(f"{pool.url[:200]!r} is not the URL of a LAVA server; write https://HOST")
            if len(pool.model_dump_json()) > POOL_BYTES:
                raise ValueError(f"the state of a LAVA server may have at most {POOL_BYTES} bytes")
        return pool


@router.get("/labs/{lab}/leases")
def list_leases(lab: str, db: Db, principal: Worker) -> dict[str, Any]:
    check_lab(principal, lab)
    return {"leases": lab_service.live_leases(db, lab)}


@router.get("/labs/{lab}/power")
def list_power(lab: str, db: Db, data: Data, principal: Worker) -> LabPower:
    check_lab(principal, lab)
    # A device whose description was removed during its last session may still run its own system.
    known = db.execute(select(Device.name, Device.facts).where(Device.lab == lab))
    own_systems = {device.name for device in known if device.facts.own_system}
    units = [unit for each in data.current().device_types.values() for unit in each.units if unit.lab == lab]
    return LabPower(
        power={unit.name: unit.power for unit in units if unit.power},
        own_systems=sorted(own_systems | {unit.name for unit in units if unit.own_system}),
    )


@router.post("/storage", status_code=204)
def publish_storage(body: StorageUse, db: Db, principal: Worker) -> None:
    try:
        retention.keep_report(db, principal.lab or "", body)
    except retention.TooManyMachines as error:
        raise ApiProblem(403, str(error)) from error


@router.post("/labs/{lab}/capacity", status_code=204)
def publish_capacity(*, lab: str, body: Capacity, db: Db, data: Data, principal: Worker, audit: Audit) -> None:
    check_lab(principal, lab)
    if lab_service.publish_capacity(db, lab, body.capacity, body.pool) != body.capacity:
        audit.record(db, AuditAction.REGISTER_LAB, f"lab/{lab}", capacity=body.capacity)
    if body.refused is not None:
        lab_service.publish_refused(db, lab, body.refused, data.current())
