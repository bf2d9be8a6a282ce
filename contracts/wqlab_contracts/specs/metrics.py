"""Metrics of test plans."""

from __future__ import annotations

from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from ..enums import Direction, Evidence, MetricClass, Role, Scale, TraceMode
from .base import Name, Strict


class Metric(Strict):
    """A quantity that a plan measures."""

    name: Name
    summary: str
    unit: str
    scale: Scale
    direction: Direction
    metric_class: MetricClass = Field(alias="class")
    taken_from: TraceMode
    role_hardware: Role = Role.EXPLANATORY
    role_emulated: Role = Role.EXPLANATORY
    delta: float | None = Field(default=None, ge=0)
    """Smallest relevant effect: in percent for `ratio`, in the metric's unit for `difference`."""
    emulator_delta: float | None = Field(default=None, ge=0)
    """Largest difference, in the unit of `delta`, between two ways in which QEMU lets the CPUs of a device take turns
    (benchmarks/emulator_modes.py). On emulated devices, a smaller effect is not attributed to the kernel."""
    depends_on: str = ""
    """What the count depends on besides the kernel, as the end of a sentence: `the numbering of the CPUs`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, content: Any) -> Any:
        """Add what a plan leaves out: no direction, untraced repetitions, and `role` as that on all devices."""
        if not isinstance(content, dict):
            return content
        given = {"direction": "none", "taken_from": "untraced"} | content
        if (role := given.pop("role", None)) is not None:
            given = {"role_hardware": role, "role_emulated": role} | given
        return given

    @model_validator(mode="after")
    def _check_emulator_delta(self) -> Self:
        if self.emulator_delta is not None and self.metric_class is not MetricClass.MECHANISM:
            raise ValueError(
                f"metric {self.name} has an emulator_delta, but emulated devices judge only metrics of class mechanism"
            )
        return self

    def least_effect(self, emulated: bool) -> float | None:
        """Return the smallest effect that is judged relevant; None if the comparison chooses it."""
        known = [each for each in (self.delta, self.emulator_delta if emulated else None) if each is not None]
        return max(known, default=None)

    def role(self, emulated: bool) -> Role:
        return self.role_emulated if emulated else self.role_hardware

    def evidence(self, emulated: bool) -> Evidence:
        match self.metric_class:
            case MetricClass.MECHANISM:
                return Evidence.MECHANISM
            case MetricClass.INSTRUMENTED:
                # Only instrumented devices, which are emulated, measure it.
                return Evidence.INSTRUMENTED
            case MetricClass.MODELLED:
                return Evidence.MODELLED
            case MetricClass.PERFORMANCE:
                return Evidence.NONE if emulated else Evidence.PERFORMANCE
