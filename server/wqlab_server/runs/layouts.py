"""Choose the layout of the kernel that each boot of a run gets."""

from __future__ import annotations

from wqlab_contracts.enums import Arm, RunPurpose
from wqlab_contracts.messages import BuildResult

from ..models import Run


def layouts_of(run: Run, arm: Arm) -> list[int]:
    """Return the layouts of an arm: block b boots entry b modulo their number.

    Both arms of a comparison have the same layout in a block. In a canary that compares layouts, the candidate has one
    other layout in all blocks, chosen by the run's seed, as two builds of a kernel would.
    """
    if run.purpose is RunPurpose.CANARY and run.layouts > 1:
        return [0 if arm is Arm.BASELINE else 1 + run.seed % (run.layouts - 1)]
    return list(range(run.layouts))


def layout_of(run: Run, arm: Arm, block: int) -> int:
    """Return the layout that an arm boots in a block; 0 is the ordinary link."""
    layouts = layouts_of(run, arm)
    return layouts[block % len(layouts)]


def build_id_of(result: BuildResult, layout: int) -> str | None:
    """Return the GNU build-id of a layout of a build; None if the build has no such layout."""
    if layout == 0:
        return result.build_id_gnu
    return next((each.build_id_gnu for each in result.layouts if each.layout == layout), None)
