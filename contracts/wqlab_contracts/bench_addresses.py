"""`bench.json`: where the devices of a lab are. Written by the bench, read by whoever needs to find them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

Accelerator = Literal["kvm", "tcg"]


class PublishedDevice(BaseModel):
    model_config = ConfigDict(extra="forbid")

    index: int
    """The outlet's number."""
    console: str
    """host:port of the raw TCP console."""
    ssh_port: int
    """Forwarded on 127.0.0.1 while the device runs."""
    power_url: str
    log: str
    """The console log of the latest power-on; <log>.1 is the one before."""
    device_type: str


class Published(BaseModel):
    model_config = ConfigDict(extra="forbid")

    http: str
    capacity: int
    """How many devices may run at once."""
    accelerator: Accelerator
    emulator: str = ""
    """The same in words, for reports: `QEMU 7.2.22, tcg, one host thread`."""
    devices: dict[str, PublishedDevice]
    refused: dict[str, str] = {}
    """Device type -> why the bench cannot build its devices."""


def path(state: Path) -> Path:
    return state / "bench" / "bench.json"


def read(state: Path) -> Published:
    """Raises FileNotFoundError if no bench is running."""
    return Published.model_validate_json(path(state).read_text())


def write(state: Path, published: Published) -> None:
    target = path(state)
    partial = target.with_suffix(".partial")
    partial.write_text(published.model_dump_json(indent=1))
    partial.replace(target)
