"""The golden system of the virtual bench beside this worker: for devices elsewhere that bring none of their own."""

from __future__ import annotations

import json
from pathlib import Path

from wqlab_contracts.specs import CpuArch


def images(state: Path, arch: CpuArch) -> dict[str, Path]:
    """`kernel` and `ramdisk`; empty where there is no bench, or none of this architecture."""
    try:
        known = json.loads((state / "golden.json").read_text())
    except FileNotFoundError:
        return {}
    made = known.get(arch)
    return {"kernel": Path(made["kernel"]), "ramdisk": Path(made["rootfs"])} if made else {}
