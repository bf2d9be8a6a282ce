"""Device session: run one job on one labgrid device, in a process of its own.

labgrid keeps process-wide state, and a dead device can crash any library, hence the process. `labgrid.py` starts it;
`session_messages.py` defines its messages. Mode `run` runs a job; `clear` lists or frees places of dead sessions.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import BinaryIO

import structlog
from labgrid import Target, target_factory
from labgrid.driver import NetworkPowerDriver, SerialDriver
from labgrid.driver.common import Driver
from serial import SerialException  # type: ignore[import-untyped]

from wqlab_contracts import logs
from wqlab_contracts.enums import ArtifactKind, DeviceStep, ErrorKind, Outcome
from wqlab_contracts.messages import BootKey, Failure, RunEvent, RunResult
from wqlab_contracts.specs import ExternalPower

from ..claims.heartbeats import lease_lost
from ..measure.device_interface import DeviceFailure
from ..measure.health_check_report import HealthCheckReport
from ..measure.measuring_loop import measure
from ..measure.script_calls import checks_health
from . import coordinator
from .cancellation import Stop, canceled
from .console_tap import ConsoleTap, Wakeup
from .kexec import KexecStrategy
from .own_system import OwnSystemStrategy
from .power import POWER_TIMEOUT_S, CommandPowerDriver, is_unreachable, power_time_limit, time_limit
from .send_image import VariantImage
from .session_messages import (
    HELD_PLACES,
    ArtifactMessage,
    ClearRequest,
    ConsoleMessage,
    EventMessage,
    HeldPlace,
    ResultMessage,
    SessionCommand,
    SessionRequest,
)
from .ssh import public_key_blob
from .ssh_device import SshDevice
from .verify_boot import infrastructure_failure

log = structlog.get_logger()


class MessageWriter:
    """The session's `EventSink`: write each message to standard output as one JSON line."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def event(self, event: RunEvent) -> None:
        self.write(EventMessage(event=event))

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        self.write(ConsoleMessage.model_construct(boot=boot, offset=offset, data=data))

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        self.write(ArtifactMessage.model_construct(kind=kind, name=name, data=data))

    def write(self, message: EventMessage | ConsoleMessage | ArtifactMessage | ResultMessage) -> None:
        data = message.model_dump_json().encode() + b"\n"
        with self._lock:
            self._out.write(data)
            self._out.flush()


def follow_worker(lines: BinaryIO, stop: Stop, wakeup: Wakeup) -> None:
    """Execute the worker's commands; stop at the end of the lease, by this process's own clock, if none come."""
    stopper = threading.Thread(target=_stop_at_lease_end, args=(stop, wakeup), daemon=True)
    stopper.start()
    for line in lines:
        command = SessionCommand.model_validate_json(line)
        if command.lease_s is not None:
            stop.extend(time.monotonic() + command.lease_s)
        if command.stop is not None:
            stop.request(command.stop)
            wakeup.notify()
    stop.request(lease_lost("the worker process has ended"))
    wakeup.notify()


def _stop_at_lease_end(stop: Stop, wakeup: Wakeup) -> None:
    known = stop.holds_until
    while not stop.is_set():
        known = stop.wait_extension(known, max(0.0, known - time.monotonic()))
        if time.monotonic() >= known:
            stop.request(lease_lost("the worker did not extend the lease in time"))
            wakeup.notify()


def device_target(place: str, resources: Sequence[coordinator.ExportedResource]) -> Target:
    """Return a labgrid target with the place's resources; it needs no environment file."""
    target = Target(place)
    for resource in resources:
        made = target_factory.make_resource(target, resource.cls, resource.name, resource.args)
        made.extra = resource.extra
    return target


def execute(request: SessionRequest, writer: MessageWriter, stop: Stop, wakeup: Wakeup) -> RunResult:
    """Acquire the place, run the job's blocks, power the device off and release the place."""
    device = request.job.device
    needed = coordinator.NEEDED - {coordinator.POWER} if device.power else coordinator.NEEDED
    hold = coordinator.PlaceHold(
        request.coordinator, device.lab, device.name, request.holder, wakeup.notify, needed=needed
    )
    try:
        hold.acquire()
        return _with_device(request, hold, writer, stop, wakeup)
    except DeviceFailure as error:
        if checks_health(request.job):
            HealthCheckReport(request.job, writer, lambda: datetime.now(UTC)).record_failure(error)
        outcome = Outcome.CANCELED if error.failure.kind is ErrorKind.CANCELED else Outcome.FAILED
        return RunResult(
            outcome=outcome,
            failure=error.failure,
            device_suspect=error.suspect,
            equipment_unreachable=error.unreachable,
        )
    finally:
        hold.release()


def _with_device(
    request: SessionRequest, hold: coordinator.PlaceHold, writer: MessageWriter, stop: Stop, wakeup: Wakeup
) -> RunResult:
    target = device_target(request.job.device.name, hold.resources)
    _power_driver(target, request.job.device.power)
    console = SerialDriver(target, None)
    target_factory.make_driver(target, "DeviceSSHDriver", None, {"keyfile": str(request.ssh_key)})
    tap = ConsoleTap(console, writer, wakeup)
    kind = "OwnSystemStrategy" if request.job.device.own_system else "KexecStrategy"
    strategy: KexecStrategy = target_factory.make_driver(target, kind, None, {})
    strategy.device, strategy.tap, strategy.wakeup = request.job.device, tap, wakeup
    strategy.cancel, strategy.place_lost = stop, hold.lost
    strategy.public_key = public_key_blob(request.ssh_key.with_suffix(".pub"))
    images = {sha256: VariantImage(image.path, image.sha256) for sha256, image in request.images.items()}
    try:
        with time_limit(POWER_TIMEOUT_S, "the console could not be opened", DeviceStep.CONSOLE), _console_errors():
            target.activate(console)
        tap.start()
        result = measure(
            request.job,
            request.remaining,
            SshDevice(strategy, request.job, images, request.facts, request.modules),
            writer,
            stop,
        )
        if isinstance(strategy, OwnSystemStrategy):
            strategy.await_own_system_after_session()
        return result
    finally:
        tap.stop()
        target.cleanup()


def _power_driver(target: Target, commands: ExternalPower | None) -> Driver:
    if commands:
        return CommandPowerDriver(target, None, cmd_on=commands.turn_on, cmd_off=commands.turn_off)
    return NetworkPowerDriver(target, None)


@contextmanager
def _console_errors() -> Iterator[None]:
    """Turn any exception of the console driver into a DeviceFailure at the console step."""
    try:
        yield
    except (OSError, SerialException) as error:
        raise infrastructure_failure(
            f"the console cannot be opened: {error}",
            suspect=True,
            unreachable=is_unreachable(error),
            stage=DeviceStep.CONSOLE,
        ) from error


async def clear_places(request: ClearRequest) -> list[HeldPlace]:
    """List the places that this lab's sessions hold, or power off and free those requested; return them."""
    session = await coordinator.connect(request.coordinator, f"wqlab:{request.lab}:reaper/{os.getpid()}")
    try:
        held = await coordinator.held_places(session, request.lab)
        if request.free is None:
            return held
        freed = [item for item in request.free if item in held]
        for item in freed:
            # The dead session still holds the place, so no other client can be using the device.
            if item.place not in request.own_systems:
                resources = coordinator.acquired_resources(session, session.places[item.place])
                _power_off(item, resources, request.power.get(item.place))
            await coordinator.release(session, item.place, item.holder)
        return freed
    finally:
        await session.close_quietly()


def _power_off(
    item: HeldPlace, resources: Sequence[coordinator.ExportedResource], commands: ExternalPower | None
) -> None:
    try:
        target = device_target(item.place, [resource for resource in resources if resource.cls == coordinator.POWER])
        power = _power_driver(target, commands)
        with power_time_limit("off"):
            target.activate(power)
            power.off()
    except Exception as error:
        # Free the place even if the power switch fails: the next holder begins with a power cycle.
        log.error("device of a dead session not powered off", place=item.place, error=repr(error))


def main() -> None:
    # Libraries print to standard output; only messages may reach the worker.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    logs.configure(sys.stderr)
    if sys.argv[1] == "clear":
        out.write(
            HELD_PLACES.dump_json(asyncio.run(clear_places(ClearRequest.model_validate_json(sys.stdin.buffer.read()))))
            + b"\n"
        )
        out.flush()
        return
    writer, stop, wakeup = MessageWriter(out), Stop(), Wakeup()
    request = SessionRequest.model_validate_json(sys.stdin.buffer.readline())
    stop.extend(time.monotonic() + request.lease_s)
    threading.Thread(target=follow_worker, args=(sys.stdin.buffer, stop, wakeup), daemon=True).start()
    try:
        result = execute(request, writer, stop, wakeup)
    except Exception as error:
        log.exception("session failed")
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the device session failed: {error!r}")
        result = RunResult(outcome=Outcome.FAILED, failure=failure)
    if stop.failure and stop.failure.kind is ErrorKind.CANCELED:
        result = RunResult(outcome=Outcome.CANCELED, failure=canceled(stop.failure.summary))
    writer.write(ResultMessage(result=result))


if __name__ == "__main__":
    main()
