"""Read and write `bench.json`, the addresses of a lab's emulated devices, written by the bench."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

Accelerator = Literal["kvm", "tcg"]


class PublishedDevice(BaseModel):
    """Addresses of one emulated device."""

    model_config = ConfigDict(extra="forbid")

    index: int
    """Number of the power outlet."""
    console: str
    """host:port of the raw TCP console."""
    ssh_port: int
    """Port of the device's SSH server, on the host that `console` names. It answers while the device runs."""
    power_url: str
    log: str
    """The console log of the latest power-on; <log>.1 is the one before."""
    device_type: str


class Published(BaseModel):
    """Content of `bench.json`."""

    model_config = ConfigDict(extra="forbid")

    http: str
    capacity: int
    """Maximum number of devices that run at the same time."""
    accelerator: Accelerator
    emulator: str = ""
    """Emulator description for reports: `QEMU 7.2.22, tcg, one host thread`."""
    devices: dict[str, PublishedDevice]
    refused: dict[str, str] = {}
    """Device type -> reason why the bench cannot emulate it."""


def path(state: Path) -> Path:
    """Return the path of `bench.json` in a state folder."""
    return state / "bench" / "bench.json"


def read(state: Path) -> Published:
    """Read the addresses. Raises FileNotFoundError if no bench is running."""
    return Published.model_validate_json(path(state).read_text())


def write(state: Path, published: Published) -> None:
    """Write the addresses atomically."""
    target = path(state)
    partial = target.with_suffix(".partial")
    partial.write_text(published.model_dump_json(indent=1))
    partial.replace(target)
