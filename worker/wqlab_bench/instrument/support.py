"""Find out whether this machine can run the devices of an instrumented type."""

from __future__ import annotations

from pathlib import Path

from wqlab_contracts.specs import DeviceType

from .. import topology
from ..model.build_qemu import find_program
from ..qemu import UnsupportedTypeError
from .build_plugin import InstrumentUnsupported, plugin


def check(device_type: DeviceType, cache: Path) -> None:
    """Build the plugin for the type's emulator, unless it is cached.

    Raises UnsupportedTypeError, which names the type and the reason, or the package to install or command to type.
    """
    emulation = device_type.emulation
    if emulation is None or not device_type.instrumented:
        raise UnsupportedTypeError(f"{device_type.name} is not an instrumented device type")
    try:
        topology.check(device_type.topology, emulation.memory_mib, device_type.arch)
        plugin(cache, device_type.arch, find_program(cache, device_type.arch) if device_type.modelled else None)
    except (topology.TopologyError, InstrumentUnsupported) as error:
        raise UnsupportedTypeError(f"{device_type.name}: {error}") from error
