"""Process a device trial that the server ordered: try the machine in a process of its own, then write its files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import structlog

from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages.device_trials import (
    FILE_LIMIT,
    TRIAL_MESSAGES,
    TrialClaim,
    TrialFile,
    TrialRequest,
    TrialResult,
    TrialStepResult,
)
from wqlab_contracts.new_devices import files, render
from wqlab_contracts.new_devices.description import NewDevice

from ..settings import Settings
from .heartbeats import Heartbeats, Stop
from .jobs import connect_server, failure_of, finish, outcome_of
from .server import JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

PASSWORDS = Path("/etc/wqlab")
"""Folder of password files that a description from the web may name, beside `passwords` in the state folder."""
_MODULE = "wqlab_worker.backends.device_trial"
_STOP_S = 90.0


def device_trial(id_: int, settings: Settings) -> None:
    """Process a trial under heartbeats: boots take minutes."""
    server, claimed_at = connect_server(settings), time.monotonic()
    claim = server.claim_trial(id_)
    if claim is None:
        return
    ref, stop = JobRef("device_trials", id_, claim.fence), Stop()
    with Heartbeats(server, ref, claim.expires_in_s, claimed_at, stop):
        try:
            result = _run(server, ref, _request(claim, settings), stop)
            if result.outcome is Outcome.PASSED:
                result = add_files(result, claim, settings)
        except Exception as error:
            log.exception("device trial failed", trial=id_)
            failure = failure_of(error)
            result = TrialResult(outcome=outcome_of(failure), failure=failure)
        finish(server.finish_trial, ref, result)


def _request(claim: TrialClaim, settings: Settings) -> TrialRequest:
    return TrialRequest(
        device=claim.device,
        ssh_key=settings.ssh_key,
        kernel=_kernel(settings.state, claim.device.arch),
        password_folders=[PASSWORDS, settings.state / "passwords"],
    )


def _kernel(state: Path, arch: str) -> Path | None:
    """Return the golden system's kernel if it is one for real machines, as in a rehearsal; None otherwise."""
    if not (state / "rehearsal" / "programs.json").exists():
        return None
    golden = json.loads((state / "golden.json").read_text()).get(arch)
    return Path(golden["kernel"]) if golden else None


def _run(server: Server, ref: JobRef, request: TrialRequest, stop: Stop) -> TrialResult:
    """Run the trial's process, and report each step. A stop closes its input, and it switches the machine off."""
    process = subprocess.Popen([sys.executable, "-m", _MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout  # noqa: S101 - pipes
    stdin = process.stdin
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            if stop.wait(1.0):
                break
        stdin.close()

    result: TrialResult | None = None
    steps: list[TrialStepResult] = []
    doing = ""
    try:
        stdin.write(request.model_dump_json().encode() + b"\n")
        stdin.flush()
        threading.Thread(target=watch, daemon=True).start()
        for line in process.stdout:
            message = TRIAL_MESSAGES.validate_json(line)
            if message.type == "ended":
                result = message.result
                break
            if message.type == "step":
                steps.append(message.result)
            else:
                doing = message.text
            _report(server, ref, doing, steps)
    finally:
        ended.set()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
    if result is None:
        raise RuntimeError(f"the trial's process ended with status {process.returncode} and no result")
    return result


def _report(server: Server, ref: JobRef, doing: str, steps: list[TrialStepResult]) -> None:
    """Send progress; the next report or the result has it again, if this one is lost."""
    try:
        server.send_trial_progress(ref, doing, steps)
    except (httpx.TransportError, ServerRefused, StaleFence) as error:
        log.warning("progress of a trial not sent", trial=ref.id, error=repr(error))


def add_files(result: TrialResult, claim: TrialClaim, settings: Settings) -> TrialResult:
    """Return the result with the machine's files, written if that was asked for and possible.

    A lab that joined a server has no data folder: its device types are on the server.
    """
    device = claim.device
    if device.topology is None:
        device = device.model_copy(update={"topology": result.topology})
    data = os.environ.get("WQLAB_DATA_DIR")
    exporters = settings.state / "labgrid" / "exporter.yaml.d"
    if data is None:
        refusal = (
            f"Lab {device.lab} has no device types of its own: write these files on the server and the lab's host."
        )
        return result.model_copy(update={"files": _texts(device), "refusal": refusal})
    folders = files.Folders(Path(data), exporters)
    try:
        planned = files.plan([device], folders)
        written = files.write(planned) if claim.write else []
    except files.DevicesRefused as error:
        return result.model_copy(update={"files": _texts(device), "refusal": str(error)[:FILE_LIMIT]})
    except OSError as error:
        refusal = f"{error.filename} cannot be written: {error.strerror}. Write the files by hand."
        return result.model_copy(update={"files": _texts(device), "refusal": refusal})
    shown = [
        TrialFile(
            path=_shown(each.path, folders, settings), added=each.added[:FILE_LIMIT], written=each.path in written
        )
        for each in planned
        if each.changed
    ]
    return result.model_copy(update={"files": shown})


def _shown(path: Path, folders: files.Folders, settings: Settings) -> str:
    return str(path.relative_to(folders.data if path.is_relative_to(folders.device_types) else settings.state))


def _texts(device: NewDevice) -> list[TrialFile]:
    """Return what a person has to write."""
    content = {**render.type_content(device), "units": [render.unit_content(device)]}
    addresses = "".join(f"{name}={value}\n" for name, value in render.addresses(device).items())
    texts = {
        f"device-types/{device.device_type}.yaml": render.device_type_text(content),
        "device-types/addresses.env": addresses,
        f"labgrid/exporter.yaml.d/{device.name}.yaml": render.exporter_text(device),
    }
    return [TrialFile(path=path, added=text, written=False) for path, text in texts.items()]
