"""Addresses of emulated devices in bench.json."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts import bench_addresses
from wqlab_contracts.bench_addresses import Published, PublishedDevice


def test_written_addresses_are_read_back(tmp_path: Path) -> None:
    bench_addresses.path(tmp_path).parent.mkdir()
    device = PublishedDevice(
        index=0, console="127.0.0.1:7000", ssh_port=2200, power_url="http://127.0.0.1:6000/0", log="/tmp/0.log",
        device_type="tiny",
    )  # fmt: skip
    published = Published(http="http://127.0.0.1:6000", capacity=2, accelerator="tcg", devices={"tiny-1": device})
    bench_addresses.write(tmp_path, published)
    assert bench_addresses.read(tmp_path) == published
    assert [path.name for path in (tmp_path / "bench").iterdir()] == ["bench.json"]


def test_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bench_addresses.read(tmp_path)
