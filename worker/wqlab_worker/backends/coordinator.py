"""Hold a labgrid place: acquire it, notice its loss, release it. Uses labgrid's own client, in one thread.

The lease in PostgreSQL decides who uses a device; the acquired place keeps users of `labgrid-client` out. A coordinator
that restarts forgets its locks: a session with a live lease acquires its place again, unless another client holds it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
import structlog
from labgrid.remote.client import ClientSession, ServerError
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb2
from labgrid.remote.generated import labgrid_coordinator_pb2_grpc as pb2_grpc

from ..measure.device_interface import DeviceFailure
from .session_messages import HeldPlace, is_session_of
from .verify_boot import infrastructure_failure

log = structlog.get_logger()

CONNECT_S = 10.0
ACQUIRE_S = 60.0
"""Seconds that a session waits for the exporter of its device."""
RECONNECT_S = 60.0
"""Seconds that a session waits for a coordinator that does not answer. A supervisor restarts it in less."""
POWER = "NetworkPowerPort"
NEEDED = frozenset({POWER, "NetworkSerialPort", "NetworkService"})
"""Resource classes of a place; a device with power commands of its own needs no power port."""

_START_COORDINATOR = (
    "The device was not touched. Start the labgrid coordinator, and see that the worker's host reaches it at {address}."
)
_START_EXPORTER = (
    "The device was not touched. Start the labgrid exporter of the device's host, and see that its configuration has a "
    "group {place} with these resources, and `labgrid-client -x {address} resources` lists them."
)
_SEE_PLACE = (
    "The device was not touched. `labgrid-client -p {place} show` and `labgrid-client reservations` show who holds it."
)


_CHANNEL_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    # Notice within seconds that a coordinator is gone without closing its connections.
    ("grpc.keepalive_time_ms", 7500),
    ("grpc.keepalive_timeout_ms", 10000),
    ("grpc.http2.ping_timeout_ms", 10000),
    ("grpc.http2.max_pings_without_data", 0),
)


@dataclass(frozen=True)
class ExportedResource:
    """A resource of an acquired place, as labgrid's exporter describes it."""

    cls: str
    name: str
    args: dict[str, Any]
    extra: dict[str, Any]


class _Session(ClientSession):  # type: ignore[misc]
    """Coordinator session named `holder`. Sets `changed` when a place or resource changes and when the stream ends."""

    def __init__(self, address: str, holder: str) -> None:
        super().__init__(address, asyncio.get_running_loop())
        self._host, _, self._user = holder.partition("/")
        self.changed = asyncio.Event()
        # The coordinator identifies clients by TCP connection, and gRPC shares connections within a process.
        self._unused: Any = getattr(self, "channel")  # noqa: B009 - labgrid ships no types
        self.channel: Any = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
        self.stub = pb2_grpc.CoordinatorStub(self.channel)

    def gethostname(self) -> str:
        return self._host

    def getuser(self) -> str:
        return self._user

    async def close(self) -> None:
        await self._unused.close()
        await super().close()

    async def on_place_changed(self, place: Any) -> None:
        await super().on_place_changed(place)
        self.changed.set()

    async def on_resource_changed(self, *resource: Any) -> None:
        await super().on_resource_changed(*resource)
        self.changed.set()

    async def message_pump(self) -> None:
        try:
            await super().message_pump()
        finally:
            self.changed.set()

    async def wait_change(self, timeout_s: float) -> None:
        """Wait for a change of a place or resource, for at most `timeout_s`."""
        try:
            await asyncio.wait_for(self.changed.wait(), timeout_s)
        except TimeoutError:
            return
        finally:
            self.changed.clear()

    @property
    def ended(self) -> bool:
        """True once the connection to the coordinator has ended."""
        return bool(self.stopping.is_set())

    async def close_quietly(self) -> None:
        """Stop and close the session; log an error instead of raising it."""
        try:
            await asyncio.wait_for(self.stop(), 5)
        except (TimeoutError, grpc.aio.AioRpcError):
            log.warning("coordinator session did not end cleanly")
        await self.close()


class _CoordinatorAway(DeviceFailure):
    """The coordinator does not answer, or its connection ended."""


async def connect(address: str, holder: str) -> _Session:
    """Open a session named `holder`. Raises DeviceFailure if the coordinator does not answer."""
    session = _Session(address, holder)
    try:
        await asyncio.wait_for(session.start(), CONNECT_S)
    except (TimeoutError, ServerError, grpc.aio.AioRpcError) as error:
        await session.close()
        raise _coordinator_away(f"no answer from the labgrid coordinator at {address}: {error!r}", address) from error
    return session


def _coordinator_away(summary: str, address: str) -> _CoordinatorAway:
    return _CoordinatorAway(infrastructure_failure(summary, advice=_START_COORDINATOR.format(address=address)).failure)


def acquired_resources(session: ClientSession, place: Any) -> list[ExportedResource]:
    """Return the resources of `place` that are acquired with it."""
    found = []
    for exporter, group, cls, name in place.acquired_resources:
        entry = session.resources.get(exporter, {}).get(group, {}).get(name)
        if entry is not None and entry.data.get("cls"):
            found.append(ExportedResource(cls, name, entry.args, entry.extra))
    return found


async def release(session: ClientSession, place: str, holder: str) -> None:
    """Release `place` if `holder` holds it; otherwise do nothing."""
    await session.stub.ReleasePlace(pb2.ReleasePlaceRequest(placename=place, fromuser=holder))
    await session.sync_with_coordinator()


async def held_places(session: ClientSession, lab: str) -> list[HeldPlace]:
    """Return the places that sessions of `lab` hold."""
    return [
        HeldPlace(place=name, holder=place.acquired)
        for name, place in session.places.items()
        if place.acquired and is_session_of(lab, place.acquired)
    ]


class PlaceHold:
    """Hold on one labgrid place, from `acquire` to `release`. `lost()` returns why the place is no longer held.

    `notify` is called when the place is lost. labgrid and gRPC run in this object's own thread and event loop.
    """

    def __init__(
        self,
        address: str,
        lab: str,
        place: str,
        holder: str,
        notify: Callable[[], None],
        *,
        needed: frozenset[str] = NEEDED,
    ) -> None:
        self._address = address
        self._lab = lab
        self._place = place
        self._holder = holder
        self._notify = notify
        self._needed = needed
        self._lost: str | None = None
        self._session: _Session | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="coordinator", daemon=True)
        self._monitor: asyncio.Task[None] | None = None
        self.resources: list[ExportedResource] = []

    def lost(self) -> str | None:
        """Return why the place is no longer held, or None while it is."""
        return self._lost

    def acquire(self) -> None:
        """Acquire the place.

        Raises DeviceFailure if a person holds it, or its exporter or the coordinator is missing.
        """
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    def release(self) -> None:
        """Release the place if it is still held; never raises."""
        if not self._thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(timeout=20)
        except Exception as error:
            log.error("place not released; the reaper will release it", place=self._place, error=repr(error))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)

    async def _start(self) -> None:
        """Acquire the place; a coordinator that is away is waited for. Raises DeviceFailure."""
        deadline = time.monotonic() + RECONNECT_S
        while True:
            try:
                self._session = session = await connect(self._address, self._holder)
                await self._acquire(session)
                break
            except _CoordinatorAway as error:
                if time.monotonic() >= deadline:
                    raise
                log.warning("coordinator does not answer yet", error=str(error))
            await asyncio.sleep(1.0)  # no event reports that a coordinator is back
        self.resources = acquired_resources(session, session.places[self._place])
        self._monitor = asyncio.create_task(self._monitor_place())

    async def _acquire(self, session: _Session) -> None:
        """Wait until the place and its resources are acquired. Raises DeviceFailure."""
        deadline = time.monotonic() + ACQUIRE_S
        while missing := await self._try_acquire(session):
            if session.ended:
                await session.close_quietly()
                away = f"the connection to the labgrid coordinator at {self._address} ended"
                raise _coordinator_away(f"{away}: {missing.failure.summary}", self._address)
            if time.monotonic() >= deadline:
                raise missing
            await session.wait_change(2.0)

    async def _try_acquire(self, session: _Session) -> DeviceFailure | None:
        """Try to acquire the place; return None on success, or a failure that says what is missing.

        Raises DeviceFailure if waiting cannot help: no such place, or a person holds it.
        """
        start_exporter = _START_EXPORTER.format(place=self._place, address=self._address)
        place = session.places.get(self._place)
        if place is None:
            return infrastructure_failure(
                f"labgrid has no place {self._place}",
                advice="Synchronise labgrid's places with the devices of the lab.",
            )
        if place.acquired and place.acquired != self._holder:
            await self._take_over(session, place.acquired)
        if not place.acquired:
            exported = {
                cls_entry.data.get("cls")
                for exporter, groups in session.resources.items()
                for group, entries in groups.items()
                for name, cls_entry in entries.items()
                if cls_entry.data.get("cls") and place.hasmatch((exporter, group, cls_entry.cls, name))
            }
            if missing := self._needed - exported:
                return infrastructure_failure(
                    f"no exporter offers {', '.join(sorted(missing))} for {self._place}", advice=start_exporter
                )
            try:
                await session.stub.AcquirePlace(pb2.AcquirePlaceRequest(placename=self._place))
            except grpc.aio.AioRpcError as error:
                return infrastructure_failure(
                    f"labgrid does not give {self._place}: {error.details()}",
                    advice=_SEE_PLACE.format(place=self._place),
                )
            await session.sync_with_coordinator()
        if self._needed - {resource.cls for resource in acquired_resources(session, place)}:
            return infrastructure_failure(f"the resources of {self._place} are not acquired yet", advice=start_exporter)
        return None

    async def _take_over(self, session: _Session, other: str) -> None:
        """Release the place of a dead session of this lab. Raises DeviceFailure if a person holds the place.

        The lease of this session is live, so any other session of the lab on this device is dead.
        """
        if not is_session_of(self._lab, other):
            raise infrastructure_failure(
                f"{self._place} is held in labgrid by {other}",
                advice=f"Release it: labgrid-client -p {self._place} release --kick. Or quarantine the device.",
            )
        log.warning("releasing a previous holder", place=self._place, holder=other)
        await release(session, self._place, other)

    async def _monitor_place(self) -> None:
        """Monitor the place until it is lost; acquire it again after a restart of the coordinator."""
        while True:
            session = self._session
            if session is None:
                return
            if session.ended:
                if not await self._reconnect():
                    return
                continue
            place = session.places.get(self._place)
            owner = place.acquired if place else None
            if owner != self._holder:
                holder = f"held by {owner}" if owner else "not held"
                self._mark_lost(f"labgrid place {self._place} was taken away: {holder}")
                return
            await session.wait_change(3600)

    async def _reconnect(self) -> bool:
        """Connect again and acquire the place again; return False after RECONNECT_S without success."""
        deadline = time.monotonic() + RECONNECT_S
        log.warning("connection to the coordinator ended; reconnecting", place=self._place)
        while time.monotonic() < deadline:
            try:
                session = await connect(self._address, self._holder)
                place = session.places.get(self._place)
                if place is not None and not place.acquired:
                    await session.stub.AcquirePlace(pb2.AcquirePlaceRequest(placename=self._place))
                    await session.sync_with_coordinator()
                if place is not None:
                    self._session = session
                    return True
                await session.close_quietly()
            except (grpc.aio.AioRpcError, DeviceFailure) as error:
                log.warning("coordinator does not answer yet", error=repr(error))
            await asyncio.sleep(1.0)  # no event reports that a coordinator is back
        self._mark_lost(f"the labgrid coordinator did not answer for {RECONNECT_S:.0f} s")
        return False

    def _mark_lost(self, reason: str) -> None:
        log.error("place lost", reason=reason)
        self._lost = reason
        self._notify()

    async def _stop(self) -> None:
        if self._monitor:
            self._monitor.cancel()
        session, self._session = self._session, None
        if session is None:
            return
        if not session.ended:
            await asyncio.wait_for(release(session, self._place, self._holder), 10)
            await session.close_quietly()
