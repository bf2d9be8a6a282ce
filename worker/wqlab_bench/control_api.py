"""HTTP API of the bench: outlets for labgrid's power model `rest`, and faults for tests.

GET, PUT /power/<index>          `1` or `0`
GET      /devices, /devices/<name>
GET, PUT /devices/<name>/faults   {"faults": [...]}, see faults.Fault
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from .capacity import Busy
from .emulated_device import EmulatedDevice
from .faults import FaultList
from .machine import MachineError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ControlApi:
    """The HTTP API for `devices` (by name); `indices` is outlet number -> device name."""

    def __init__(self, devices: dict[str, EmulatedDevice], indices: dict[int, str]) -> None:
        self._devices = devices
        self._indices = indices

    def application(self) -> web.Application:
        app = web.Application(middlewares=[_handle_errors])
        app.router.add_get("/power/{index}", self._get_power)
        app.router.add_put("/power/{index}", self._put_power)
        app.router.add_get("/devices", self._get_devices)
        app.router.add_get("/devices/{name}", self._get_device)
        app.router.add_get("/devices/{name}/faults", self._get_faults)
        app.router.add_put("/devices/{name}/faults", self._put_faults)
        return app

    async def _get_power(self, request: web.Request) -> web.Response:
        return web.Response(text="1" if self._device_of_outlet(request).outlet else "0")

    async def _put_power(self, request: web.Request) -> web.Response:
        device = self._device_of_outlet(request)
        body = (await request.text()).strip()
        if body not in ("0", "1"):
            raise web.HTTPBadRequest(text=f"the body is {body!r}; send 1 to switch on or 0 to switch off\n")
        await device.switch(body == "1")
        return web.Response(text="1" if device.outlet else "0")

    async def _get_devices(self, _: web.Request) -> web.Response:
        return web.json_response({name: device.status() for name, device in self._devices.items()})

    async def _get_device(self, request: web.Request) -> web.Response:
        return web.json_response(self._device(request).status())

    async def _get_faults(self, request: web.Request) -> web.Response:
        return _faults(self._device(request))

    async def _put_faults(self, request: web.Request) -> web.Response:
        device = self._device(request)
        requested = FaultList.model_validate_json(await request.read())
        await device.set_faults(requested.faults)
        return _faults(device)

    def _device(self, request: web.Request) -> EmulatedDevice:
        name = request.match_info["name"]
        if name not in self._devices:
            raise web.HTTPNotFound(text=f"there is no device {name}; the devices are {', '.join(self._devices)}\n")
        return self._devices[name]

    def _device_of_outlet(self, request: web.Request) -> EmulatedDevice:
        index = request.match_info["index"]
        name = self._indices.get(int(index)) if index.isdecimal() else None
        if name is None:
            raise web.HTTPNotFound(text=f"there is no outlet {index}\n")
        return self._devices[name]


def _faults(device: EmulatedDevice) -> web.Response:
    body: dict[str, Any] = {"faults": [fault.model_dump(mode="json") for fault in device.faults]}
    return web.json_response(body)


@web.middleware
async def _handle_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer known errors with a matching HTTP status and their message."""
    try:
        return await handler(request)
    except Busy as error:
        return web.Response(status=503, text=f"{error}\n", headers={"Retry-After": "10"})
    except MachineError as error:
        return web.Response(status=500, text=f"{error}\n")
    except ValidationError as error:
        return web.Response(status=422, text=f"{error}\n")
