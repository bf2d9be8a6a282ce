"""What the models of all data folders share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
CpuArch = Literal["x86_64", "arm64"]
LastLevel = Literal["L3", "L2", "cluster", "package"]
"""What the CPUs of a last-level cache domain share: the highest cache that is known, else what stands for it."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
