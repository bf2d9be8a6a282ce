"""The folder of one `wqlab ab`: everything that it needs to resume, and its results.

ab.json             the kernels, the machine and the plan; never changed
kernels/ARM/        image, modules.tar, config, changes to its commit, and the initramfs that it boots
rootfs              the root filesystem; only for a machine
key, key.pub        SSH key of the kernels under test, made for this folder
events.jsonl        the events of the boots, one a line; record, samples and report are derived from them
consoles/BOOT.log   console of each boot, in raw bytes
output/NAME         files that the boots produced
run.json            record of the run, as in a bundle of a lab
samples.csv         samples of the boots that count, for `wqlab compare`
report.*            the report
repro.sh            script that boots both kernels again without wqlab
log.txt             messages of the program
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from wqlab_contracts.bench_addresses import Accelerator
from wqlab_contracts.enums import Arm, ArtifactKind
from wqlab_contracts.messages import Artifact, Message, RunJob
from wqlab_contracts.specs import DeviceType

from ..errors import UsageError

PREFIX = "wqlab-ab-"
IMAGE, INITRAMFS, MODULES, CONFIG, CHANGES = "image", "initramfs", "modules.tar", "config", "changes.patch"
ROOTFS = "rootfs"


class KernelNote(Message):
    """What a kernel was called, and where it came from."""

    name: str
    commit: str = ""
    """Full hash of the commit that it was built from; empty for an image that was given."""
    has_changes: bool = False
    """True if changes.patch was applied to that commit."""
    has_config: bool = False
    reproducer: str = ""
    """Command that builds it again; empty for an image that was given."""
    compiler: str = ""


class MachineNote(Message):
    """A machine: its name, and how it leaves its distribution and returns to it."""

    name: str
    has_systemd: bool
    watchdogs: list[str] = []
    """Modules of watchdogs that its kernels under test have."""
    warnings: list[str] = []
    """Warnings that the user has accepted."""


class Plan(Message):
    """Content of ab.json."""

    format: Literal[1] = 1
    created_at: datetime
    target: str
    """`qemu`, or the SSH address of a machine."""
    device_type: DeviceType
    kernels: dict[Arm, KernelNote]
    job: RunJob
    accelerator: Accelerator | None = None
    """How the emulator runs; None for a machine."""
    machine: MachineNote | None = None
    """None for an emulator."""


class StateFolder:
    """The folder of one `wqlab ab`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def plan_file(self) -> Path:
        return self.path / "ab.json"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def consoles(self) -> Path:
        return self.path / "consoles"

    @property
    def output(self) -> Path:
        return self.path / "output"

    @property
    def key(self) -> Path:
        return self.path / "key"

    def kernel(self, arm: Arm, name: str) -> Path:
        """Return the path of a file of one kernel."""
        return self.path / "kernels" / arm.value / name

    def artifact(self, artifact: Artifact) -> Path:
        """Return the path of an artifact, whose name is its path in the folder. Raises UsageError if it was changed."""
        path = self.path / artifact.name
        if not path.exists() or sha256_of(path) != artifact.sha256:
            raise UsageError(
                f"{path} is missing or was changed since the first boot",
                "start again in a new folder: the boots before would be of another kernel",
            )
        return path

    def add(self, source: Path, arm: Arm, name: str, kind: ArtifactKind) -> Artifact:
        """Copy a file of a kernel into the folder."""
        target = self.kernel(arm, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source != target:
            shutil.copyfile(source, target)
        size = target.stat().st_size
        return Artifact(sha256=sha256_of(target), size=size, kind=kind, name=target.relative_to(self.path).as_posix())

    def keep(self, source: Path, name: str) -> None:
        """Copy a file into the folder."""
        shutil.copyfile(source, self.path / name)

    def make_key(self) -> None:
        """Make the SSH key of the kernels under test. Raises UsageError if ssh-keygen fails."""
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "wqlab ab", "-f", str(self.key)]
        try:
            subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            raise UsageError(f"ssh-keygen made no key: {error}", "install openssh-client") from None

    def write_plan(self, plan: Plan) -> None:
        """Write ab.json atomically. A folder without it was never begun."""
        write_whole(self.plan_file, plan.model_dump_json(indent=1).encode())

    def read_plan(self) -> Plan:
        """Return the content of ab.json. Raises UsageError."""
        try:
            return Plan.model_validate_json(self.plan_file.read_bytes())
        except OSError:
            raise UsageError(f"{self.path} is no folder of `wqlab ab`: it has no ab.json", "name another") from None
        except ValidationError as error:
            first = error.errors()[0]
            raise UsageError(
                f"{self.plan_file} was written by another version of wqlab: {first['msg']} ({first['loc']})",
                "go on with that version, or start again",
            ) from None


def new_folder(name: str) -> StateFolder:
    """Create `wqlab-ab-NAME` in the current folder. Raises UsageError if it exists or cannot be made."""
    path = Path(f"{PREFIX}{name}").absolute()
    if (path / "ab.json").exists():
        raise UsageError(f"{path.name} exists", f"go on with `wqlab ab --resume {path.name}`, or choose another --name")
    try:
        path.mkdir(exist_ok=True)
        for each in ("consoles", "output", "kernels"):
            (path / each).mkdir(exist_ok=True)
        (path / "key").unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make {path}: {error.strerror}", "go to a folder that you may write") from None
    return StateFolder(path)


def latest_folder() -> StateFolder:
    """Return the newest `wqlab-ab-*` in the current folder. Raises UsageError if there is none."""
    found = sorted(Path.cwd().glob(f"{PREFIX}*/ab.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageError(f"there is no {PREFIX}* folder here", "name one: `wqlab ab --resume FOLDER`")
    return StateFolder(found[-1].parent)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by `content` atomically: after a power loss it has the old content or the new one."""
    partial = path.with_name(f".{path.name}.new")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
