"""Whose series a device takes: one that starts from a disk of its own could be changed for good by a kernel. Pure."""

from __future__ import annotations

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.specs import Tree

from .validate import Mistake


def access_mistakes(
    request: SubmissionRequest, data: DataFolder, owner: str | None, repository: Tree | None = None
) -> list[Mistake]:
    """Return a mistake for each target with a device that does not take this series of `owner`.

    `owner` is None for a series that a rule or forge has taken from somebody else: then no account's name counts, and
    neither does it for commits of a watched tree. All devices of the type count, because a run moves to another one if
    its device fails. `repository` replaces the tree of the data folder, for a pair of commits of another repository.
    """
    if _is_operators(request, data, repository):
        return []
    if request.series is not None and request.series.commits is not None:
        owner = None
    found = []
    for index, target in enumerate(request.targets):
        if not target.device_type or not data.has_device_type(target.device_type):
            continue
        device_type = data.device_type(target.device_type)
        refusing = [
            unit.name for unit in device_type.units if not device_type.takes_anyone(unit) and owner not in unit.people
        ]
        if refusing:
            detail = (
                f"{', '.join(refusing)} of {device_type.name} takes only commits of operators' trees and series of the "
                "people that its unit names, because it starts from a disk that a kernel can write; choose another "
                f"device type{'' if owner is None else f', or ask the operator to add {owner} to `people`'}"
            )
            found.append({"pointer": f"/targets/{index}/device_type", "detail": detail})
    return found


def _is_operators(request: SubmissionRequest, data: DataFolder, repository: Tree | None) -> bool:
    """Return True for a settings study, and for commits of a tree that the data folder lists."""
    if request.series is not None and request.series.commits is None:
        return False
    tree = repository or data.trees.get(request.tree)
    return tree is not None and data.with_origin(tree).origin == "operator"
