"""Choose the recipe by which commits are built."""

from __future__ import annotations

import gzip
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.data_folder import DataFolder
from wqlab_worker.build import given_config
from wqlab_worker.build.kconfig import unmet_options

from ..errors import UsageError
from .job import emulated_type

HARDWARE_RECIPE = "measure-hardware"


@dataclass(frozen=True)
class Recipe:
    """A recipe of the data folder, and what a plan adds to it."""

    name: str
    emulated: bool
    fragments: Sequence[str]
    config: str | None = None
    """Kernel configuration that replaces the one of the recipe."""
    loaded: Collection[str] | None = None
    """Names of the modules in `config` that are built; None if all are."""


def read_config(path: Path) -> str:
    """Return the text of a configuration, which may be compressed, as /proc/config.gz is. Raises UsageError."""
    try:
        data = path.expanduser().read_bytes()
        text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"--config {path}: {error}", "name the .config of a kernel, or /proc/config.gz") from None
    if "CONFIG_64BIT=y" not in text:
        raise UsageError(f"--config {path}: it is no configuration of an x86-64 kernel", "name a .config")
    return text


def added_options(data: DataFolder, recipe: Recipe) -> list[str]:
    """Return what is added to the recipe's own configuration, as `CONFIG_X=y (is n)`."""
    if recipe.config is None:
        return []
    emulated = data.recipes[recipe.name].emulated_fragments if recipe.emulated else []
    names = [*given_config.NEEDED, *recipe.fragments, *emulated]
    return unmet_options((data.fragment(each) for each in names), recipe.config)


def recipe_for(
    data: DataFolder,
    plan: str,
    topology: str | None,
    config: str | None = None,
    loaded: Collection[str] | None = None,
) -> Recipe:
    """Return the recipe of kernels for an emulated device type, or for a machine if `topology` is None.

    Raises UsageError if the device type cannot be emulated here.
    """
    fragments = data.plans[plan].fragments if plan in data.plans else []
    if topology is None:
        return Recipe(HARDWARE_RECIPE, False, fragments, config, loaded)
    return Recipe(emulated_type(data, topology).recipe, True, fragments, config, loaded)
