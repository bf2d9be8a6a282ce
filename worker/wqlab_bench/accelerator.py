"""Choose KVM or software emulation. KVM is used only if a test guest boots, because /dev/kvm may exist and not work."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import subprocess
from pathlib import Path
from typing import Literal

from wqlab_contracts.bench_addresses import Accelerator
from wqlab_contracts.specs import DeviceType, Emulation, Topology, Unit

from . import qemu_program
from .faults import READY, Trigger
from .machine import Machine, MachineError
from .qemu import Firmware, Golden, command

log = logging.getLogger(__name__)

KVM = Path("/dev/kvm")
_PROBE_TIMEOUT_S = 10.0
"""Time for the boot of the test guest, which takes two or three seconds with KVM."""
_HOST_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROBE = DeviceType(
    name="probe",
    summary="test guest for KVM",
    arch="x86_64",
    topology=Topology(sockets=1, l3_per_socket=1, cores_per_l3=2, threads_per_core=1),
    emulation=Emulation(memory_mib=512, kernel_arguments="nokaslr"),
    units=[Unit(name="probe")],
)


def choose(requested: Literal["auto", "kvm", "tcg"], golden: Golden, cache: Path) -> Accelerator:
    """Return the accelerator to use. For `auto`, KVM if a guest with the golden kernel boots with it, else tcg.

    The test is made once per boot of the host, QEMU version and golden system.
    """
    if requested != "auto":
        return requested
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    file = cache / "accelerator.json"
    key = _key(golden)
    if file.exists() and (cached := json.loads(file.read_text())).get("key") == key:
        return "kvm" if cached["kvm"] else "tcg"
    works = asyncio.run(_boots(golden, Firmware(cache / "firmware")))
    log.info("KVM probe: a guest %s", "boots" if works else "does not boot; using software emulation")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"key": key, "kvm": works}))
    return "kvm" if works else "tcg"


def _key(golden: Golden) -> str:
    version = subprocess.run(
        [*qemu_program.words("x86_64"), "--version"], capture_output=True, text=True, check=False
    ).stdout
    inputs = (_HOST_BOOT.read_text(), version, str(golden.kernel), str(golden.rootfs))
    return hashlib.sha256("\n".join(inputs).encode()).hexdigest()


async def _boots(golden: Golden, firmware: Firmware) -> bool:
    ended = asyncio.Event()
    ready = False
    trigger = Trigger(READY)

    def output(data: bytes) -> None:
        nonlocal ready
        if trigger.seen(data):
            ready = True
            ended.set()

    machine = Machine(command(_PROBE, golden, 0, "kvm", firmware))
    try:
        await machine.start(output, lambda _status, _error_output: ended.set())
        await asyncio.wait_for(ended.wait(), _PROBE_TIMEOUT_S)
    except (MachineError, TimeoutError) as error:
        log.info("KVM probe: %s", str(error) or f"the guest did not boot within {_PROBE_TIMEOUT_S:g} s")
    finally:
        await machine.kill()
    return ready
