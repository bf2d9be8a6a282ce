"""The option ROM of emulated devices."""

from __future__ import annotations

from pathlib import Path

from wqlab_bench import firmware


def test_option_rom_is_valid(tmp_path: Path) -> None:
    rom = firmware.smt_last(tmp_path)
    data = rom.read_bytes()
    assert data[:2] == b"\x55\xaa"
    assert data[2] * 512 == len(data)
    assert sum(data) % 256 == 0
    offset = int.from_bytes(data[0x1A:0x1C], "little")
    assert data[offset : offset + 4] == b"$PnP"
    assert firmware.smt_last(tmp_path) == rom


def test_padding_covers_code_that_fills_its_block() -> None:
    for size in (511, 512, 513):
        image = firmware.pad_and_checksum(bytes([0x55, 0xAA, 0]) + b"\x07" * (size - 3))
        assert len(image) % 512 == 0 and len(image) > size
        assert sum(image) % 256 == 0
