"""Messages between `wqlab device add` and its trial process, which tries how a new machine is reached."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from ..enums import Outcome, StepOutcome
from ..messages import Message
from ..specs import Topology
from .description import NewDevice

TEXT_LIMIT = 1000
CONSOLE_LIMIT = 4000
"""Characters at the end of the console that a step quotes."""
DISKS_LIMIT = 200


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
    """CPUs and disks are read, and a device type can declare the topology."""
    KEXEC = "kexec"
    RESET = "reset"
    """The power really cuts: the machine falls silent, and comes back as another boot."""


class TrialStepResult(Message):
    """Result of one step of a trial."""

    step: TrialStep
    outcome: StepOutcome
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


class TrialResult(Message):
    """Result of a trial."""

    outcome: Outcome
    steps: list[TrialStepResult] = Field(default_factory=list, max_length=len(TrialStep))
    topology: Topology | None = None
    """Topology that the golden system measured; None if it was not measured or no device type can declare it."""
    disks: list[str] = Field(default_factory=list, max_length=DISKS_LIMIT)
    """Whole disks of the machine, by their names in /dev/disk/by-id."""


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
