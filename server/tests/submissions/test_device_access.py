"""Whose series a device takes that starts from a disk of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.specs import DeviceType
from wqlab_server.submissions.device_access import access_mistakes

from .test_validate import DATA, DEVICE, MBOX

UNIT = {"name": "server-1", "own_system": {}, "people": ["ada"]}
OPEN = {"name": "server-2"}
COMMITS = {"commits": {"baseline": "a" * 40, "candidate": "b" * 40, "ref": "master"}}
UPLOAD = {"mbox": {"text": MBOX}}
BRANCH = {"git": {"url": "https://example.org/linux.git", "ref": "topic"}}
THREAD = {"thread": {"message_id": "v1@example.org"}}


def refused(series: Any, owner: str, units: list[dict[str, Any]], url: str | None = None, device: Any = None) -> bool:
    values = DEVICE.model_dump(exclude={"emulation", "units"})
    server = DeviceType.model_validate({**values, "name": "server", "units": units})
    data = replace(DATA, device_types={"tiny": DEVICE, "server": server})
    target = {"plan": "xfs", "device_type": "server", "device": device}
    request = SubmissionRequest.model_validate({"series": series, "tree": "stable", "targets": [target]})
    repository = None if url is None else data.trees["stable"].model_copy(update={"url": url})
    found = access_mistakes(request, data, owner, repository)
    assert all(each["pointer"] == "/targets/0/device_type" for each in found)
    return bool(found)


@pytest.mark.parametrize("series", [UPLOAD, BRANCH, THREAD], ids=["mbox", "git", "thread"])
def test_only_named_people_submit_series_to_it(series: Any) -> None:
    assert refused(series, "mallory", [UNIT])
    assert not refused(series, "ada", [UNIT])
    assert not refused(series, "mallory", [OPEN])


def test_commits_of_operators_trees_and_settings_are_for_everyone() -> None:
    assert not refused(COMMITS, "mallory", [UNIT])
    assert not refused(None, "mallory", [UNIT])
    assert refused(COMMITS, "mallory", [UNIT], url="https://mallory.example/linux.git")


def test_one_device_of_the_type_is_enough() -> None:
    """A run moves to another device of its type if the one that it names is out of service."""
    assert refused(UPLOAD, "mallory", [OPEN, UNIT])
    assert refused(UPLOAD, "mallory", [OPEN, UNIT], device="server-2")
    assert not refused(UPLOAD, "ada", [OPEN, UNIT])
