"""What the scripts of one boot printed, kept for people. A device may print without end, its worker may not keep it."""

from __future__ import annotations

RAW_OUTPUT_LIMIT = 4 << 20


class RawOutput:
    """Holds at most `limit` bytes at any time: the first half and the last half, since what went wrong stands at the
    end. `text` says how much is missing between them."""

    def __init__(self, limit: int = RAW_OUTPUT_LIMIT) -> None:
        self._half = limit // 2
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def __len__(self) -> int:
        """Bytes held."""
        return len(self._first) + len(self._last)

    def add(self, text: str) -> None:
        data = memoryview(text.encode())
        room = self._half - len(self._first)
        self._first += data[:room]
        rest = data[room:]
        kept = rest[max(0, len(rest) - self._half) :]
        surplus = max(0, len(self._last) + len(kept) - self._half)
        del self._last[:surplus]
        self._last += kept
        self._left_out += len(rest) - len(kept) + surplus

    def text(self) -> bytes:
        """UTF-8, but for a character that the cut went through."""
        cut = f"\n# {self._left_out} bytes are left out here\n".encode() if self._left_out else b""
        return bytes(self._first) + cut + bytes(self._last)
