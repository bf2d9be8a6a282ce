"""Choose the recipe by which commits are built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wqlab_contracts.data_folder import DataFolder

from .job import emulated_type

HARDWARE_RECIPE = "measure-hardware"


@dataclass(frozen=True)
class Recipe:
    """A recipe of the data folder, and what a plan adds to it."""

    name: str
    emulated: bool
    fragments: Sequence[str]


def recipe_for(data: DataFolder, plan: str, topology: str | None) -> Recipe:
    """Return the recipe of kernels for an emulated device type, or for a machine if `topology` is None.

    Raises UsageError if the device type cannot be emulated here.
    """
    fragments = data.plans[plan].fragments if plan in data.plans else []
    if topology is None:
        return Recipe(HARDWARE_RECIPE, emulated=False, fragments=fragments)
    return Recipe(emulated_type(data, topology).recipe, emulated=True, fragments=fragments)
