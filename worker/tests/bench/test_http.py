"""The HTTP interface, used by labgrid's own power model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from labgrid.driver.power import rest

from wqlab_bench.capacity import Slots
from wqlab_bench.control_api import Interface
from wqlab_bench.emulated_device import Device


def serving(devices: dict[str, Device], scenario: Callable[[str, aiohttp.ClientSession], Any]) -> None:
    async def run() -> None:
        runner = aiohttp.web.AppRunner(Interface(devices, dict(enumerate(devices, start=1))).application())
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


def test_labgrids_power_model_switches_devices(make_device: Callable[..., Device]) -> None:
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
        ("PUT", "/power/1", "on", 400, "write 1 to switch on"),
        ("GET", "/power/7", "", 404, "no outlet 7"),
        ("GET", "/power/x", "", 404, "no outlet x"),
        ("GET", "/devices/x", "", 404, "no device x; there are a"),
        ("PUT", "/devices/a/faults", '{"faults": [{"kind": "gremlin"}]}', 422, "gremlin"),
        ("PUT", "/devices/a/faults", "no JSON", 422, "JSON"),
        ("PUT", "/power/1", "1", 500, "could not set up host forwarding rule"),
    ],
)
def test_what_cannot_be_done_is_said(
    make_device: Callable[..., Device], method: str, path: str, body: str, status: int, text: str
) -> None:
    async def scenario(url: str, session: aiohttp.ClientSession) -> None:
        async with session.request(method, url + path, data=body) as answer:
            assert answer.status == status
            assert text in await answer.text()

    serving({"a": make_device("a", None, "--refuse")}, scenario)


def test_a_power_on_beyond_the_capacity_is_refused_with_503(make_device: Callable[..., Device]) -> None:
    slots = Slots(1, wait_s=0.1)

    async def scenario(url: str, session: aiohttp.ClientSession) -> None:
        await session.put(f"{url}/power/1", data="1")
        async with session.put(f"{url}/power/2", data="1") as answer:
            assert answer.status == 503
            assert "are running (a)" in await answer.text()
        async with session.get(f"{url}/power/2") as answer:
            assert await answer.text() == "0"

    serving({name: make_device(name, slots) for name in ("a", "b")}, scenario)


def test_faults_are_replaced_and_read_back(make_device: Callable[..., Device]) -> None:
    async def scenario(url: str, session: aiohttp.ClientSession) -> None:
        wanted = {"faults": [{"kind": "hang", "when": "login:", "once": True}]}
        async with session.put(f"{url}/devices/a/faults", json=wanted) as answer:
            assert answer.status == 200
        async with session.get(f"{url}/devices/a/faults") as answer:
            [fault] = (await answer.json())["faults"]
            assert fault["kind"] == "hang"
            assert fault["when"] == "login:"
        async with session.get(f"{url}/devices") as answer:
            assert (await answer.json())["a"]["faults"] == [fault]

    serving({"a": make_device("a")}, scenario)
