"""Propose targets for what a series or a branch changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlalchemy.orm import Session

from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.touches import propose

from ..estimates import lab_snapshot
from ..settings import Settings
from .match_watches import Propose


def proposer(session: Session, settings: Settings, data: DataFolder) -> Propose:
    """Return what proposes targets for changed files, on device types with a device that can measure now."""

    @cache
    def usable() -> set[str]:
        return lab_snapshot.load(session, settings).usable_types

    def propose_targets(files: Sequence[TouchedFile]) -> list[str]:
        found = propose(files, data, usable())
        return [f"{each.target.plan}@{each.target.device_type}" for each in found.proposals]

    return propose_targets
