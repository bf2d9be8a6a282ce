"""REST resources of devices and device types."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..cpu_layout import CpuLayout
from ..enums import DeviceHealth, RunPurpose
from ..messages import MeasuredTopology, Message
from ..specs import Backend, CpuArch, Rehearsed, Topology


class LeaseView(Message):
    """Lease of a device, and the run that holds it."""

    run_id: int
    submission_id: int | None
    title: str
    """Title of the submission; empty for a run without one."""
    owner: str
    plan: str
    purpose: RunPurpose
    holder: str
    fence: int
    expires_at: datetime


class DeviceView(Message):
    """One device with its health and lease."""

    name: str
    device_type: str
    lab: str
    health: DeviceHealth
    health_reason: str
    health_checked_at: datetime | None
    lease: LeaseView | None
    measured_topology: MeasuredTopology | None
    layout: CpuLayout | None = None
    """`measured_topology` prepared for drawing; null before the first health check."""
    health_check: int | None = None
    """Id of the running or queued health check."""
    check_requested_at: datetime | None = None
    """Time at which a maintainer requested a check that is not queued yet."""
    backend: Backend = "labgrid"
    away: str = ""
    """Reason why the lab reports the device unavailable, whatever its health; empty if available."""
    elsewhere: str = ""
    """Use of the device by others, as reported by the LAVA server; empty if idle or used by this lab."""


class DeviceCounts(Message):
    """Number of devices of a type in each condition; each device is counted once."""

    good: int
    """Free and good."""
    busy: int
    """Leased."""
    suspect: int
    """Free and suspect; a health check precedes a run."""
    unknown: int
    """Free and of unknown health; a health check precedes a run."""
    quarantined: int
    """Quarantined; a run still on such a device continues to its end."""

    @property
    def free(self) -> int:
        """Devices that a run can get, if need be after a health check."""
        return self.good + self.suspect + self.unknown


class DeviceTypeView(Message):
    """A device type with the number of its devices and queued runs."""

    name: str
    summary: str
    tested: bool = True
    """False if this device type was never tested on hardware."""
    rehearsed: Rehearsed | None = None
    """When the type was tested on an emulated machine with a real one's protocols; null if it was not."""
    arch: CpuArch
    emulated: bool
    modelled: bool = False
    """True if the CPUs run in parallel in virtual time."""
    generated: bool = False
    """True if the type is generated from its name for a sweep, and not described by a file."""
    topology: Topology
    layout: CpuLayout
    """`topology` prepared for drawing."""
    devices: list[str]
    device_counts: DeviceCounts
    free: int
    queued_runs: int
    problems: list[str] = Field(default_factory=list)
    """Mistakes in the files of the data folder (`file:line: key: message`). Until they are fixed the server uses the
    last valid content, so recent edits may have no effect."""


class QuarantineRequest(Message):
    """Body of a request to quarantine a device."""

    reason: str = Field(min_length=1, max_length=500)
