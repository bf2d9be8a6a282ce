"""Version of the worker API, which a worker sends with each request."""

from __future__ import annotations

from importlib.metadata import version

PROTOCOL = 1
"""Increased when a worker of the previous version could not do its jobs: a message changed, or a rule of the claims."""
PROTOCOL_HEADER = "X-Wqlab-Protocol"
RELEASE_HEADER = "X-Wqlab-Release"


def release() -> str:
    """Return the installed release of wqlab, such as `0.2.0`."""
    return version("wqlab-contracts")


def headers() -> dict[str, str]:
    """Return the headers with which a worker names its version."""
    return {PROTOCOL_HEADER: str(PROTOCOL), RELEASE_HEADER: release()}
