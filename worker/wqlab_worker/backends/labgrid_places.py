"""Synchronise labgrid's places with the devices of a lab: one place per device, matching its exported resources.

    python -m wqlab_worker.backends.labgrid_places --coordinator HOST:PORT --lab LAB DEVICE...

Places created here carry the tag `wqlab=<lab>`. Places that people created are not touched.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import grpc
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb
from labgrid.remote.generated import labgrid_coordinator_pb2_grpc

OWNER_TAG = "wqlab"
_TIMEOUT_S = 15.0


class PlacesError(Exception):
    """The coordinator cannot be reached or refuses a request; the text names it and quotes its error."""


def sync(coordinator: str, lab: str, devices: Collection[str]) -> Iterator[str]:
    """Create missing places, correct matches, remove stale places; yield one line for each change.

    A stale place that is acquired is left until its holder releases it. Raises PlacesError.
    """
    try:
        with grpc.insecure_channel(coordinator) as channel:
            grpc.channel_ready_future(channel).result(timeout=_TIMEOUT_S)
            yield from _sync(labgrid_coordinator_pb2_grpc.CoordinatorStub(channel), lab, devices)
    except grpc.FutureTimeoutError as error:
        raise PlacesError(f"no labgrid coordinator answers at {coordinator}") from error
    except grpc.RpcError as error:
        raise PlacesError(f"labgrid coordinator at {coordinator}: {error.details()}") from error


def _sync(stub: labgrid_coordinator_pb2_grpc.CoordinatorStub, lab: str, devices: Collection[str]) -> Iterator[str]:
    places = {place.name: place for place in stub.GetPlaces(pb.GetPlacesRequest(), timeout=_TIMEOUT_S).places}
    for device in devices:
        if device not in places:
            with _another_may_add():
                stub.AddPlace(pb.AddPlaceRequest(name=device), timeout=_TIMEOUT_S)
                yield f"{device}: created"
        yield from _correct_place(stub, lab, device, places.get(device) or pb.Place(name=device))
    for name, place in places.items():
        if name in devices or place.tags.get(OWNER_TAG) != lab:
            continue
        if place.HasField("acquired") and place.acquired:
            yield f"{name}: no longer a device of lab {lab}, but held by {place.acquired}; not removed"
        else:
            stub.DeletePlace(pb.DeletePlaceRequest(name=name), timeout=_TIMEOUT_S)
            yield f"{name}: removed"


@contextmanager
def _another_may_add() -> Iterator[None]:
    """Ignore that another process which synchronises the same places was faster."""
    try:
        yield
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise


def _correct_place(
    stub: labgrid_coordinator_pb2_grpc.CoordinatorStub, lab: str, device: str, place: pb.Place
) -> Iterator[str]:
    """Give the place its one match and its tag."""
    expected = f"{lab}/{device}/*"
    patterns = {f"{match.exporter}/{match.group}/{match.cls}" for match in place.matches}
    for pattern in patterns - {expected}:
        stub.DeletePlaceMatch(pb.DeletePlaceMatchRequest(placename=device, pattern=pattern), timeout=_TIMEOUT_S)
        yield f"{device}: no longer matches {pattern}"
    if expected not in patterns:
        with _another_may_add():
            stub.AddPlaceMatch(pb.AddPlaceMatchRequest(placename=device, pattern=expected), timeout=_TIMEOUT_S)
            yield f"{device}: matches {expected}"
    if place.tags.get(OWNER_TAG) != lab:
        stub.SetPlaceTags(pb.SetPlaceTagsRequest(placename=device, tags={OWNER_TAG: lab}), timeout=_TIMEOUT_S)


def main() -> None:
    parser = argparse.ArgumentParser(description="Synchronise labgrid's places with the devices of a lab.")
    parser.add_argument("--coordinator", required=True, metavar="HOST:PORT")
    parser.add_argument("--lab", required=True)
    parser.add_argument("devices", nargs="*", metavar="DEVICE")
    arguments = parser.parse_args()
    try:
        for line in sync(arguments.coordinator, arguments.lab, arguments.devices):
            print(line)
    except PlacesError as error:
        sys.exit(f"places: {error}")


if __name__ == "__main__":
    main()
