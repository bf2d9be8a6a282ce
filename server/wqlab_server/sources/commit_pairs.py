"""Requests that compare two commits of a watched tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import DeviceHealth
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import CommitPair, Series, Target
from wqlab_contracts.specs import TreeWatch

from ..intake import watched_trees
from ..models import Device, Watch
from ..orders.source import Context, Proposal
from ..wait import Wait


def lock_tree(session: Session, name: str) -> TreeWatch:
    """Lock the watch of a tree, and return its spec. Raises Wait if it makes no submissions now."""
    watch = session.get_one(Watch, name, with_for_update=True)
    if watch.enabled_at is None or not isinstance(watch.spec, TreeWatch):
        raise Wait(f"the watch {name} is disabled or removed")
    return watch.spec


def propose_pair(
    context: Context, spec: TreeWatch, pair: CommitPair, targets: Sequence[str], measured_on: Mapping[str, str]
) -> Proposal:
    """Return the proposal to measure two commits on `targets` (`plan@device-type`).

    `measured_on`: target -> device of an earlier measurement, which measures again if it can. Raises Wait.
    """
    if spec.tree not in context.data.trees:
        raise Wait(f"the lab has no tree {spec.tree} any more")
    devices, _ = usable_devices(context.session, measured_on, context.data)
    wanted = []
    for each in targets:
        plan, _, device_type = each.partition("@")
        wanted.append(Target(plan=plan, device_type=device_type, parameters=spec.parameters, device=devices.get(each)))
    request = SubmissionRequest(
        series=Series(commits=pair), tree=spec.tree, targets=wanted, blocks=spec.blocks, priority=spec.priority
    )
    repository = watched_trees.repository_of(spec, context.data)
    return Proposal(request, spec.owner, repository)


def usable_devices(session: Session, measured_on: Mapping[str, str], data: DataFolder) -> tuple[dict[str, str], str]:
    """Return those of `measured_on` (target -> device) that can measure again, and why the others cannot."""
    usable, gone = {}, []
    for target, name in sorted(measured_on.items()):
        device = session.get(Device, name)
        type_name = target.partition("@")[2]
        units = {unit.name for unit in data.device_type(type_name).units} if data.has_device_type(type_name) else set()
        if device is None or device.retired_at is not None or name not in units:
            gone.append(f"{name}, which measured the head before, is gone")
        elif device.health is DeviceHealth.QUARANTINED:
            gone.append(f"{name}, which measured the head before, is quarantined: {device.health_reason}")
        else:
            usable[target] = name
    return usable, "; ".join(gone)
