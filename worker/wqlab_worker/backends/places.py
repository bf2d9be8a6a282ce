"""Keeps labgrid's places equal to the units of a lab: one place per unit, matching the resources exported for it.

    python -m wqlab_worker.backends.places --coordinator HOST:PORT --lab LAB UNIT...

A place made here carries the tag `wqlab=<lab>`; places that people made are left alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator

import grpc
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb
from labgrid.remote.generated import labgrid_coordinator_pb2_grpc

OWNER_TAG = "wqlab"
_TIMEOUT_S = 15.0


class PlacesError(Exception):
    """The coordinator cannot be reached or refuses; the text names it and has its words."""


def sync(coordinator: str, lab: str, units: Collection[str]) -> Iterator[str]:
    """Creates what is missing, corrects matches, removes what is stale; yields one line about every change.

    A stale place that somebody holds is left until they release it. Raises PlacesError.
    """
    try:
        with grpc.insecure_channel(coordinator) as channel:
            grpc.channel_ready_future(channel).result(timeout=_TIMEOUT_S)
            yield from _sync(labgrid_coordinator_pb2_grpc.CoordinatorStub(channel), lab, units)
    except grpc.FutureTimeoutError as error:
        raise PlacesError(f"no labgrid coordinator answers at {coordinator}") from error
    except grpc.RpcError as error:
        raise PlacesError(f"labgrid coordinator at {coordinator}: {error.details()}") from error


def _sync(stub: labgrid_coordinator_pb2_grpc.CoordinatorStub, lab: str, units: Collection[str]) -> Iterator[str]:
    places = {place.name: place for place in stub.GetPlaces(pb.GetPlacesRequest(), timeout=_TIMEOUT_S).places}
    for unit in units:
        if unit not in places:
            stub.AddPlace(pb.AddPlaceRequest(name=unit), timeout=_TIMEOUT_S)
            yield f"{unit}: created"
        yield from _correct(stub, lab, unit, places.get(unit) or pb.Place(name=unit))
    for name, place in places.items():
        if name in units or place.tags.get(OWNER_TAG) != lab:
            continue
        if place.HasField("acquired") and place.acquired:
            yield f"{name}: no unit of lab {lab} any more, but held by {place.acquired}; left"
        else:
            stub.DeletePlace(pb.DeletePlaceRequest(name=name), timeout=_TIMEOUT_S)
            yield f"{name}: removed"


def _correct(stub: labgrid_coordinator_pb2_grpc.CoordinatorStub, lab: str, unit: str, place: pb.Place) -> Iterator[str]:
    """The place's one match and its tag."""
    wanted = f"{lab}/{unit}/*"
    patterns = {f"{match.exporter}/{match.group}/{match.cls}" for match in place.matches}
    for pattern in patterns - {wanted}:
        stub.DeletePlaceMatch(pb.DeletePlaceMatchRequest(placename=unit, pattern=pattern), timeout=_TIMEOUT_S)
        yield f"{unit}: no longer matches {pattern}"
    if wanted not in patterns:
        stub.AddPlaceMatch(pb.AddPlaceMatchRequest(placename=unit, pattern=wanted), timeout=_TIMEOUT_S)
        yield f"{unit}: matches {wanted}"
    if place.tags.get(OWNER_TAG) != lab:
        stub.SetPlaceTags(pb.SetPlaceTagsRequest(placename=unit, tags={OWNER_TAG: lab}), timeout=_TIMEOUT_S)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make labgrid's places equal to the units of a lab.")
    parser.add_argument("--coordinator", required=True, metavar="HOST:PORT")
    parser.add_argument("--lab", required=True)
    parser.add_argument("units", nargs="*", metavar="UNIT")
    arguments = parser.parse_args()
    try:
        for line in sync(arguments.coordinator, arguments.lab, arguments.units):
            print(line)
    except PlacesError as error:
        sys.exit(f"places: {error}")


if __name__ == "__main__":
    main()
