"""Holding a labgrid place: acquire, notice when it is lost, release. The coordinator's own client, in one thread.

The lease in PostgreSQL decides who uses a device; the place keeps people with `labgrid-client` out. A coordinator that
restarts forgets its locks: a session whose lease lives takes its place again, unless somebody else has it by then.
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

from ..measure.device import DeviceFailure
from .session_messages import Held, is_session_of
from .verify import infrastructure

log = structlog.get_logger()

CONNECT_S = 10.0
ACQUIRE_S = 30.0
RECONNECT_S = 60.0
"""How long a coordinator may be away before its sessions give up: a supervisor restarts it in seconds."""
POWER = "NetworkPowerPort"
NEEDED = frozenset({POWER, "NetworkSerialPort", "NetworkService"})
"""Resource classes of a place; a device that is switched by commands of its own has no power port."""

_START_COORDINATOR = (
    "The device was not touched. Start the labgrid coordinator, and see that the worker's host reaches it at {address}."
)
_START_EXPORTER = (
    "The device was not touched. Start the labgrid exporter of the device's host, and see that its configuration has a "
    "group {place} with these resources, and `labgrid-client -x {address} resources` lists them."
)
_SEE_PLACE = (
    "The device was not touched. `labgrid-client -p {place} show` and `labgrid-client reservations` tell who has it."
)


_CHANNEL_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    # A coordinator that vanished without a word is noticed in seconds.
    ("grpc.keepalive_time_ms", 7500),
    ("grpc.keepalive_timeout_ms", 10000),
    ("grpc.http2.ping_timeout_ms", 10000),
    ("grpc.http2.max_pings_without_data", 0),
)


@dataclass(frozen=True)
class ExportedResource:
    cls: str
    name: str
    args: dict[str, Any]
    extra: dict[str, Any]


class _Session(ClientSession):  # type: ignore[misc]
    """A session named `holder`; wakes `changed` at every update of a place or resource, and when the stream ends."""

    def __init__(self, address: str, holder: str) -> None:
        super().__init__(address, asyncio.get_running_loop())
        self._host, _, self._user = holder.partition("/")
        self.changed = asyncio.Event()
        # The coordinator knows its clients by TCP connection, and gRPC shares connections within a process.
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
        try:
            await asyncio.wait_for(self.changed.wait(), timeout_s)
        except TimeoutError:
            return
        finally:
            self.changed.clear()

    @property
    def gone(self) -> bool:
        return bool(self.stopping.is_set())

    async def close_quietly(self) -> None:
        try:
            await asyncio.wait_for(self.stop(), 5)
        except (TimeoutError, grpc.aio.AioRpcError):
            log.warning("coordinator session did not end cleanly")
        await self.close()


async def connect(address: str, holder: str) -> _Session:
    """A session named `holder`. Raises DeviceFailure when the coordinator does not answer."""
    session = _Session(address, holder)
    try:
        await asyncio.wait_for(session.start(), CONNECT_S)
    except (TimeoutError, ServerError, grpc.aio.AioRpcError) as error:
        await session.close()
        raise infrastructure(
            f"no answer from the labgrid coordinator at {address}: {error!r}",
            advice=_START_COORDINATOR.format(address=address),
        ) from error
    return session


def acquired_resources(session: ClientSession, place: Any) -> list[ExportedResource]:
    found = []
    for exporter, group, cls, name in place.acquired_resources:
        entry = session.resources.get(exporter, {}).get(group, {}).get(name)
        if entry is not None and entry.data.get("cls"):
            found.append(ExportedResource(cls, name, entry.args, entry.extra))
    return found


async def release(session: ClientSession, place: str, holder: str) -> None:
    """Compare-and-release: nothing happens unless `holder` has it."""
    await session.stub.ReleasePlace(pb2.ReleasePlaceRequest(placename=place, fromuser=holder))
    await session.sync_with_coordinator()


async def held(session: ClientSession, lab: str) -> list[Held]:
    return [
        Held(place=name, holder=place.acquired)
        for name, place in session.places.items()
        if place.acquired and is_session_of(lab, place.acquired)
    ]


class PlaceHold:
    """Context manager that holds one place; `lost()` says why it is not ours any more.

    `ring` is called when that changes. Everything labgrid and gRPC runs in this object's own thread and loop.
    """

    def __init__(
        self,
        address: str,
        lab: str,
        place: str,
        holder: str,
        ring: Callable[[], None],
        *,
        needed: frozenset[str] = NEEDED,
    ) -> None:
        self._address = address
        self._lab = lab
        self._place = place
        self._holder = holder
        self._ring = ring
        self._needed = needed
        self._lost: str | None = None
        self._session: _Session | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="coordinator", daemon=True)
        self._keeper: asyncio.Task[None] | None = None
        self.resources: list[ExportedResource] = []

    def lost(self) -> str | None:
        return self._lost

    def acquire(self) -> None:
        """Raises DeviceFailure when a person has the place, or its exporter or the coordinator is not there."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result()

    def release(self) -> None:
        """Lets the place go, if it is still ours; never raises."""
        if not self._thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=20)
        except Exception as error:
            log.error("place not released; the reaper will", place=self._place, error=repr(error))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)

    async def _begin(self) -> None:
        self._session = session = await connect(self._address, self._holder)
        deadline = time.monotonic() + ACQUIRE_S
        while True:
            missing = await self._try_acquire(session)
            if missing is None:
                break
            if session.gone:
                raise infrastructure(
                    f"the labgrid coordinator at {self._address} went away: {missing.failure.summary}",
                    advice=_START_COORDINATOR.format(address=self._address),
                )
            if time.monotonic() >= deadline:
                raise missing
            await session.wait_change(2.0)
        self.resources = acquired_resources(session, session.places[self._place])
        self._keeper = asyncio.create_task(self._keep())

    async def _try_acquire(self, session: _Session) -> DeviceFailure | None:
        """None when the place is ours, with all its resources; else what is missing."""
        start_exporter = _START_EXPORTER.format(place=self._place, address=self._address)
        place = session.places.get(self._place)
        if place is None:
            raise infrastructure(
                f"labgrid has no place {self._place}", advice="Synchronise the places with the device types."
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
            if lacking := self._needed - exported:
                return infrastructure(
                    f"no exporter offers {', '.join(sorted(lacking))} for {self._place}", advice=start_exporter
                )
            try:
                await session.stub.AcquirePlace(pb2.AcquirePlaceRequest(placename=self._place))
            except grpc.aio.AioRpcError as error:
                return infrastructure(
                    f"labgrid does not give {self._place}: {error.details()}",
                    advice=_SEE_PLACE.format(place=self._place),
                )
            await session.sync_with_coordinator()
        if self._needed - {resource.cls for resource in acquired_resources(session, place)}:
            return infrastructure(f"the resources of {self._place} are not acquired yet", advice=start_exporter)
        return None

    async def _take_over(self, session: _Session, other: str) -> None:
        """Our lease is live, so another session of this lab is dead; a person is not."""
        if not is_session_of(self._lab, other):
            raise infrastructure(
                f"{self._place} is held in labgrid by {other}",
                advice=f"Release it: labgrid-client -p {self._place} release --kick. Or quarantine the device.",
            )
        log.warning("releasing a previous holder", place=self._place, holder=other)
        await release(session, self._place, other)

    async def _keep(self) -> None:
        """Watches the place; after a coordinator's restart takes it again."""
        while True:
            session = self._session
            if session is None:
                return
            if session.gone:
                if not await self._come_back():
                    return
                continue
            place = session.places.get(self._place)
            owner = place.acquired if place else None
            if owner != self._holder:
                self._lose(f"labgrid place {self._place} was taken away: held by {owner or 'nobody'}")
                return
            await session.wait_change(3600)

    async def _come_back(self) -> bool:
        deadline = time.monotonic() + RECONNECT_S
        log.warning("coordinator gone; coming back", place=self._place)
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
                log.warning("coordinator not back yet", error=repr(error))
            await asyncio.sleep(1.0)  # nothing announces a coordinator's return
        self._lose(f"the labgrid coordinator stayed away for {RECONNECT_S:.0f} s")
        return False

    def _lose(self, reason: str) -> None:
        log.error("place lost", reason=reason)
        self._lost = reason
        self._ring()

    async def _end(self) -> None:
        if self._keeper:
            self._keeper.cancel()
        session, self._session = self._session, None
        if session is None:
            return
        if not session.gone:
            await asyncio.wait_for(release(session, self._place, self._holder), 10)
            await session.close_quietly()
