"""The order of settings in instrumented boots: shuffled by seed, the same for both kernels of a seed."""

from __future__ import annotations

import shlex
from pathlib import Path

from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import RunJob
from wqlab_contracts.specs import Axis
from wqlab_worker.backends.instrumented import MOST_BLOCKS, boot_image

from .conftest import job_of
from .test_boot_image import KERNEL, listed

SETTINGS = ["scope=cpu", "scope=cache", "scope=system"]


def job() -> RunJob:
    made = job_of(KERNEL, [[Arm.BASELINE]])
    plan = made.plan.model_copy(update={"axes": [Axis(name="scope", values=["cpu", "cache", "system"])]})
    return made.model_copy(update={"plan": plan, "profile": made.profile.model_copy(update={"settings": SETTINGS})})


def orders(folder: Path) -> list[list[str]]:
    """Return the scopes of the measured calls of each seed, from the image that all boots of a kernel have."""
    (rootfs := folder / "rootfs").write_bytes(b"")
    boot_image.write(rootfs, job(), range(MOST_BLOCKS), {}, image := folder / "image")
    (unpacked := folder / "unpacked").mkdir()
    listed(image.read_bytes(), unpacked)
    found = []
    for seed in range(MOST_BLOCKS):
        calls = [shlex.split(line) for line in (unpacked / f"lab/calls/{seed}").read_text().splitlines()]
        measured = [call for call in calls if call[5] == "measure" and call[4] != "-"]
        found.append([word.removeprefix("SETTING_SCOPE=") for call in measured for word in call if "SETTING_" in word])
    return found


def test_each_setting_is_measured_at_each_place_under_some_seed(tmp_path: Path) -> None:
    found = orders(tmp_path)
    assert {frozenset(order) for order in found} == {frozenset({"cpu", "cache", "system"})}
    for place in range(len(SETTINGS)):
        seen = [order[place] for order in found]
        assert all(MOST_BLOCKS / 6 < seen.count(scope) < MOST_BLOCKS / 2 for scope in ("cpu", "cache", "system"))
    (again := tmp_path / "again").mkdir()
    assert orders(again) == found
