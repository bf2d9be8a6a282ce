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
    """Write the configuration to `output`. Raises ExporterError if no bench is running.

    It includes the files in `output`.d, which people write for other devices of the lab: labgrid names them `drop_ins`.
    """
    try:
        published = bench_addresses.read(state)
    except FileNotFoundError as error:
        raise ExporterError(f"no bench is running: {error.filename} is missing") from error
    partial = output.with_suffix(".partial")
    groups = resources(published)
    # JSON is valid YAML, and a group has no line that begins with `#`, as a statement of Jinja2 does.
    text = "".join(f"{json.dumps(name)}: {json.dumps(group)}\n" for name, group in groups.items())
    if any(Path(f"{output}.d").glob("*.yaml")):
        text += "# for file in drop_ins\n{% include file %}\n\n# endfor\n"
    partial.write_text(text or "{}\n")
    partial.replace(output)
