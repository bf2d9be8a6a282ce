"""The HTTP API of the bench, also with labgrid's power model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from labgrid.driver.power import rest

from wqlab_bench.capacity import Slots
from wqlab_bench.control_api import ControlApi
from wqlab_bench.emulated_device import EmulatedDevice


def serving(devices: dict[str, EmulatedDevice], scenario: Callable[[str, aiohttp.ClientSession], Any]) -> None:
    async def run() -> None:
        runner = aiohttp.web.AppRunner(ControlApi(devices, dict(enumerate(devices, start=1))).application())
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        try:
            async with aiohttp.ClientSession() as session:
                await scenario(f"http://127.0.0.1:{port}", session)
        finally:
            await runner.cleanup()
            for device in devices.values():
                await device.close()

    asyncio.run(run())


def test_labgrid_power_model_switches_devices(make_device: Callable[..., EmulatedDevice]) -> None:
    slots = Slots(2)
    devices = {name: make_device(name, slots) for name in ("a", "b")}

    async def scenario(url: str, _: aiohttp.ClientSession) -> None:
        outlet = f"{url}/power/{{index}}"
        assert await asyncio.to_thread(rest.power_get, outlet, None, 2) is False
        await asyncio.to_thread(rest.power_set, outlet, None, 2, True)
        assert await asyncio.to_thread(rest.power_get, outlet, None, 2) is True
        assert await asyncio.to_thread(rest.power_get, outlet, None, 1) is False
        assert devices["b"].status()["running"]
        await asyncio.to_thread(rest.power_set, outlet, None, 2, False)
        assert await asyncio.to_thread(rest.power_get, outlet, None, 2) is False

    serving(devices, scenario)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("PUT", "/power/1", "on", 400, "send 1 to switch on"),
        ("GET", "/power/7", "", 404, "there is no outlet 7"),
        ("GET", "/power/x", "", 404, "there is no outlet x"),
        ("GET", "/devices/x", "", 404, "there is no device x; the devices are a"),
        ("PUT", "/devices/a/faults", '{"faults": [{"kind": "gremlin"}]}', 422, "gremlin"),
        ("PUT", "/devices/a/faults", "no JSON", 422, "JSON"),
        ("PUT", "/power/1", "1", 500, "could not set up host forwarding rule"),
    ],
)
def test_invalid_requests_are_explained(
    make_device: Callable[..., EmulatedDevice], method: str, path: str, body: str, status: int, text: str
) -> None:
    async def scenario(url: str, session: aiohttp.ClientSession) -> None:
        async with session.request(method, url + path, data=body) as answer:
            assert answer.status == status
            assert text in await answer.text()

    serving({"a": make_device("a", None, "--refuse")}, scenario)


def test_power_on_beyond_capacity_gets_503(make_device: Callable[..., EmulatedDevice]) -> None:
    slots = Slots(1, wait_s=0.1)

    async def scenario(url: str, session: aiohttp.ClientSession) -> None:
        await session.put(f"{url}/power/1", data="1")
        async with session.put(f"{url}/power/2", data="1") as answer:
            assert answer.status == 503
            assert "are running (a)" in await answer.text()
        async with session.get(f"{url}/power/2") as answer:
            assert await answer.text() == "0"

    serving({name: make_device(name, slots) for name in ("a", "b")}, scenario)


def test_faults_are_replaced_and_returned(make_device: Callable[..., EmulatedDevice]) -> None:
    async def scenario(url: str, session: aiohttp.ClientSession) -> None:
        requested = {"faults": [{"kind": "hang", "when": "login:", "once": True}]}
        async with session.put(f"{url}/devices/a/faults", json=requested) as answer:
            assert answer.status == 200
        async with session.get(f"{url}/devices/a/faults") as answer:
            [fault] = (await answer.json())["faults"]
            assert fault["kind"] == "hang"
            assert fault["when"] == "login:"
        async with session.get(f"{url}/devices") as answer:
            assert (await answer.json())["a"]["faults"] == [fault]

    serving({"a": make_device("a")}, scenario)
