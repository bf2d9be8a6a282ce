"""Report a LAVA server's devices and queue to the lab's server, and cancel orphaned jobs there."""

from __future__ import annotations

from collections.abc import Callable, Collection

from wqlab_contracts.messages import LavaDevice, LavaPool

from .job_names import cancel_orphaned_jobs
from .lava_client import Lava, LavaError


def read_pool(url: str, token: str, lab: str, live: Callable[[], Collection[tuple[int, int]]]) -> LavaPool:
    """Return the server's devices and queue, after cancelling orphaned jobs (`job_names.cancel_orphaned_jobs`).

    If LAVA does not answer, the returned pool has only `problem`.
    """
    lava = Lava(url, token)
    try:
        version = lava.version()  # first: an unreachable server costs only this short timeout
        cancel_orphaned_jobs(lava, lab, live)
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
