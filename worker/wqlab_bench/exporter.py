"""Write the configuration of labgrid's exporter from the addresses that the bench publishes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wqlab_contracts import bench_addresses


class ExporterError(Exception):
    """The configuration cannot be written; the message says why."""


def resources(published: bench_addresses.Published) -> dict[str, dict[str, Any]]:
    """Return resource group (the device's name) -> labgrid resources of the device."""
    groups: dict[str, dict[str, Any]] = {}
    for name, device in published.devices.items():
        host, port = device.console.rsplit(":", 1)
        groups[name] = {
            "NetworkPowerPort": {"model": "rest", "host": f"{published.http}/power/{{index}}", "index": device.index},
            "NetworkSerialPort": {"host": host, "port": int(port), "protocol": "raw"},
            "NetworkService": {"address": host, "port": device.ssh_port, "username": "root"},
        }
    return groups


def write(state: Path, output: Path) -> None:
    """Write the configuration to `output`. Raises ExporterError if no bench is running."""
    try:
        published = bench_addresses.read(state)
    except FileNotFoundError as error:
        raise ExporterError(f"no bench is running: {error.filename} is missing") from error
    partial = output.with_suffix(".partial")
    # The exporter reads YAML with Jinja2 line statements that start with `#`. JSON is valid YAML and has no such lines.
    partial.write_text(json.dumps(resources(published), indent=1) + "\n")
    partial.replace(output)
