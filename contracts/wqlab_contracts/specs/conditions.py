"""Measuring conditions that a device type declares: clock, idle states, interrupts, memory and temperature."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from .base import Strict


def _normalise_cpu_list(text: str) -> str:
    """Normalise a CPU list: `2,0-1` -> `0-2`. Raises ValueError if a range is descending."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            raise ValueError(f"the range {part} runs backwards: write {last}-{first}")
        cpus.update(range(int(first), int(last or first) + 1))
    starts = [cpu for cpu in sorted(cpus) if cpu - 1 not in cpus]
    ends = [cpu for cpu in sorted(cpus) if cpu + 1 not in cpus]
    return ",".join(f"{start}-{end}" if end > start else f"{start}" for start, end in zip(starts, ends, strict=True))


CpuList = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$"),
    AfterValidator(_normalise_cpu_list),
]
"""Kept in the one form that the kernel reads back, whatever the form it was written in."""

Condition = Literal[
    "smt", "governor", "boost", "idle_latency_us", "irq_affinity", "transparent_hugepages", "ksm", "temperature"
]
"""Condition that can be required when a boot starts to measure."""


class Conditions(Strict):
    """Conditions that the lab sets on devices of a type. All are read back and recorded with each boot."""

    governor: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")] | None = None
    """Governor of all cpufreq policies."""
    boost: bool | None = None
    irq_affinity: CpuList | None = None
    """CPUs that handle interrupts, such as `0-3`. The kernel places some interrupts of multi-queue devices itself;
    even if this condition is required, moving the others is enough."""
    idle_latency_us: int | None = Field(default=None, ge=0, le=1_000_000)
    """Longest exit latency of an idle state (C-state) that CPUs may enter, in microseconds; deeper states are disabled.
    0: CPUs poll while they are idle."""
    smt: bool | None = None
    """False: `nosmt` on each command line; the declared topology must then have one thread per core. Both values are
    compared with what the kernel reports."""
    transparent_hugepages: Literal["always", "madvise", "never"] | None = None
    """`never` in a file for hardware, unless declared."""
    ksm: bool | None = None
    """Merging of equal memory pages; off in a file for hardware, unless declared."""
    mitigations: Literal["auto", "auto,nosmt", "off"] | None = None
    """Set as `mitigations=` on each command line."""
    start_below_c: float | None = Field(default=None, gt=0, le=110)
    """Maximum temperature of the hottest sensor, in degrees Celsius, before a boot starts to measure."""
    cool_s: int = Field(default=300, ge=0, le=3600)
    """Maximum wait for `start_below_c`, in seconds. After that the boot measures anyway and records the temperature."""
    required: list[Condition] = Field(default_factory=list)
    """Conditions without which a boot fails. Other conditions that a device lacks or rejects are only recorded."""

    @property
    def kernel_arguments(self) -> str:
        smt = "nosmt" if self.smt is False else ""
        mitigations = f"mitigations={self.mitigations}" if self.mitigations else ""
        return " ".join(words for words in (smt, mitigations) if words)

    @model_validator(mode="after")
    def _check_required_conditions(self) -> Self:
        for name in self.required:
            if (self.start_below_c if name == "temperature" else getattr(self, name)) is None:
                raise ValueError(f"{name} is listed under required, but it has no value")
        return self
