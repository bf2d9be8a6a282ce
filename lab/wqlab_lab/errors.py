"""The error that `wqlab-lab` reports."""

from __future__ import annotations


class LabError(Exception):
    """The lab could not be started or stopped; the text names the failure and the file with the details."""
