"""Warm-up repetitions go on until the primary figures are stable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from pydantic import ValidationError

from wqlab_contracts.enums import Arm, MetricClass, Outcome, Role, Scale
from wqlab_contracts.messages import BootKey, RunJob, Sample, Samples
from wqlab_contracts.specs import Repetitions
from wqlab_worker.measure.script_calls import calls

from .scripted import ScriptedDevice, job, run


def adaptive(**changes: object) -> RunJob:
    """Return a job of one cell with two to four warm-ups, whose metric `speed` is a primary one with the changes."""
    work = job(blocks=1, kernels=(Arm.BASELINE,), arms=[[Arm.BASELINE]])
    primary = {
        "metric_class": MetricClass.PERFORMANCE, "scale": Scale.RATIO, "role_hardware": Role.PRIMARY, **changes
    }  # fmt: skip
    speed, share = work.plan.metrics
    plan = work.plan.model_copy(
        update={"metrics": [speed.model_copy(update=primary), share], "scenarios": work.plan.scenarios[:1]}
    )
    counts = Repetitions(warmup=2, warmup_most=4, untraced=1, traced=0)
    profile = work.profile.model_copy(update={"repetitions": counts, "settings": ["scope=cache"]})
    return work.model_copy(update={"plan": plan, "profile": profile})


def measure(work: RunJob, speeds: Sequence[float]) -> tuple[list[Sample], list[str]]:
    """Run a boot whose repetitions have these speeds; return its samples, and what it says of its warm-ups."""
    left: Iterator[float] = iter(speeds)

    def answer(_key: BootKey, action: str, _environment: Mapping[str, str]) -> str | None:
        return (
            f"setting\tscope\tcache\nvalue\tspeed\t{next(left)}\nsetting_after\tscope\tcache\n"
            if action == "measure"
            else None
        )

    result, sink = run(work, ScriptedDevice(on_script=answer))
    assert result.outcome is Outcome.PASSED
    events = sink.of(Samples)
    said = [text for event in events for name, text in event.facts.items() if name == "warm-up low scope=cache"]
    return [sample for event in events for sample in event.samples], said


@pytest.mark.parametrize(
    ("speeds", "discarded", "fact"),
    [
        ((100, 101, 100), 2, "stable after 2 repetitions: speed 1.0 %"),
        ((50, 90, 99, 100, 100), 4, "stable after 4 repetitions: speed 1.0 %"),
        ((50, 100, 50, 100, 75), 4, "not stable after 4 repetitions: speed 66.7 %"),
    ],
)
def test_warmups_are_repeated_until_the_primary_figure_is_stable(
    speeds: Sequence[float], discarded: int, fact: str
) -> None:
    samples, said = measure(adaptive(), speeds)
    assert [(each.repetition, each.value, each.warmup) for each in samples] == [
        *((number, speeds[number], True) for number in range(discarded)),
        (discarded, speeds[discarded], False),
    ]
    assert said == [fact]


@pytest.mark.parametrize(
    "changes", [{"role_hardware": Role.SECONDARY}, {"metric_class": MetricClass.MECHANISM}, {"scale": Scale.DIFFERENCE}]
)
def test_only_timed_primary_figures_are_judged(changes: dict[str, object]) -> None:
    samples, said = measure(adaptive(**changes), (50, 100, 75))
    assert sum(sample.warmup for sample in samples) == 2
    assert said == ["stable after 2 repetitions: no timed primary metric"]


def test_a_list_of_calls_that_is_fixed_before_the_boot_has_the_most_warmups() -> None:
    """A LAVA job decides nothing on the device."""
    assert [call.action for call in calls(adaptive(), 0)] == ["setup", *["measure"] * 5, "teardown"]


@pytest.mark.parametrize(("warmup", "most"), [(1, 5), (5, 5), (6, 5)])
def test_bounds_that_leave_nothing_to_judge_are_refused(warmup: int, most: int) -> None:
    with pytest.raises(ValidationError, match="warmup_most: 5 needs a `warmup` of at least 2"):
        Repetitions(warmup=warmup, warmup_most=most)
