"""Messages of shared boots: boots of an instrumented run that other hosts than the run's own may make.

A boot is determined by kernel, initramfs, device, seed, emulator and plugin, so it does not matter which host makes it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from ..enums import Arm, JobState, Outcome
from ..specs import CpuArch
from .base import Artifact, Excerpt, Failure, Message, Sha256
from .run import DeviceFacts

SHARED_LIMIT = 2_000
"""Maximum number of boots in a message; a run has at most two for each of its seeds."""
INITRAMFS_BYTES = 256 << 20
CONSOLE_BYTES = 32 << 20
OUTPUT_BYTES = 256 << 20
"""Maximum size of the plugin's output file of a boot. A boot with a larger one is reported as failed."""

HostId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$")]
"""Identity of a host. All workers that run on the same machine have the same one."""
EmulatorId = Annotated[str, StringConstraints(min_length=1, max_length=300)]
"""Versions of the emulator, its firmware and its plugin. Two hosts make the same boot only if this text is the same."""


def initramfs_name(arm: Arm) -> str:
    """Return the name of the artifact with the initramfs of a kernel."""
    return f"initramfs-{arm.value}"


def console_name(arm: Arm, seed: int) -> str:
    """Return the name of the artifact with the console of a boot."""
    return f"console-{arm.value}-{seed}"


def output_name(arm: Arm, seed: int) -> str:
    """Return the name of the artifact with the plugin's output of a boot."""
    return f"output-{arm.value}-{seed}"


DataLayout = Annotated[str, StringConstraints(pattern=r"^([a-z_]{1,40} @?[0-9a-f]{1,16}\n){0,40}$", max_length=2400)]
"""Addresses and offsets of a kernel's data structures, for the emulator's plugin. Each line has a name and a
hexadecimal number."""


class SeededBoot(Message):
    """One boot of a run: the kernel and the seed."""

    arm: Arm
    seed: int = Field(ge=0, lt=1 << 32)


class ShareBoots(Message):
    """The boots that a run needs and that another host may make now. It replaces the run's last message."""

    fence: int
    host: HostId
    """Host on which the worker executes the run. The server offers these boots to other hosts only."""
    emulator: EmulatorId
    limit_s: float = Field(gt=0, le=86_400)
    """Longest time of a boot."""
    boots: list[SeededBoot] = Field(max_length=SHARED_LIMIT)
    """In the order in which the run needs them; other hosts begin at the end."""
    initramfs: dict[Arm, Sha256] = Field(default_factory=dict)
    """Uploaded initramfs of each kernel. Empty: only ask whether there are hosts; nothing is shared."""
    layouts: dict[Arm, DataLayout] = Field(default_factory=dict)
    """Data layout of each kernel whose debug information tells it."""


class BootFiles(Message):
    """What a boot left."""

    console: Artifact
    output: Artifact
    """Output file of the emulator's plugin."""
    stderr: Excerpt = ""
    """Messages of the emulator."""
    seconds: float = Field(ge=0)


class SharedBootView(Message):
    """State of a shared boot."""

    arm: Arm
    seed: int
    state: JobState
    holder: str | None
    """Worker that makes or made the boot."""
    files: BootFiles | None
    """The boot's files, once it is finished and passed."""


class ShareAnswer(Message):
    """Answer to `ShareBoots`."""

    hosts: int
    """Number of other hosts that would make boots of this emulator now."""
    boots: list[SharedBootView]
    """Shared boots among the requested ones."""


class BootHostRequest(Message):
    """Question of an idle build host for a boot to make."""

    worker: str = Field(max_length=200)
    host: HostId
    emulators: dict[CpuArch, EmulatorId]
    """Emulators of this host by the guest's architecture."""
    memory_mib: int = Field(ge=0, le=1 << 30)
    """Memory of the largest guest that this host can run now."""
    nonce: str = Field(min_length=8, max_length=64)
    """New for each question; a repeated one gets the same claim again."""


class SharedBootJob(Message):
    """Job that makes one boot of a run on another host."""

    boot_id: int
    run_id: int
    arm: Arm
    seed: int
    device: DeviceFacts
    kernel: Artifact
    initramfs: Artifact
    layout: DataLayout = ""
    """Data layout of the kernel; empty if it is not known."""
    emulator: EmulatorId
    limit_s: float


class SharedBootClaim(Message):
    """Claim of a shared boot."""

    job: SharedBootJob
    fence: int
    expires_in_s: float


class BootHostAnswer(Message):
    """Answer to a build host's question: a claim, or nothing to do."""

    claim: SharedBootClaim | None


class SharedBootResult(Message):
    """Result of a shared boot. Only a guest that switched itself off is `passed`, whatever it printed before."""

    outcome: Outcome
    failure: Failure | None = None
    emulator: EmulatorId
    """Emulator that made the boot."""
    files: BootFiles | None = None


class FinishSharedBoot(Message):
    """Final message of a shared boot."""

    fence: int
    result: SharedBootResult
