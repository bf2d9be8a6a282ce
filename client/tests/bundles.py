"""Read, change and sign bundles in tests."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wqlab_server.storage.signing import SigningKey

SaveBundle = Callable[[int], Path]
"""Fixture that writes the bundle of a finished submission and returns its path."""


def read_files(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_files(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def with_manifest(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with a manifest of their hashes, and the old signature."""
    content = {name: data for name, data in files.items() if not name.startswith("manifest.json")}
    manifest: dict[str, Any] = json.loads(files["manifest.json"])
    manifest["files"] = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in content.items()
    }
    signature = files["manifest.json.sig"]
    return content | {"manifest.json": json.dumps(manifest).encode(), "manifest.json.sig": signature}


def resigned(files: Mapping[str, bytes], key: Path) -> dict[str, bytes]:
    """Return the files with a manifest of their hashes, signed by `key`: what a dishonest lab would write."""
    content = with_manifest(files)
    content["manifest.json.sig"] = SigningKey.read(key).sign(content["manifest.json"], "wqlab-bundle")
    return content
