"""Messages between a worker and its device-session process, one JSON line each.

Worker to session (standard input): one `SessionRequest`, then `SessionCommand`s; end of file means that the worker has
ended. Session to worker (standard output): `SessionMessage`s, the last one a `ResultMessage`.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, TypeAdapter

from wqlab_contracts.enums import Arm, ArtifactKind
from wqlab_contracts.messages import BlockPlan, BootKey, Failure, RunEvent, RunJob, RunResult
from wqlab_contracts.messages.base import Sha256
from wqlab_contracts.specs import ExternalPower


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Image(_Line):
    """A kernel image on this machine."""

    path: Path
    sha256: str


class SessionRequest(_Line):
    """Run request: everything a session needs."""

    job: RunJob
    remaining: list[BlockPlan]
    images: dict[Sha256, Image]
    """Images of all kernels and layouts, by their hash."""
    modules: dict[Arm, dict[str, Base64Bytes]] = Field(default_factory=dict)
    """Files for one kernel alone, beside those of the plan; see `build.modules.files_for_kernel`."""
    coordinator: str
    holder: str
    ssh_key: Path
    lease_s: float
    facts: dict[str, str] = Field(default_factory=dict)
    """Facts about the device that it cannot report itself; added to the environment of each boot."""


class SessionCommand(_Line):
    """Command to a session: extend the lease to `lease_s` seconds from now, or stop with the failure `stop`."""

    lease_s: float | None = None
    stop: Failure | None = None


class EventMessage(_Line):
    """An event of the run."""

    type: Literal["event"] = "event"
    event: RunEvent


class ConsoleMessage(_Line):
    """Console output of a boot; `offset` as in `EventSink.console`."""

    type: Literal["console"] = "console"
    boot: BootKey
    offset: int
    data: Base64Bytes


class ArtifactMessage(_Line):
    """A file of the run."""

    type: Literal["artifact"] = "artifact"
    kind: ArtifactKind
    name: str
    data: Base64Bytes


class ResultMessage(_Line):
    """The result of the run; the last message."""

    type: Literal["result"] = "result"
    result: RunResult


SessionMessage = Annotated[EventMessage | ConsoleMessage | ArtifactMessage | ResultMessage, Field(discriminator="type")]
SESSION_MESSAGES: TypeAdapter[SessionMessage] = TypeAdapter(SessionMessage)


class HeldPlace(_Line):
    """A place that a session of this lab holds, or held when it ended without releasing it."""

    place: str
    holder: str


class ClearRequest(_Line):
    """Request of the reaper: if `free` is null, list the places that this lab's sessions hold; otherwise power off the
    devices of those places and release them."""

    coordinator: str
    lab: str
    free: list[HeldPlace] | None = None
    power: dict[str, ExternalPower] = Field(default_factory=dict)
    """Power commands by place, for devices that have their own."""
    own_systems: set[str] = Field(default_factory=set)
    """Places of devices whose own operating system may run: their power is not cut. The next session starts it."""


HELD_PLACES: TypeAdapter[list[HeldPlace]] = TypeAdapter(list[HeldPlace])


def holder_name(lab: str, run_id: int, fence: int) -> str:
    """Return a session's name in labgrid: host/user with exactly one slash; the fence makes it unique."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())
    return f"wqlab:{lab}:{host}/run-{run_id}-fence-{fence}"


def is_session_of(lab: str, holder: str) -> bool:
    """Return True if `holder_name` made this name for `lab`; no person's name matches."""
    return re.fullmatch(rf"wqlab:{re.escape(lab)}:[^/:]+/run-\d+-fence-\d+", holder) is not None
