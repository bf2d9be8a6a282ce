"""When two failures are the same defect: worker, server and comparison must agree on it."""

from __future__ import annotations

import re

_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")


def defect(text: str) -> str:
    """A report's title or a failure's summary without what changes from boot to boot: addresses, CPUs, PIDs, times,
    and line numbers, which a series moves."""
    return _VARYING.sub("#", text)
