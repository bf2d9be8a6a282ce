"""What uses the storage of a machine, as a worker reports it and the API shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from .base import Message

Bytes = Annotated[int, Field(ge=0, le=2**60)]


class StorageArea(Message):
    """One kind of stored data, its limits, and when retention deletes from it."""

    name: str = Field(min_length=1, max_length=60)
    summary: str = Field(default="", max_length=200)
    place: str = Field(default="", max_length=500)
    """Folder, or URL of a bucket."""
    bytes: Bytes
    entries: int = Field(ge=0)
    """Number of things that can be deleted separately."""
    pinned_bytes: Bytes = 0
    """Bytes that retention keeps whatever their age: pinned, or in use."""
    limit_bytes: Bytes | None = None
    """Beyond this size the entries that were needed longest ago go first; null: no limit of its own."""
    keep_s: float | None = Field(default=None, ge=0)
    """Time after its last use when an entry is deleted; null: age deletes nothing."""
    free_bytes: Bytes | None = None
    """Bytes that can still be written to the volume."""
    reserve_bytes: Bytes | None = None
    """Retention deletes entries while less than this is free on the volume."""
    next_deletion_at: datetime | None = None
    """When age deletes the next entry; null if it deletes none."""
    problem: str = Field(default="", max_length=500)
    """Why the area is beyond its limit although retention has run; empty if it is not."""


class StorageUse(Message):
    """Report of a machine."""

    machine: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    areas: list[StorageArea] = Field(max_length=20)
