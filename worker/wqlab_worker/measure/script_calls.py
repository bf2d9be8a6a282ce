"""List the calls of a plan's script within a boot, in order. Pure functions, the same for every backend."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from wqlab_contracts.enums import RunPurpose
from wqlab_contracts.messages import RunJob
from wqlab_contracts.specs import Scenario

from . import monitor, tracer
from .health_check_report import console_marker

TRACED_FUNCTIONS = 100
"""Maximum number of changed functions whose calls a traced boot counts."""
SETUP_TIMEOUT_S = 600.0
"""Time limit of setup and teardown."""


class Cell(NamedTuple):
    """One scenario under one setting: measured together within a boot."""

    setting: str
    scenario: Scenario

    def __str__(self) -> str:
        return f"{self.scenario.name} {self.setting}".strip()


class Repetition(NamedTuple):
    """One execution of the workload in a cell."""

    number: int
    """Number within the cell, over all phases; it identifies the samples of a boot, and is below the declared number of
    repetitions. A repetition beside the monitor, which has no samples, has the number of the untraced one before it."""
    warmup: bool
    traced: bool
    beside_monitor: bool = False
    """True: an untraced repetition that only measures how far the monitor disturbs; it is not compared."""


def cells(job: RunJob, block: int) -> list[Cell]:
    """Return the cells in the order of this block: shuffled by the run's seed, the same for both arms.

    Defaults are shuffled like every other setting: a plan's script writes each knob before each repetition, a default
    too. Otherwise the place in the boot and the setting would be one.
    """
    order = [Cell(setting, scenario) for setting in job.profile.settings for scenario in job.plan.scenarios]
    random.Random(f"{job.seed}/{block}").shuffle(order)  # noqa: S311 - an order, not a secret
    return order


def warming_cell(job: RunJob, block: int) -> Cell | None:
    """Return the cell that is run once at the beginning of a boot and not compared; None if the boot has one cell.

    It is the last one of the order, so that every cell, the first included, follows another one. Which cell it is
    changes with the block, like the order.
    """
    order = cells(job, block)
    return order[-1] if len(order) > 1 else None


def repetitions(job: RunJob, is_stable: Callable[[], bool] = lambda: False) -> Iterator[Repetition]:
    """Yield a cell's repetitions: warm-ups (untraced), then untraced ones, then traced ones.

    `is_stable` is asked before each warm-up after the profile's fewest, and ends them; by default the most are yielded.
    A traced boot has one, in which the plan's script does not trace by itself. In an A/A comparison on hardware, each
    untraced one is followed by one beside the monitor.
    """
    if job.purpose is RunPurpose.TRACE:
        yield Repetition(0, warmup=False, traced=False)
        return
    counts = job.profile.repetitions
    untraced = [(False, False, False)]
    if job.purpose is RunPurpose.CANARY and not job.device.emulated and monitor.SCRIPT in job.files:
        untraced.append((False, False, True))
    number = -1
    for warmups in range(counts.most_warmups):
        if warmups >= counts.warmup and is_stable():
            break
        number += 1
        yield Repetition(number, warmup=True, traced=False)
    for warmup, traced, beside_monitor in untraced * counts.untraced + [(False, True, False)] * counts.traced:
        number += not beside_monitor
        yield Repetition(number, warmup, traced, beside_monitor)


def checks_health(job: RunJob) -> bool:
    """Return True for a health check; failures of its script concern the device."""
    return job.purpose is RunPurpose.HEALTH_CHECK


def is_monitored(job: RunJob, repetition: Repetition) -> bool:
    """Return True if `observer` runs beside this repetition: in a traced boot, a warm-up or a traced one, never a timed
    one that is compared.

    The data folder of a plan may lack the monitor.
    """
    if job.purpose is RunPurpose.TRACE:
        return True
    if monitor.SCRIPT not in job.files or job.plan.is_instrumented:  # the monitor takes virtual time too
        return False
    measures = job.purpose in {RunPurpose.MEASURE, RunPurpose.CANARY}
    return measures and (repetition.warmup or repetition.traced or repetition.beside_monitor)


def observer(job: RunJob) -> str:
    """Return the file of the plan that runs the plan's script in monitored repetitions."""
    return tracer.SCRIPT if job.purpose is RunPurpose.TRACE else monitor.SCRIPT


def parameters(job: RunJob, cell: Cell | None = None, traced: bool = False) -> dict[str, str]:
    """Return the script's environment: parameters of profile and scenario (which take precedence), and the cell."""
    merged = {**job.profile.parameters, **(cell.scenario.parameters if cell else {})}
    environment = {name.upper(): str(value) for name, value in merged.items()}
    environment["WQLAB_SCRATCH"] = " ".join(job.device.scratch)
    if checks_health(job):
        environment["WQLAB_WORD"] = console_marker(job)
    if cell:
        environment["SCENARIO"] = cell.scenario.name
        environment["TRACE"] = "1" if traced else "0"
        if job.plan.is_instrumented:
            environment["WINDOW"] = "1"
        if job.purpose is RunPurpose.TRACE and job.touched:
            environment["CHANGED_FUNCTIONS"] = " ".join(job.touched[:TRACED_FUNCTIONS])
        for knob, value in job.plan.knobs(cell.setting).items():
            environment[f"SETTING_{knob.upper()}"] = value
    return environment


class Call(NamedTuple):
    """One call of the plan's script within a boot."""

    action: str
    environment: dict[str, str]
    limit_s: float
    cell: Cell | None = None
    monitored: bool = False


def calls(job: RunJob, block: int) -> Iterator[Call]:
    """Yield the calls of a boot in order, for a boot without failure in which everything is supported."""
    yield Call("setup", parameters(job), SETUP_TIMEOUT_S)
    if (warming := warming_cell(job, block)) is not None:
        # Without a cell: nothing of it is compared or skipped.
        yield Call("measure", parameters(job, warming), float(job.profile.measure_timeout_s))
    for cell in cells(job, block):
        for repetition in repetitions(job):
            environment, limit_s = parameters(job, cell, repetition.traced), float(job.profile.measure_timeout_s)
            yield Call("measure", environment, limit_s, cell, is_monitored(job, repetition))
    yield Call("teardown", parameters(job), SETUP_TIMEOUT_S)
