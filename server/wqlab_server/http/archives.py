"""Validation of submitted Message-IDs and series of Patchworks against the lab's mail archives."""

from __future__ import annotations

from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.messages import ThreadSeries

_INSTEAD = "save the thread with `b4 am` or `b4 mbox` and submit it as an mbox, or ask the operator to list"


def archive_problem(data: DataFolder, series: ThreadSeries) -> str | None:
    """Return the reason why the lab cannot find the series in an archive; None if it can."""
    if not data.archives:
        return f"this lab has no mail archive; {_INSTEAD} an archive in intake/archives.yaml"
    address = series.patchwork_series
    if address is None:
        return None
    known = [archive.url for archive in data.archives if archive.series_number(address) is not None]
    if not known:
        return f"this lab does not know the Patchwork of series {address}; {_INSTEAD} it in intake/archives.yaml"
    if len(known) > 1:
        return f"this lab knows several Patchworks: write the URL of the series, such as {known[0]}/series/{address}/"
    return None
