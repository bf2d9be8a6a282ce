"""Option `--looks`: numbers of blocks after which a run may stop, or was looked at."""

from __future__ import annotations

from wqlab_contracts.specs.plans import LOOKS_MISTAKE, are_looks

from ..errors import UsageError


def parse_looks(text: str | None) -> list[int] | None:
    """Parse `6,10,16`; None without the option. Raises UsageError for anything but ascending numbers."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    looks = [int(part) for part in parts] if all(part.isdecimal() and part.isascii() for part in parts) else []
    if not are_looks(looks):
        raise UsageError(f"--looks {text!r} is not a list of looks", LOOKS_MISTAKE)
    return looks
