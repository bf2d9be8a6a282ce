"""Conditions of memory that hardware has unless its device type declares others, so that no plan measures a background
scan of its pages.

They are set where device types are read from the data folder. The model has no such defaults: a device type that is
stored with a run says what applied to that run.
"""

from __future__ import annotations

from .yamlfile import Document

_CONDITIONS = Document.parse("conditions: {transparent_hugepages: never, ksm: false}", "conditions of hardware")


def with_hardware_conditions(document: Document) -> Document:
    """Return a device type over the conditions of hardware, or unchanged if it is emulated or has problems."""
    content = None if document.problems else document.plain()
    if not isinstance(content, dict) or content.get("emulation") is not None:
        return document
    return document.over(_CONDITIONS)
