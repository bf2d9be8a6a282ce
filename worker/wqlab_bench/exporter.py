"""labgrid's exporter configuration from what the bench publishes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wqlab_contracts import bench_addresses


class ExporterError(Exception):
    """The configuration cannot be written; the text says why."""


def resources(place: bench_addresses.Published) -> dict[str, dict[str, Any]]:
    """Resource group (a unit's name) -> labgrid's resources of that device."""
    groups: dict[str, dict[str, Any]] = {}
    for name, device in place.devices.items():
        host, port = device.console.rsplit(":", 1)
        groups[name] = {
            "NetworkPowerPort": {"model": "rest", "host": f"{place.http}/power/{{index}}", "index": device.index},
            "NetworkSerialPort": {"host": host, "port": int(port), "protocol": "raw"},
            "NetworkService": {"address": host, "port": device.ssh_port, "username": "root"},
        }
    return groups


def write(state: Path, output: Path) -> None:
    """Raises ExporterError if no bench is running."""
    try:
        place = bench_addresses.read(state)
    except FileNotFoundError as error:
        raise ExporterError(f"no bench is running: {error.filename} is missing") from error
    partial = output.with_suffix(".partial")
    # The exporter reads a Jinja2 template of YAML whose line statements start with `#`; JSON is YAML and has neither.
    partial.write_text(json.dumps(resources(place), indent=1) + "\n")
    partial.replace(output)
