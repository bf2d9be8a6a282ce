"""Tables of shared boots, and of the build hosts that make them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import Arm
from wqlab_contracts.messages.shared_boots import BootFiles

from .base import Base
from .job import Job


class SharedBoot(Job, Base):
    """A boot that a build host may make for a run on another host. Deleted when the run's attempt ends."""

    __tablename__ = "shared_boots"
    __table_args__ = (UniqueConstraint("run_id", "arm", "seed"),)

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    run_fence: Mapped[int] = mapped_column(BigInteger)
    """Fence of the claim with which the run's worker shared the boot."""
    arm: Mapped[Arm]
    seed: Mapped[int] = mapped_column(BigInteger)
    position: Mapped[int]
    """Position in the run's order of boots. Build hosts take the boots with the highest positions first."""
    run_host: Mapped[str]
    """Identity of the host on which the worker executes the run."""
    emulator: Mapped[str]
    memory_mib: Mapped[int]
    limit_s: Mapped[float]
    initramfs: Mapped[str]
    """SHA-256 of the initramfs."""
    layout: Mapped[str] = mapped_column(default="")
    """Data layout of the kernel."""
    files: Mapped[BootFiles | None]


class BootHost(Base):
    """A build host that has asked for shared boots."""

    __tablename__ = "boot_hosts"

    host: Mapped[str] = mapped_column(primary_key=True)
    emulators: Mapped[dict[str, str]]
    """Architecture -> emulator."""
    asked_at: Mapped[datetime]
    """Time of the host's last request for a boot."""
    run_at: Mapped[datetime | None]
    """When a run's worker on this host shared boots last; the host's cores are the run's."""
