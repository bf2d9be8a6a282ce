"""Keep the raw output of a boot's scripts, with a size limit, since a device may print without end."""

from __future__ import annotations

RAW_OUTPUT_LIMIT = 4 << 20


class RawOutput:
    """Buffer of at most `limit` bytes: the first half and the last half, where errors are.

    `text` says how many bytes are missing between them.
    """

    def __init__(self, limit: int = RAW_OUTPUT_LIMIT) -> None:
        self._half = limit // 2
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def __len__(self) -> int:
        """Return the number of bytes held."""
        return len(self._first) + len(self._last)

    def add(self, text: str) -> None:
        """Append `text`."""
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
        """Return the output in UTF-8, except for a character that the cut splits."""
        cut = f"\n# {self._left_out} bytes are left out here\n".encode() if self._left_out else b""
        return bytes(self._first) + cut + bytes(self._last)
