"""Replacing a kernel on the lab's disk fails the run; restoring it lets the run pass.

For the night: worker/tests/backends/test_swapped_kernel.py has it of one session.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Lab

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

SUBMIT = (
    *("--settings-only", "--target", "dm-crypt-affinity@tiny", "--scenario", "LOW", "--blocks", "1"),
    *("--setting", "scope=cache,strict=0", "--setting", "scope=system,strict=0", "--param", "traced_ios=100"),
)


class Kernel:
    """Kernel image in the server's artifact store and in the workers' cache.

    Files are replaced, not written to: those in the cache are links to what a build keeps.
    """

    def __init__(self, lab: Lab, sha256: str) -> None:
        state, cache = (Path(lab.environment[name]) for name in ("WQLAB_STATE", "WQLAB_CACHE"))
        (stored,) = (state / "artifacts").rglob(sha256)
        self._paths = (stored, cache / "fetched" / sha256)
        self._image = stored.read_bytes()

    def put(self, image: bytes) -> None:
        for path in self._paths:
            fresh = path.with_name(".swapped")
            fresh.write_bytes(image)
            fresh.replace(path)

    def swap(self) -> None:
        """Replace the image by one that also boots and has the same build-id; only its bytes differ."""
        self.put(self._image + b"\0" * 512)

    def restore(self) -> None:
        self.put(self._image)


def baseline(report: dict[str, Any]) -> dict[str, Any]:
    (build,) = report["submission"]["builds"]
    return dict(build)


def test_kernel_replaced_on_disk_fails_the_run_unmeasured(lab: Lab) -> None:
    first = lab.finish(lab.submit(*SUBMIT))
    built = baseline(first)
    image = next(artifact for artifact in built["artifacts"] if artifact["kind"] == "kernel")
    kernel = Kernel(lab, image["sha256"])
    kernel.swap()
    try:
        submission = lab.submit(*SUBMIT)
        report = lab.finish(submission, codes=(4,))
    finally:
        kernel.restore()
    assert baseline(report)["id"] == built["id"], "nothing was built again"
    (run,) = report["submission"]["runs"]
    assert (run["outcome"], run["failure"]["kind"]) == ("failed", "infrastructure")
    assert f"not {image['sha256']}" in run["failure"]["summary"]
    assert run["boots"] == [], "it was not started on any device"
    assert report["attempts"], "every attempt is listed"
    assert {attempt["failure"]["kind"] for attempt in report["attempts"]} == {"infrastructure"}
    devices = [entry for entry in json.loads(lab.wqlab("devices", "--json")) if entry["device_type"] == "tiny"]
    assert not [device for device in devices if device["health"] == "quarantined"], "the devices did nothing"

    again = lab.finish(json.loads(lab.wqlab("retry", str(submission), "--json"))["id"])
    (run,) = again["submission"]["runs"]
    assert {boot["build_id_gnu"] for boot in run["boots"] if boot["valid"]} == {built["build_id_gnu"]}
