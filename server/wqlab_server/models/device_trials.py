"""Table of device trials. Rows are kept for a month."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.messages.device_trials import TrialResult, TrialStepResult
from wqlab_contracts.new_devices.description import NewDevice

from .base import Base
from .job import Job


class DeviceTrial(Job, Base):
    """A machine that a lab's worker tries before it is added. Its description has no password."""

    __tablename__ = "device_trials"

    device: Mapped[NewDevice]
    lab: Mapped[str] = mapped_column(index=True)
    owner: Mapped[str]
    write: Mapped[bool]
    """Whether the worker writes the files if no step fails."""
    steps: Mapped[list[TrialStepResult]] = mapped_column(default=list, server_default=text("'[]'::jsonb"))
    result: Mapped[TrialResult | None]
    changes: Mapped[int] = mapped_column(default=0)
