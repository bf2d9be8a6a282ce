"""Labs, their units and who holds them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, Text, func, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from wqlab_contracts.enums import DeviceHealth, Outcome
from wqlab_contracts.messages import DeviceFacts, Failure, LavaPool, MeasuredTopology
from wqlab_contracts.specs import Backend

from .base import Base


class Lab(Base):
    """What a lab's worker published of its bench."""

    __tablename__ = "labs"

    name: Mapped[str] = mapped_column(primary_key=True)
    capacity: Mapped[int]
    """Devices it can run at once."""
    published_at: Mapped[datetime] = mapped_column(server_default=func.now())
    pool: Mapped[LavaPool | None]
    """Of a LAVA lab; told with the capacity."""


class Device(Base):
    """A unit of the device-types folder; a row outlives its YAML so that old runs still name their device."""

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
    """A maintainer asked for a health check, or released it, and the check has not been ordered yet. It is ordered
    whether or not a run waits for the device."""
    measured_topology: Mapped[MeasuredTopology | None]
    dirty: Mapped[bool] = mapped_column(default=False)
    """Its last holder did not give it back; the next one releases the place and power-cycles first."""
    retired_at: Mapped[datetime | None]
    """Gone from the YAML."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())

    lease: Mapped[Lease | None] = relationship(back_populates="device", lazy="raise", uselist=False)


class HealthChange(Base):
    """Each time a device's health changed, and by whom."""

    __tablename__ = "health_changes"
    __table_args__ = (Index("ix_health_changes_device_name", "device_name", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"))
    at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    health: Mapped[DeviceHealth]
    reason: Mapped[str]
    by: Mapped[str]
    """A person's name, `run 12`, `lab local`, or the file that was edited."""
    run_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id"))


class DeviceCheck(Base):
    """A maintainer's walk through a device: a health check, then the noise of boots that differ in nothing."""

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
    noise_run_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id"), index=True)
    changes: Mapped[int] = mapped_column(default=0)
    """Counter: how often something was told of it, for those who wait for more."""


class Lease(Base):
    __tablename__ = "leases"

    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), unique=True)
    fence: Mapped[int] = mapped_column(BigInteger)
    holder: Mapped[str] = mapped_column(default="")
    """Empty until a worker has claimed the run."""
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())

    device: Mapped[Device] = relationship(back_populates="lease", lazy="raise")
