"""Messages of a device trial: try how a new machine is reached, step by step, before any file is written."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from ..enums import Outcome, StepOutcome
from ..new_devices.description import NewDevice
from ..specs import Topology
from . import Failure, Message

TEXT_LIMIT = 1000
CONSOLE_LIMIT = 4000
"""Characters at the end of the console that a step quotes."""
DISKS_LIMIT = 200
FILE_LIMIT = 20_000


class TrialStep(StrEnum):
    """Step of a device trial, in the order in which they are tried."""

    CONSOLE = "console"
    """The console's TCP port can be opened."""
    POWER_OFF = "power_off"
    POWER_ON = "power_on"
    """The power is switched on, and text comes on the console."""
    GOLDEN = "golden"
    """The golden system prints its ready line."""
    ECHO = "echo"
    """The console answers to what is written to it."""
    SSH = "ssh"
    MACHINE = "machine"
    """CPUs and disks are read, and the topology is as described."""
    KEXEC = "kexec"
    RESET = "reset"
    """The power really cuts: the machine falls silent, and comes back as another boot."""


class TrialStepResult(Message):
    """Result of one step of a trial."""

    step: TrialStep
    outcome: StepOutcome
    at: datetime
    text: Annotated[str, Field(max_length=TEXT_LIMIT)]
    fix: Annotated[str, Field(max_length=TEXT_LIMIT)] = ""
    """What to do about a failure."""
    console: Annotated[str, Field(max_length=CONSOLE_LIMIT)] = ""
    """End of the console at a failure."""


class TrialRequest(Message):
    """What the process of a trial reads: the machine, and what it boots."""

    device: NewDevice
    ssh_key: Path
    """The lab's private SSH key; the public one is beside it."""
    kernel: Path | None = None
    """Kernel image to start by kexec; None: the step is skipped."""
    password_folders: list[Path] = Field(default_factory=list)
    """Folders in which the password's file must be; empty: any."""


class TrialFile(Message):
    """One of the files that a lab needs for the machine: device type, addresses or exporter file."""

    path: Annotated[str, Field(max_length=TEXT_LIMIT)]
    """Relative to the lab's data folder for device types and addresses, to its state folder for exporter files."""
    added: Annotated[str, Field(max_length=FILE_LIMIT)]
    """Lines that the file gets."""
    written: bool
    """False if a person has to write it."""


class TrialResult(Message):
    """Result of a trial."""

    outcome: Outcome
    failure: Failure | None = None
    """Why the trial itself could not run. The failure of a step is in `steps`."""
    steps: list[TrialStepResult] = Field(default_factory=list, max_length=len(TrialStep))
    topology: Topology | None = None
    """Topology that the golden system measured; None if it was not measured or no device type can declare it."""
    disks: list[str] = Field(default_factory=list, max_length=DISKS_LIMIT)
    """Whole disks of the machine, by their names in /dev/disk/by-id."""
    machine: Annotated[str, Field(max_length=TEXT_LIMIT)] = ""
    """Manufacturer and model, as the firmware reports them."""
    files: list[TrialFile] = Field(default_factory=list, max_length=10)
    """What adds the machine, after a trial without a failed step."""
    refusal: Annotated[str, Field(max_length=FILE_LIMIT)] = ""
    """Why files were not written, and what to do."""


class TrialDoing(Message):
    """What the trial does now, for whoever watches."""

    type: Literal["doing"] = "doing"
    text: Annotated[str, Field(max_length=TEXT_LIMIT)]


class TrialStepEnded(Message):
    """One step has ended."""

    type: Literal["step"] = "step"
    result: TrialStepResult


class TrialEnded(Message):
    """The trial has ended; the machine is off if its power could be switched."""

    type: Literal["ended"] = "ended"
    result: TrialResult


TrialMessage = Annotated[TrialDoing | TrialStepEnded | TrialEnded, Field(discriminator="type")]
TRIAL_MESSAGES: TypeAdapter[TrialMessage] = TypeAdapter(TrialMessage)
"""A trial's process writes one message a line."""


# --- between server and worker ------------------------------------------------------------------------------------


class TrialClaim(Message):
    """Claim of a trial by the worker of the machine's lab."""

    device: NewDevice
    write: bool
    """Write the files if no step fails."""
    fence: int
    expires_in_s: float


class TrialProgress(Message):
    """Steps that have ended, and what the trial does now."""

    fence: int
    doing: Annotated[str, Field(max_length=TEXT_LIMIT)]
    steps: list[TrialStepResult] = Field(max_length=len(TrialStep))


class FinishTrial(Message):
    """Final message of a trial."""

    fence: int
    result: TrialResult
