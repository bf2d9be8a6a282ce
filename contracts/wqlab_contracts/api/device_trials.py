"""REST resources of device trials: try a new machine of a lab, and write its files."""

from __future__ import annotations

from datetime import datetime

from ..enums import JobState, Outcome
from ..messages import Failure, Message
from ..messages.device_trials import TrialFile, TrialStepResult
from ..new_devices.description import NewDevice
from ..specs import Topology


class DeviceTrialRequest(Message):
    """A machine to try."""

    device: NewDevice
    write: bool = False
    """Write the files if no step fails."""


class DeviceTrial(Message):
    """A trial of a machine: its steps as they end, then the files that add it."""

    id: int
    device: NewDevice
    write: bool
    by: str
    state: JobState
    outcome: Outcome | None
    """null while the trial runs."""
    failure: Failure | None
    """Why the trial itself could not run, for example because the lab's worker does not answer."""
    doing: str
    """Current activity; empty after the end."""
    steps: list[TrialStepResult]
    topology: Topology | None
    """As the golden system measured it."""
    disks: list[str]
    """Disks of the machine, by their names in /dev/disk/by-id."""
    machine: str
    files: list[TrialFile]
    refusal: str
    """Why files were not written, and what to do."""
    created_at: datetime
    finished_at: datetime | None
    changes: int
    """Version of this resource; grows with every change."""
