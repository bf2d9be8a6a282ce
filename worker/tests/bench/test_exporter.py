"""Exporter configuration and places, with labgrid's real coordinator and exporter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb
from labgrid.remote.generated import labgrid_coordinator_pb2_grpc

from wqlab_bench import exporter
from wqlab_contracts import bench_addresses
from wqlab_contracts.bench_addresses import Published, PublishedDevice
from wqlab_worker.backends import labgrid_places

from .conftest import free_port

BIN = Path(sys.executable).parent


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    (tmp_path / "coordinator").mkdir()
    process = subprocess.Popen(
        [BIN / "labgrid-coordinator", "-l", address], cwd=tmp_path / "coordinator", stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield address
    finally:
        process.kill()
        process.wait()


def device(index: int) -> PublishedDevice:
    return PublishedDevice(
        index=index, console=f"127.0.0.1:{20000 + index}", ssh_port=30000 + index, power_url="", log="", device_type="t"
    )


def current(address: str) -> dict[str, list[str]]:
    with grpc.insecure_channel(address) as channel:
        answer = labgrid_coordinator_pb2_grpc.CoordinatorStub(channel).GetPlaces(pb.GetPlacesRequest())
    return {p.name: [f"{m.exporter}/{m.group}/{m.cls}" for m in p.matches] for p in answer.places}


@pytest.mark.integration
def test_places_follow_devices_and_foreign_places_stay(coordinator: str) -> None:
    assert list(labgrid_places.sync(coordinator, "local", ["a", "b"])) == [
        "a: created", "a: matches local/a/*", "b: created", "b: matches local/b/*",
    ]  # fmt: skip
    assert list(labgrid_places.sync(coordinator, "local", ["a", "b"])) == []
    with grpc.insecure_channel(coordinator) as channel:
        stub = labgrid_coordinator_pb2_grpc.CoordinatorStub(channel)
        stub.AddPlace(pb.AddPlaceRequest(name="someones"))
        stub.AddPlaceMatch(pb.AddPlaceMatchRequest(placename="a", pattern="old/a/*"))
    assert set(labgrid_places.sync(coordinator, "local", ["a", "c"])) == {
        "a: no longer matches old/a/*", "b: removed", "c: created", "c: matches local/c/*",
    }  # fmt: skip
    assert current(coordinator) == {"a": ["local/a/*"], "c": ["local/c/*"], "someones": []}


@pytest.mark.integration
def test_missing_coordinator_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labgrid_places, "_TIMEOUT_S", 0.5)
    with pytest.raises(labgrid_places.PlacesError, match=r"no labgrid coordinator answers at 127\.0\.0\.1:1"):
        list(labgrid_places.sync("127.0.0.1:1", "local", []))


@pytest.mark.integration
def test_exporter_accepts_configuration_and_places_match(coordinator: str, tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    place = Published(
        http="http://127.0.0.1:5", capacity=1, accelerator="tcg", devices={"u-1": device(1), "u-2": device(2)}
    )
    bench_addresses.write(tmp_path, place)
    configuration = tmp_path / "exporter.yaml"
    exporter.write(tmp_path, configuration)
    list(labgrid_places.sync(coordinator, "local", ["u-1", "u-2"]))
    process = subprocess.Popen(
        [BIN / "labgrid-exporter", "-c", coordinator, "-n", "local", "--hostname", "127.0.0.1", configuration],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    shown = ""
    try:
        while shown.count("NetworkSerialPort") < 2:
            with suppress(subprocess.CalledProcessError):
                command = [BIN / "labgrid-client", "-x", coordinator, "-v", "resources"]
                shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        show = [BIN / "labgrid-client", "-x", coordinator, "-p", "u-2", "show"]
        details = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    finally:
        process.kill()
        process.wait()
    assert "Matching resource 'NetworkPowerPort' (local/u-2/" in details
    assert "'index': 2" in details
    assert "'host': 'http://127.0.0.1:5/power/{index}'" in details
    assert "'port': 20002" in details
    assert "'port': 30002" in details


def test_export_without_bench_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(exporter.ExporterError, match="no bench is running"):
        exporter.write(tmp_path, tmp_path / "out.yaml")
