"""Run a device trial on the lab's host: start the worker's trial process and read its messages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from wqlab_contracts.new_devices.trial import TRIAL_MESSAGES, TrialMessage, TrialRequest

from .errors import LabUnavailable, UsageError

_MODULE = "wqlab_worker.backends.device_trial"
_STOP_S = 90.0
"""Time for a stopped trial to switch the machine off."""


@dataclass(frozen=True)
class LabFolders:
    """The folders of the lab on this host."""

    data: Path
    state: Path

    @property
    def ssh_key(self) -> Path:
        return self.state / "keys" / "lab_ed25519"

    @property
    def exporters(self) -> Path:
        return self.state / "labgrid" / "exporter.yaml.d"

    def answers(self, name: str) -> Path:
        """Return the file with the answers about a machine, to continue with."""
        return self.state / "new-devices" / f"{name}.json"

    def check(self) -> None:
        """Raise UsageError unless these are the folders of a lab and its key can be read."""
        if not (self.data / "device-types").is_dir():
            raise UsageError(f"{self.data} has no folder device-types", "give the lab's data folder with --data")
        try:
            self.ssh_key.read_bytes()
        except OSError as error:
            raise UsageError(
                f"the lab's SSH key {self.ssh_key} cannot be read: {error.strerror}",
                "run this on the lab's host as the lab's user (`lab/as-user.sh wqlab device add`), with --state",
            ) from None

    def kernel(self, arch: str) -> Path | None:
        """Return the golden system's kernel, if this lab made one for real machines or their rehearsal."""
        if not (self.state / "rehearsal" / "programs.json").exists():
            return None
        golden = json.loads((self.state / "golden.json").read_text()).get(arch)
        return Path(golden["kernel"]) if golden else None


def run(request: TrialRequest) -> Generator[TrialMessage]:
    """Yield the trial's messages. Closing the generator stops the trial, which switches the machine off.

    Raises LabUnavailable if the process ends without a result.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", _MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C must not end it before the machine is off
    )
    assert process.stdin and process.stdout and process.stderr  # noqa: S101 - pipes
    try:
        process.stdin.write(request.model_dump_json().encode() + b"\n")
        process.stdin.flush()
        ended = False
        for line in process.stdout:
            try:
                message = TRIAL_MESSAGES.validate_json(line)
            except ValidationError:
                continue
            ended = message.type == "ended"
            yield message
        if not ended:
            said = process.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise LabUnavailable(f"the trial ended without a result: {said}", "install wqlab-worker on this host")
    finally:
        process.stdin.close()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()
