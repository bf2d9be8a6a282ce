"""What a walk asks for: the number of its patches, its mistakes, and the backend that measures it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.messages import Series
from wqlab_contracts.messages.apply import WALK_LIMIT
from wqlab_contracts.specs import Backend, DeviceType

from ..http.inspection_process import Inspect

LEAST_PATCHES = 2
UNKNOWN_PATCHES = (
    "the number of patches is known once the series is applied: a block has one boot more than the series has patches, "
    f"here counted as {LEAST_PATCHES}"
)
"""Note on the quote of a branch or a thread."""


def patch_count(series: Series | None, inspect: Inspect) -> int | None:
    """Return the number of patches of a mailbox; None for other series, whose number is known once they are applied,
    and for a mailbox without a patch, or that is refused for its size."""
    if series is None or series.mbox is None:
        return None
    return len(inspect(series.mbox.text).patches) or None


def boots_per_block(request: SubmissionRequest, inspect: Inspect) -> int:
    """Return the boots of a block: of a walk at least one for each patch and one of the base."""
    if request.series is None:
        return 1
    return 1 + (patch_count(request.series, inspect) or LEAST_PATCHES) if request.walk else 2


def walk_mistakes(request: SubmissionRequest, data: DataFolder, inspect: Inspect) -> Iterator[tuple[str, str]]:
    """Yield the mistakes of a request's walk: JSON pointer into the request, and the mistake with its fix."""
    if not request.walk:
        return
    if request.series is None:
        yield "/walk", "a walk measures the patches of a series; give a series, or leave walk out"
        return
    if request.series.commits is not None:
        yield "/walk", "two commits have no patches to walk; submit the commits between them as a branch (git) instead"
    if request.sweep is not None:
        yield "/walk", "give either walk or sweep; walk the series on the topologies where the sweep shows a change"
    if request.looks is not None:
        yield "/walk", "give either walk or looks; a walk has a fixed number of blocks (blocks)"
    patches = patch_count(request.series, inspect)
    if patches is not None and patches < LEAST_PATCHES:
        yield "/walk", "the series has one patch, so a walk shows no more than an ordinary run; leave walk out"
    if patches is not None and patches > WALK_LIMIT:
        yield (
            "/walk",
            f"the series has {patches} patches; a walk has at most {WALK_LIMIT}. Submit it in parts, each on the part "
            "before, or leave walk out",
        )
    for index, target in enumerate(request.targets):
        if not target.device_type or not data.has_device_type(target.device_type):
            continue
        backends = {unit.backend for unit in data.device_type(target.device_type).units}
        if request.backend == "lava" or backends == {"lava"}:
            yield (
                f"/targets/{index}/device_type",
                f"a walk is not supported on devices of a LAVA lab, such as those of {target.device_type}; choose a "
                "device type with a labgrid or instrumented device, or leave walk out",
            )


def backend_of(request: SubmissionRequest, device_type: DeviceType) -> Backend | None:
    """Return the backend on which a target is measured; None for any. A walk is not measured on LAVA devices."""
    backends = {unit.backend for unit in device_type.units}
    if request.backend is None and request.walk and "lava" in backends:
        return next(iter(sorted(backends - {"lava"})), None)
    return request.backend
