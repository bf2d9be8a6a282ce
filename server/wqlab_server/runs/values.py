"""Read the values of one metric in one scenario and setting of a run: each boot's value and its repetitions."""

from __future__ import annotations

import statistics
from collections import defaultdict

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.steps import BootPoint, CellValues
from wqlab_contracts.yamlfile import suggest_name

from ..http.problems import not_found
from ..models import Boot, BootValue, Run, Sample


def cell_values(session: Session, run: Run, scenario: str, metric: str, setting: str | None) -> CellValues:
    """Return the values of boots in finished blocks.

    Until the comparison has stored a boot's value, the value is the median of the boot's repetitions, as in the
    comparison. Raises ApiProblem 404 for a scenario or metric that the run's plan does not have.
    """
    scenarios = {each.name for each in run.plan.scenarios}
    metrics = {each.name: each for each in run.plan.metrics}
    if scenario not in scenarios:
        raise not_found(f"scenario of run {run.id}", scenario, suggest_name(scenario, scenarios))
    if metric not in metrics:
        raise not_found(f"metric of run {run.id}", metric, suggest_name(metric, set(metrics)))
    samples = (
        select(Sample.boot_id, Sample.setting, Sample.value)
        .join(Boot, Boot.id == Sample.boot_id)
        .where(
            Sample.run_id == run.id,
            Sample.scenario == scenario,
            Sample.metric == metric,
            Sample.warmup.is_(False),
            Boot.valid,
        )
        .order_by(Sample.boot_id, Sample.setting, Sample.repetition)
    )
    compared = select(BootValue.boot_id, BootValue.setting, BootValue.value).where(
        BootValue.run_id == run.id, BootValue.scenario == scenario, BootValue.metric == metric
    )
    if setting is not None:
        samples, compared = samples.where(Sample.setting == setting), compared.where(BootValue.setting == setting)
    repetitions: dict[tuple[int, str], list[float]] = defaultdict(list)
    for boot_id, of_setting, value in session.execute(samples):
        repetitions[boot_id, of_setting].append(value)
    values = {(boot_id, of_setting): value for boot_id, of_setting, value in session.execute(compared)}
    boots = {
        row.id: row
        for row in session.execute(
            select(Boot.id, Boot.block, Boot.position, Boot.arm, Boot.device_name).where(
                Boot.run_id == run.id, Boot.valid
            )
        )
    }
    points = [
        BootPoint(
            boot_id=boot_id,
            block=boots[boot_id].block,
            position=boots[boot_id].position,
            arm=boots[boot_id].arm,
            device=boots[boot_id].device_name,
            setting=of_setting,
            value=values.get((boot_id, of_setting), statistics.median(each)),
            repetitions=each,
        )
        for (boot_id, of_setting), each in repetitions.items()
    ]
    points.sort(key=lambda point: (point.block, point.position, point.setting))
    return CellValues(run_id=run.id, scenario=scenario, metric=metric, unit=metrics[metric].unit, points=points)
