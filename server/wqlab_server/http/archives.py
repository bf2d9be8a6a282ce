"""Validation of submitted Message-IDs against the lab's mail archives."""

from __future__ import annotations

from wqlab_contracts.data_folder import DataFolder


def archive_problem(data: DataFolder) -> str | None:
    """Return why no series can be found by Message-ID, or None."""
    if data.archives:
        return None
    return (
        "this lab has no mail archive; save the thread with `b4 am` or `b4 mbox` and submit it as an mbox, or ask the "
        "operator to list an archive in intake/archives.yaml"
    )
