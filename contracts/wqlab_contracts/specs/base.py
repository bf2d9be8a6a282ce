"""Base class and common types of the data folder's models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

from .. import defer_models

NAME_LIMIT = 64
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
CpuArch = Literal["x86_64", "arm64"]
LastLevel = Literal["L3", "L2", "cluster", "package"]
"""Level that the CPUs of a last-level domain share: the highest known cache, or a substitute if no cache is known."""


class Strict(BaseModel):
    """Immutable model that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=defer_models)
