"""What a worker and its device-session process say to each other: one JSON line a message.

Worker to session (its standard input): one `Order`, then `Word`s; end of file means that the worker is gone.
Session to worker (its standard output): `Said` lines, the last one of them a result.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, TypeAdapter

from wqlab_contracts.enums import Arm, ArtifactKind
from wqlab_contracts.messages import BlockPlan, BootKey, Failure, RunEvent, RunJob, RunResult
from wqlab_contracts.specs import ExternalPower


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Image(_Line):
    path: Path
    sha256: str


class Order(_Line):
    """Everything a session needs to run."""

    job: RunJob
    remaining: list[BlockPlan]
    images: dict[Arm, Image]
    modules: dict[Arm, dict[str, Base64Bytes]] = Field(default_factory=dict)
    """Beside the plan's files, for each kernel its own: see `modules.files_for_device`."""
    coordinator: str
    holder: str
    ssh_key: Path
    lease_s: float
    facts: dict[str, str] = Field(default_factory=dict)
    """What the lab knows of the device and the device itself cannot see; part of every boot's environment."""


class Word(_Line):
    """The lease holds for `lease_s` seconds more; `stop` ends the session."""

    lease_s: float | None = None
    stop: Failure | None = None


class EventSaid(_Line):
    said: Literal["event"] = "event"
    event: RunEvent


class ConsoleSaid(_Line):
    said: Literal["console"] = "console"
    boot: BootKey
    offset: int
    data: Base64Bytes


class ArtifactSaid(_Line):
    said: Literal["artifact"] = "artifact"
    kind: ArtifactKind
    name: str
    data: Base64Bytes


class ResultSaid(_Line):
    said: Literal["result"] = "result"
    result: RunResult


Said = Annotated[EventSaid | ConsoleSaid | ArtifactSaid | ResultSaid, Field(discriminator="said")]
SAID: TypeAdapter[Said] = TypeAdapter(Said)


class Held(_Line):
    """A place that a session of this lab holds, or held when it died."""

    place: str
    holder: str


class Clearing(_Line):
    """For the reaper: with `free` null, list what this lab's sessions hold; else power those off and let them go."""

    coordinator: str
    lab: str
    free: list[Held] | None = None
    power: dict[str, ExternalPower] = Field(default_factory=dict)
    """Of the places whose devices are switched by commands of their own."""


HELD: TypeAdapter[list[Held]] = TypeAdapter(list[Held])


def holder_name(lab: str, run_id: int, fence: int) -> str:
    """How a session names itself to labgrid: host/user with exactly one slash; the fence makes it unique."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())
    return f"wqlab:{lab}:{host}/run-{run_id}-fence-{fence}"


def is_session_of(lab: str, holder: str) -> bool:
    """True for a name that `holder_name` made for this lab; people's names never are."""
    return re.fullmatch(rf"wqlab:{re.escape(lab)}:[^/:]+/run-\d+-fence-\d+", holder) is not None
