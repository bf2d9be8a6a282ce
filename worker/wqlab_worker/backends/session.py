"""One device session: an OS process of its own, because labgrid keeps process-wide state and a dead device can take any
library down with it. Started by `labgrid.py`; see `wire.py` for what is said.

`run` measures; `clear` lists or frees places whose session died.
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
from wqlab_contracts.enums import Arm, ArtifactKind, DeviceStep, ErrorKind, Outcome
from wqlab_contracts.messages import BootKey, Failure, RunEvent, RunResult
from wqlab_contracts.specs import ExternalPower

from ..claims.heartbeats import Stop, canceled, lease_lost
from ..measure.device import DeviceFailure
from ..measure.health_check import Walk
from ..measure.run import measure
from ..measure.script_calls import checks_health
from . import coordinator
from .console import ConsoleTap, Watch
from .kexec import POWER_TIMEOUT_S, KexecStrategy, VariantImage, public_key_blob, time_limit
from .labgrid_device import LabgridDevice
from .power import CommandPowerDriver
from .session_messages import HELD, ArtifactSaid, Clearing, ConsoleSaid, EventSaid, Held, Order, ResultSaid, Word
from .verify import infrastructure

log = structlog.get_logger()


class Speaker:
    """The session's `Emit`: one JSON line a message, each written whole."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def event(self, event: RunEvent) -> None:
        self.say(EventSaid(event=event))

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        self.say(ConsoleSaid.model_construct(boot=boot, offset=offset, data=data))

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        self.say(ArtifactSaid.model_construct(kind=kind, name=name, data=data))

    def say(self, line: EventSaid | ConsoleSaid | ArtifactSaid | ResultSaid) -> None:
        data = line.model_dump_json().encode() + b"\n"
        with self._lock:
            self._out.write(data)
            self._out.flush()


def listen(lines: BinaryIO, stop: Stop, watch: Watch) -> None:
    """Follows the worker's words; stops by this process's own clock when they no longer come."""
    stopper = threading.Thread(target=_stop_at_lease_end, args=(stop, watch), daemon=True)
    stopper.start()
    for line in lines:
        word = Word.model_validate_json(line)
        if word.lease_s is not None:
            stop.extend(time.monotonic() + word.lease_s)
        if word.stop is not None:
            stop.request(word.stop)
            watch.ring()
    stop.request(lease_lost("the worker process is gone"))
    watch.ring()


def _stop_at_lease_end(stop: Stop, watch: Watch) -> None:
    known = stop.holds_until
    while not stop.is_set():
        known = stop.wait_extension(known, max(0.0, known - time.monotonic()))
        if time.monotonic() >= known:
            stop.request(lease_lost("the worker did not extend the lease in time"))
            watch.ring()


def device_target(place: str, resources: Sequence[coordinator.ExportedResource]) -> Target:
    """A labgrid target with the place's resources; no environment file."""
    target = Target(place)
    for resource in resources:
        made = target_factory.make_resource(target, resource.cls, resource.name, resource.args)
        made.extra = resource.extra
    return target


def execute(order: Order, speaker: Speaker, stop: Stop, watch: Watch) -> RunResult:
    """Acquires, measures, powers off, releases."""
    device = order.job.device
    needed = coordinator.NEEDED - {coordinator.POWER} if device.power else coordinator.NEEDED
    hold = coordinator.PlaceHold(order.coordinator, device.lab, device.name, order.holder, watch.ring, needed=needed)
    try:
        hold.acquire()
        return _with_device(order, hold, speaker, stop, watch)
    except DeviceFailure as error:
        if checks_health(order.job):
            Walk(order.job, speaker, lambda: datetime.now(UTC)).failed(error)
        outcome = Outcome.CANCELED if error.failure.kind is ErrorKind.CANCELED else Outcome.FAILED
        return RunResult(outcome=outcome, failure=error.failure, device_suspect=error.suspect)
    finally:
        hold.release()


def _with_device(order: Order, hold: coordinator.PlaceHold, speaker: Speaker, stop: Stop, watch: Watch) -> RunResult:
    target = device_target(order.job.device.name, hold.resources)
    _power_driver(target, order.job.device.power)
    console = SerialDriver(target, None)
    target_factory.make_driver(target, "DeviceSSHDriver", None, {"keyfile": str(order.ssh_key)})
    tap = ConsoleTap(console, speaker, watch)
    strategy: KexecStrategy = target_factory.make_driver(target, "KexecStrategy", None, {})
    strategy.device, strategy.tap, strategy.watch = order.job.device, tap, watch
    strategy.cancel, strategy.lost = stop, hold.lost
    strategy.public_key = public_key_blob(order.ssh_key.with_suffix(".pub"))
    images: dict[Arm, VariantImage] = {
        arm: VariantImage(image.path, image.sha256) for arm, image in order.images.items()
    }
    try:
        with time_limit(POWER_TIMEOUT_S, "opening the console"), _console_errors():
            target.activate(console)
        tap.start()
        return measure(
            order.job,
            order.remaining,
            LabgridDevice(strategy, order.job, images, order.facts, order.modules),
            speaker,
            stop,
        )
    finally:
        tap.stop()
        target.cleanup()


def _power_driver(target: Target, commands: ExternalPower | None) -> Driver:
    if commands:
        return CommandPowerDriver(target, None, cmd_on=commands.turn_on, cmd_off=commands.turn_off)
    return NetworkPowerDriver(target, None)


@contextmanager
def _console_errors() -> Iterator[None]:
    """A console that does not open is the console's fault, whatever its driver raises."""
    try:
        yield
    except DeviceFailure as error:
        error.stage = DeviceStep.CONSOLE
        raise
    except (OSError, SerialException) as error:
        raise infrastructure(
            f"the console cannot be opened: {error}", suspect=True, stage=DeviceStep.CONSOLE
        ) from error


async def clear(order: Clearing) -> list[Held]:
    """Lists this lab's holders, or powers off and frees those named; returns what it listed or freed."""
    session = await coordinator.connect(order.coordinator, f"wqlab:{order.lab}:reaper/{os.getpid()}")
    try:
        now = await coordinator.held(session, order.lab)
        if order.free is None:
            return now
        freed = [item for item in order.free if item in now]
        for item in freed:
            # Still held by the dead session, so nobody else can be using the device.
            resources = coordinator.acquired_resources(session, session.places[item.place])
            _power_off(item, resources, order.power.get(item.place))
            await coordinator.release(session, item.place, item.holder)
        return freed
    finally:
        await session.close_quietly()


def _power_off(item: Held, resources: Sequence[coordinator.ExportedResource], commands: ExternalPower | None) -> None:
    try:
        target = device_target(item.place, [resource for resource in resources if resource.cls == coordinator.POWER])
        power = _power_driver(target, commands)
        with time_limit(POWER_TIMEOUT_S, "switching the power off"):
            target.activate(power)
            power.off()
    except Exception as error:
        # Whatever the power switch does, the place has to be freed; its next holder power-cycles anyway.
        log.error("device of a dead session not powered off", place=item.place, error=repr(error))


def main() -> None:
    # Libraries print; only our lines may reach the worker.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    logs.configure(sys.stderr)
    if sys.argv[1] == "clear":
        out.write(HELD.dump_json(asyncio.run(clear(Clearing.model_validate_json(sys.stdin.buffer.read())))) + b"\n")
        out.flush()
        return
    speaker, stop, watch = Speaker(out), Stop(), Watch()
    order = Order.model_validate_json(sys.stdin.buffer.readline())
    stop.extend(time.monotonic() + order.lease_s)
    threading.Thread(target=listen, args=(sys.stdin.buffer, stop, watch), daemon=True).start()
    try:
        result = execute(order, speaker, stop, watch)
    except Exception as error:
        log.exception("session failed")
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the device session failed: {error!r}")
        result = RunResult(outcome=Outcome.FAILED, failure=failure)
    if stop.failure and stop.failure.kind is ErrorKind.CANCELED:
        result = RunResult(outcome=Outcome.CANCELED, failure=canceled(stop.failure.summary))
    speaker.say(ResultSaid(result=result))


if __name__ == "__main__":
    main()
