"""What the bench provides and refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from wqlab_bench import bench as module
from wqlab_bench.bench import Bench, BenchError, Settings
from wqlab_bench.device_types import load_device_types
from wqlab_bench.qemu import Golden, UnsupportedTypeError
from wqlab_contracts import bench_addresses
from wqlab_contracts.bench_addresses import Published

TYPES = load_device_types(Path(__file__).resolve().parents[3])
CHOSEN = ("tiny", "instrumented-tiny", "instrumented-biglittle")


def published(folder: Path) -> Published:
    async def start() -> Published:
        golden = {"x86_64": Golden(Path("/kernel"), Path("/rootfs"), "key")}
        bench = Bench({name: TYPES[name] for name in CHOSEN}, Settings(folder, golden, folder, "local", "tcg", 1))
        try:
            return await bench.start()
        finally:
            await bench.stop()

    (folder / "bench").mkdir()
    return asyncio.run(start())


def test_instrumented_devices_are_not_on_the_bench(tmp_path: Path) -> None:
    found = published(tmp_path)
    assert set(found.devices) == {"tiny-1", "tiny-2"}
    assert set(found.refused) == {"instrumented-biglittle"}
    assert "run `make arm64`" in found.refused["instrumented-biglittle"]


def test_instrumented_types_are_refused_without_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("wqlab_bench.bench.qemu.describe_emulator", lambda accelerator: "")
    monkeypatch.setattr("wqlab_bench.qemu.confinement.is_available", lambda: True)
    found = published(tmp_path)
    assert "install package qemu-system-x86" in found.refused["instrumented-tiny"]
    assert "tiny" not in found.refused


def test_modelled_type_is_published_when_its_emulator_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = ["modelled-tiny: not built", "modelled-tiny: not built", None]
    monkeypatch.setattr(module, "MODEL_CHECK_S", 0.01)

    def check(device_type: object, cache: Path) -> None:
        if reason := reasons.pop(0):
            raise UnsupportedTypeError(reason)

    async def scenario() -> None:
        monkeypatch.setattr(module.support, "check", check)
        golden = {"x86_64": Golden(Path("/kernel"), Path("/rootfs"), "key")}
        types = {"modelled-tiny": TYPES["modelled-tiny"]}
        bench = Bench(types, Settings(tmp_path, golden, tmp_path, "local", "tcg", 1))
        assert (await bench.start()).refused == {"modelled-tiny": "modelled-tiny: not built"}
        try:
            assert bench._watch is not None
            await bench._watch
            assert bench_addresses.read(tmp_path).refused == {}
        finally:
            await bench.stop()

    (tmp_path / "bench").mkdir()
    asyncio.run(scenario())
    assert not reasons


def test_devices_are_reached_on_the_published_host_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        golden = {"x86_64": Golden(Path("/kernel"), Path("/rootfs"), "key")}
        settings = Settings(tmp_path, golden, tmp_path, "local", "tcg", 1, host="127.0.0.2")
        bench = Bench({"tiny": TYPES["tiny"]}, settings)
        device = (await bench.start()).devices["tiny-1"]
        try:
            host, port = device.console.split(":")
            assert host == "127.0.0.2"
            assert device.power_url.startswith("http://127.0.0.2:")
            for each in (int(port), device.ssh_port):
                _, writer = await asyncio.open_connection(host, each)
                writer.close()
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.open_connection("127.0.0.1", each)
        finally:
            await bench.stop()

    (tmp_path / "bench").mkdir()
    asyncio.run(scenario())


def test_unknown_host_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"--host nowhere\.invalid: .*; give a name or an IPv4 address"):
        Bench({}, Settings(tmp_path, {}, tmp_path, "local", "tcg", 1, host="nowhere.invalid"))
