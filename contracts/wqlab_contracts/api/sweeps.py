"""REST resources of a sweep: the same plan on a family of generated topologies, and its metrics over the topology."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from ..enums import Arm, Direction, Evidence, Question, Role, Verdict
from ..jsontypes import JsonInt
from ..messages import Message
from ..specs import DIMENSIONS, Dimension, GeneratedTopology, Name

LEAST_POINTS = 2
MOST_POINTS = 8
"""Most points of a sweep: each is a target with boots of its own."""


class SweepBase(Message):
    """Dimensions of the topology that stay; null: the default, 16 CPUs, 4 L3 domains, 1 NUMA node, and shards as large
    as the kernel makes them."""

    cpus: JsonInt | None = None
    l3: JsonInt | None = None
    nodes: JsonInt | None = None
    shard: JsonInt | None = None


class SweepRequest(Message):
    """Topologies on which the targets without a device type are measured: one dimension varies, the others stay."""

    vary: Dimension
    values: list[JsonInt] = Field(max_length=100)
    """Values of that dimension, 2 to 8 of them."""
    base: SweepBase = SweepBase()
    costs: Name | None = None
    """Cost profile: the points are modelled devices with these costs; null: instrumented devices."""

    def topologies(self) -> list[GeneratedTopology]:
        """Return the topology of each point, by ascending value. They may be impossible: see `mistakes`."""
        stated = {each: value for each in DIMENSIONS if (value := getattr(self.base, each)) is not None}
        base = GeneratedTopology(**stated, costs=self.costs or "")
        return [base.replaced(self.vary, value) for value in sorted(set(self.values))]

    def mistakes(self) -> Iterator[tuple[str, str]]:
        """Yield each mistake: JSON pointer into the sweep, and the mistake with its fix."""
        number = len(set(self.values))
        if not LEAST_POINTS <= number <= MOST_POINTS:
            few = number < LEAST_POINTS
            fix = f"name {LEAST_POINTS} to {MOST_POINTS} values" + ("" if few else ", or make several submissions")
            yield "/values", f"{self.vary} has {number} {'value' if number == 1 else 'values'}; {fix}"
        for index, value in enumerate(self.values):
            if self.values.index(value) != index:
                yield f"/values/{index}", f"{self.vary}={value} is listed twice"
            if value == 0 and self.vary == "shard":
                yield f"/values/{index}", "shard=0: a shard has at least one core; use 1 or more"
        if getattr(self.base, self.vary) is not None:
            yield f"/base/{self.vary}", f"{self.vary} varies, so it cannot stay; leave it out of the base"
            return
        for topology in self.topologies():
            if problem := topology.problem():
                yield f"/values/{self.values.index(topology.value(self.vary))}", problem


class SweepPoint(Message):
    """One metric on one topology of a sweep."""

    value: int
    """Value of the dimension that varies."""
    device_type: str
    run_id: int
    verdict: Verdict | None
    """Verdict of the comparison; `failed` also if the run failed; null if there is no comparison."""
    effect: float | None = None
    ci95: tuple[float, float] | None = None
    exact: bool = False
    """True if the effect is the same under each seed, so that it has no interval."""
    baseline: float | None = None
    candidate: float | None = None
    """Means over the seeds; with the question `setting` those of the reference setting and of the setting."""
    seeds: int = 0
    noise_floor: float | None = None
    """Effect in percent below which addresses alone can be the cause; null if it was not measured."""
    reason: str = ""
    """Why there is no effect, as text; empty if there is one."""


class SweepCurve(Message):
    """One metric of one scenario and setting over the topology."""

    plan: str
    scenario: str
    setting: str
    question: Question
    reference: str
    kernel: Arm | None = None
    metric: str
    unit: str
    effect_unit: str
    direction: Direction
    role: Role
    evidence: Evidence = Evidence.INSTRUMENTED
    """Counts, or modelled figures. A topology has no measured ones."""
    delta: float | None = None
    """Threshold of a relevant effect."""
    points: list[SweepPoint]
    """By ascending value."""
    sentence: str
    """Where the verdict changes, derived from the verdicts only: `better from 4 L3 domains up, the same below`."""


class SweepReport(Message):
    """Results of a sweep."""

    vary: Dimension
    title: str
    """What varies and what stays: `1 to 8 L3 domains; 16 CPUs, 1 NUMA node`."""
    axis: str
    """Name of the dimension that varies, in plural: `L3 domains`."""
    curves: list[SweepCurve]
