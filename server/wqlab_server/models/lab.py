"""Tables of labs, devices, health changes, device checks and leases."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, Text, func, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from wqlab_contracts.enums import DeviceHealth, Outcome
from wqlab_contracts.messages import CheckStep, DeviceFacts, Failure, LavaPool, MeasuredTopology
from wqlab_contracts.specs import Backend

from .base import Base


class Lab(Base):
    """The last report of a lab's worker."""

    __tablename__ = "labs"

    name: Mapped[str] = mapped_column(primary_key=True)
    capacity: Mapped[int]
    """Number of devices that the lab can run at once."""
    published_at: Mapped[datetime] = mapped_column(server_default=func.now())
    pool: Mapped[LavaPool | None]
    """Report about the lab's LAVA server; null for other labs."""


class Device(Base):
    """A device declared in a file under `device-types/`.

    The row is kept after the device is removed from the file, because old runs refer to the device by name.
    """

    __tablename__ = "devices"

    name: Mapped[str] = mapped_column(primary_key=True)
    device_type: Mapped[str] = mapped_column(index=True)
    lab: Mapped[str]
    backend: Mapped[Backend] = mapped_column(Text, server_default="labgrid")
    facts: Mapped[DeviceFacts]
    health: Mapped[DeviceHealth] = mapped_column(default=DeviceHealth.UNKNOWN)
    health_reason: Mapped[str] = mapped_column(default="")
    health_checked_at: Mapped[datetime | None]
    check_requested_at: Mapped[datetime | None]
    """When a maintainer requested a health check or released the device; cleared when the check is ordered. Such a
    check is ordered whether or not a run waits for the device."""
    measured_topology: Mapped[MeasuredTopology | None]
    retired_at: Mapped[datetime | None]
    """When the device was removed from the YAML."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())

    lease: Mapped[Lease | None] = relationship(back_populates="device", lazy="raise", uselist=False)


class HealthChange(Base):
    """A change of a device's health."""

    __tablename__ = "health_changes"
    __table_args__ = (Index("ix_health_changes_device_name", "device_name", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"))
    at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    health: Mapped[DeviceHealth]
    reason: Mapped[str]
    by: Mapped[str]
    """Author of the change: a user's name, `run 12`, `lab local`, or `device-types` for an edited file."""
    run_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id"))


class DeviceCheck(Base):
    """A health check of a device that a maintainer asked for."""

    __tablename__ = "device_checks"
    __table_args__ = (
        Index("ix_device_checks_device_name", "device_name", "id"),
        Index("uq_device_checks_unfinished", "device_name", unique=True, postgresql_where=text("finished_at IS NULL")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"))
    by: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    health_run_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id"), index=True)
    steps: Mapped[list[CheckStep]] = mapped_column(default=list)
    """Results of the steps, in their order."""
    changes: Mapped[int] = mapped_column(default=0)
    """Counter of changes, for clients that wait for a change."""


class Lease(Base):
    """The reservation of a device for a run: an offer, or a lease once a worker has claimed the run."""

    __tablename__ = "leases"

    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), unique=True)
    fence: Mapped[int] = mapped_column(BigInteger)
    holder: Mapped[str] = mapped_column(default="")
    """Empty until a worker has claimed the run."""
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())

    device: Mapped[Device] = relationship(back_populates="lease", lazy="raise")
