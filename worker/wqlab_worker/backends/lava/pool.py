"""A LAVA server as its lab's worker sees it now and then: its devices, and our jobs that nobody waits for."""

from __future__ import annotations

from collections.abc import Callable, Collection

from wqlab_contracts.messages import LavaDevice, LavaPool

from .client import Lava, LavaError
from .job_names import cancel_left


def look(url: str, token: str, lab: str, live: Callable[[], Collection[tuple[int, int]]]) -> LavaPool:
    """Also cancels what dead sessions left there (`jobs.cancel_left`). A LAVA that does not answer is what is told."""
    lava = Lava(url, token)
    try:
        version = lava.version()  # first, and quick: a dead server costs no more than this
        cancel_left(lava, lab, live)
        devices = {
            device.hostname: LavaDevice(device_type=device.device_type, state=device.state, health=device.health)
            for device in lava.devices()
            if device.health != "Retired"
        }
        return LavaPool(url=lava.url, version=version, devices=devices, queued=dict(lava.queued()))
    except LavaError as error:
        return LavaPool(url=lava.url, problem=str(error)[:500])
    finally:
        lava.close()
