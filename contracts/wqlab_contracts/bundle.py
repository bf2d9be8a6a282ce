"""Format of a bundle: everything that the verdicts of one submission depend on, as a signed ZIP file.

docs/replay.md describes the format. The server writes it and `wqlab replay` reads it.

    manifest.json                     size and SHA-256 of every other file; signed
    manifest.json.sig                 signature of manifest.json by the lab's key (`ssh-keygen -Y sign`)
    README.txt                        how to check the bundle
    report.json, report.txt           the report as it was stored
    series.mbox                       the series that was tested
    thread.mbox                       the mails that it was made from, if they were taken from a mail archive
    builds/ARM-RECIPE-ARCH/           build.json, config, build.log and with `kernels` the kernel itself
    runs/ID/run.json                  RunRecord: plan, blocks, boots, discarded blocks, findings
    runs/ID/samples.csv               samples of valid boots, as `wqlab samples` prints them
    runs/ID/discarded.csv             samples of boots of discarded blocks, which are not compared
    runs/ID/scripts/NAME              the plan's files, as sent to the device
    runs/ID/consoles/BOOT.log         console of each boot, in raw bytes
    runs/ID/output/NAME               files that the boots produced, such as the raw output of the plan's script
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

from pydantic import Field

from .api.runs import BootView, FindingView
from .enums import Arm, NotMeasuredCause, Outcome
from .messages import Failure, Message
from .messages.base import Sha256
from .messages.looks import LookRecord
from .messages.walk import WalkStep
from .specs import Profile, TestPlan, Topology

FORMAT = 1
MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
README = "README.txt"
REPORT = "report.json"
REPORT_TEXT = "report.txt"
SERIES = "series.mbox"
THREAD = "thread.mbox"
RUN_RECORD = "run.json"
SAMPLES = "samples.csv"
DISCARDED_SAMPLES = "discarded.csv"

SIGNATURE_NAMESPACE = "wqlab-bundle"
"""Namespace of the signature: `ssh-keygen -Y sign -n wqlab-bundle`. It prevents the use of a signature elsewhere."""

NAME_BYTES = 240
"""Maximum length of a file name in a bundle, in bytes."""
_NAME = re.compile(r"[A-Za-z0-9_+=,@-][A-Za-z0-9._+=,@-]*(?:/[A-Za-z0-9_+=,@-][A-Za-z0-9._+=,@-]*){0,7}")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._+=,@-]")


def is_file_name(name: str) -> bool:
    """Return True for a relative path of plain words: no `..`, no hidden, absolute or empty part."""
    return len(name) <= NAME_BYTES and _NAME.fullmatch(name) is not None


def plain_name(text: str) -> str:
    """Return `text` as one part of a file name in a bundle: every other character becomes `_`."""
    name = _NOT_IN_NAME.sub("_", text)[:100]
    return f"_{name[1:]}" if name.startswith(".") else name or "_"


def plain_path(path: str) -> str:
    """Return a relative path with each part as `plain_name` gives it."""
    return "/".join(plain_name(part) for part in path.split("/"))


def console_name(block: int, position: int, arm: Arm, attempt: int) -> str:
    """Return the name of a boot's console. Blocks and attempts are numbered from 0, as in run.json."""
    return f"block{block:03}-boot{position}-{arm}-attempt{attempt}.log"


class BundleFile(Message):
    """Size and hash of a file in the bundle."""

    sha256: Sha256
    size: int = Field(ge=0)


class Manifest(Message):
    """Content of manifest.json."""

    format: Literal[1]
    submission: int
    lab_url: str
    versions: dict[str, str]
    """Package -> version of the lab's programs when the bundle was written."""
    kernels: bool
    """True if the kernel images are included."""
    files: dict[str, BundleFile]
    """File name -> size and hash, for all files but the manifest and its signature."""
    absent: dict[str, str] = Field(default_factory=dict)
    """Name of a file that would belong to the bundle -> why it is missing."""


class BlockRecord(Message):
    """How one attempt of a block ended."""

    block: int
    attempt: int
    finished: bool
    """False: the block was discarded, and its boots are not compared."""
    device: str
    arm: Arm | None
    """Arm that a discarded block counts against; null if it counts against none."""
    failure: Failure | None
    at: datetime


class BootRecord(BootView):
    """One boot, with the workload's command lines by scenario."""

    commands: dict[str, str]


class UnsupportedRecord(Message):
    """A setting or metric that a boot did not measure."""

    boot_id: int
    arm: Arm
    scenario: str
    setting: str
    metric: str | None
    cause: NotMeasuredCause
    reason: str


class RunRecord(Message):
    """Everything that the verdicts of one run depend on, besides its samples."""

    run_id: int
    target: int
    """Index in the submission's targets."""
    plan: TestPlan
    profile: Profile
    """The plan's profile with the submission's settings and parameters applied."""
    device_type: str
    device_summary: str
    emulated: bool
    cost_profile: str = ""
    """Name of the cost profile of a modelled device; empty for other devices."""
    topology: Topology
    recipe: str
    figures: bool
    """False for recipes that find faults and give no figures."""
    seed: int
    """Seed of the order of boots in the blocks, and of settings in each boot."""
    blocks: list[list[Arm]]
    """Arms of each block in boot order."""
    layouts: int = Field(default=1, ge=1)
    """Layouts of the kernels: block b booted layout b modulo this number of both."""
    looks: list[int] = Field(default_factory=list)
    """Numbers of blocks after which the run could stop; empty if its size was fixed."""
    looked: list[LookRecord] = Field(default_factory=list)
    """The looks that took place."""
    walk: list[WalkStep] = Field(default_factory=list)
    """The kernels after each patch, if the series was walked."""
    outcome: Outcome | None
    failure: Failure | None
    compared: bool
    """False if the submission was canceled before its figures were compared."""
    byte_identical: bool
    """True if both kernels are byte-identical, so that nothing was booted."""
    attempts: list[BlockRecord]
    boots: list[BootRecord]
    findings: list[FindingView]
    unsupported: list[UnsupportedRecord]
