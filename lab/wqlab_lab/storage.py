"""Show what uses the storage of a lab: `wqlab-lab storage`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from .paths import ADMIN, LabPaths

Area = Mapping[str, Any]
"""A `StorageArea` of the REST API."""


class StorageError(Exception):
    """The API does not answer."""


def report(paths: LabPaths, *, running: bool, as_json: bool = False) -> str:
    """Return the storage used by kind of file, its limits, what is pinned, and the next deletion.

    The API of a running lab knows all machines; of a stopped lab the folders are measured. Raises StorageError.
    """
    found = _ask(paths) if running else {"machines": [_measure(paths)], "pinned": []}
    if as_json:
        return json.dumps(found, indent=1)
    lines = []
    for machine in found["machines"]:
        lines += [f"{machine['machine']}, at {machine['reported_at'][:16].replace('T', ' ')} UTC", *_table(machine)]
    if not found["machines"]:
        lines.append("no report yet: the first pass of retention makes it, a minute after the start")
    pinned = ", ".join(map(str, found["pinned"])) or "none"
    lines.append(f"pinned submissions: {pinned} (`wqlab pin ID`, `wqlab unpin ID`)")
    if not running:
        lines.append("the lab is not running: only folders are measured; `make up` shows limits and dates")
    return "\n".join(lines)


def _ask(paths: LabPaths) -> dict[str, Any]:
    try:
        with httpx.Client(base_url=paths.url, timeout=20, trust_env=False) as api:
            answer = api.get("/api/v1/lab/storage", headers={"Authorization": f"Bearer {paths.token(ADMIN)}"})
            content: dict[str, Any] = answer.raise_for_status().json()
    except (httpx.HTTPError, OSError) as error:
        raise StorageError(f"the API at {paths.url} does not say what uses the storage: {error}") from error
    return content


def _measure(paths: LabPaths) -> dict[str, Any]:
    folders = [*_subfolders(paths.state), *_subfolders(paths.cache)]
    areas = [{"name": f"{path.parent.name}/{path.name}", "bytes": _bytes(path), "place": str(path)} for path in folders]
    return {"machine": "this machine", "reported_at": datetime.now(UTC).isoformat(), "areas": areas}


def _subfolders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _bytes(folder: Path) -> int:
    """Return the bytes allocated below a folder; files with several names count once."""
    inodes: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                status = os.lstat(Path(parent, name))
            except FileNotFoundError:
                continue
            inodes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(inodes.values())


def _table(machine: Mapping[str, Any]) -> Iterable[str]:
    rows: list[tuple[str, ...]] = [("area", "used", "limit", "pinned", "free", "next deletion", "contents")]
    rows += [_row(area) for area in machine["areas"]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        yield "  " + "  ".join([*cells, row[-1]]).rstrip()
    for area in machine["areas"]:
        if area.get("problem"):
            yield f"  {area['name']}: {area['problem']}"


def _row(area: Area) -> tuple[str, ...]:
    days = area.get("keep_s")
    limit = _join([size(area.get("limit_bytes")), f"{days / 86400:.0f} days" if days is not None else ""])
    reserve = area.get("reserve_bytes")
    free = size(area.get("free_bytes")) + (f" (at least {size(reserve)})" if reserve else "")
    return (
        area["name"],
        size(area["bytes"]),
        limit,
        size(area.get("pinned_bytes") or None),
        free,
        (area.get("next_deletion_at") or "")[:10],
        area.get("summary") or area.get("place", ""),
    )


def _join(parts: Sequence[str]) -> str:
    return ", ".join(part for part in parts if part)


def size(amount: int | None) -> str:
    """Format bytes: `812 B`, `1.4 GiB`; empty for None."""
    if amount is None:
        return ""
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
