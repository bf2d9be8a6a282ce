"""What is asked of a plan's script within a boot, and in which order. Pure: the same for a device that is driven step by
step and for one that is given the whole boot at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from wqlab_contracts.enums import RunPurpose
from wqlab_contracts.messages import RunJob
from wqlab_contracts.specs import Scenario

from . import monitor
from .health_check import word_of

SETUP_TIMEOUT_S = 600.0


class Cell(NamedTuple):
    """What is measured together within a boot."""

    setting: str
    scenario: Scenario

    def __str__(self) -> str:
        return f"{self.scenario.name} {self.setting}".strip()


class Repetition(NamedTuple):
    number: int
    """Counted through the whole cell: samples of a boot are unique by it."""
    warmup: bool
    traced: bool


def cells(job: RunJob, block: int) -> list[Cell]:
    """In the order of this block: shuffled by the run's seed, the same for both arms."""
    order = [Cell(setting, scenario) for setting in job.profile.settings for scenario in job.plan.scenarios]
    random.Random(f"{job.seed}/{block}").shuffle(order)  # noqa: S311 - an order, not a secret
    return order


def repetitions(job: RunJob) -> Iterator[Repetition]:
    """Warm-ups (untraced), then untraced, then traced ones."""
    counts = job.profile.repetitions
    phases = [(True, False)] * counts.warmup + [(False, False)] * counts.untraced + [(False, True)] * counts.traced
    for number, (warmup, traced) in enumerate(phases):
        yield Repetition(number, warmup, traced)


def checks_health(job: RunJob) -> bool:
    """The script's complaints are about the device then."""
    return job.purpose is RunPurpose.HEALTH_CHECK


def is_monitored(job: RunJob, repetition: Repetition) -> bool:
    """What is timed runs alone. A plan of an earlier release has no monitor among its files."""
    measures = job.purpose is RunPurpose.MEASURE and monitor.SCRIPT in job.files
    return measures and (repetition.warmup or repetition.traced)


def parameters(job: RunJob, cell: Cell | None = None, traced: bool = False) -> dict[str, str]:
    """Environment of the script: profile parameters, the scenario's over them, and what is being measured."""
    chosen = {**job.profile.parameters, **(cell.scenario.parameters if cell else {})}
    environment = {name.upper(): str(value) for name, value in chosen.items()}
    environment["WQLAB_SCRATCH"] = " ".join(job.device.scratch)
    if checks_health(job):
        environment["WQLAB_WORD"] = word_of(job)
    if cell:
        environment["SCENARIO"] = cell.scenario.name
        environment["TRACE"] = "1" if traced else "0"
        for knob, value in job.plan.knobs(cell.setting).items():
            environment[f"SETTING_{knob.upper()}"] = value
    return environment


class Call(NamedTuple):
    """One time that the plan's script is run within a boot."""

    action: str
    environment: dict[str, str]
    limit_s: float
    cell: Cell | None = None
    monitored: bool = False


def calls(job: RunJob, block: int) -> Iterator[Call]:
    """All of a boot in which nothing goes wrong and everything is supported, in their order."""
    yield Call("setup", parameters(job), SETUP_TIMEOUT_S)
    for cell in cells(job, block):
        for repetition in repetitions(job):
            environment, limit_s = parameters(job, cell, repetition.traced), float(job.profile.measure_timeout_s)
            yield Call("measure", environment, limit_s, cell, is_monitored(job, repetition))
    yield Call("teardown", parameters(job), SETUP_TIMEOUT_S)
