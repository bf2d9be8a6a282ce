"""Series with a deliberate fault in kernel/workqueue.c: the plan made for it finds the fault and names it.

In the nightly suite, because six blocks of each take some minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from .conftest import SERIES, Lab, comparisons, scenarios

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]


@dataclass(frozen=True)
class Fault:
    """A planted fault: the series, the plan that must find it, and what the report must say."""

    series: str
    plan: str
    metric: str
    """Primary metric of the plan, which is 0 with the baseline."""
    fact: str
    """Fact that only boots of the candidate report."""
    names: str
    """Part of the fact's value: the work function or task at fault."""
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.series


FAULTS = [
    Fault(
        series="ignores-isolation",
        plan="isolation",
        metric="works_on_isolated",
        fact="works on isolated CPUs cpumask",
        names="(kcryptd_crypt) on CPU 1",
        arguments=("--scenario", "cpumask"),
    ),
    Fault(
        series="loses-works-at-hotplug",
        plan="hotplug",
        metric="works_lost",
        fact="lost works",
        names="load_work_fn queued on CPU 1 and never started",
    ),
]


@pytest.fixture(scope="module")
def submissions(lab: Lab) -> dict[str, int]:
    """Submit all faults at once, so that both devices are in use."""
    return {
        fault.series: lab.submit(
            *("--mbox", str(SERIES / f"{fault.series}.mbox"), "--no-trace"),
            *("--target", f"{fault.plan}@tiny", *fault.arguments, "--blocks", "6"),
        )
        for fault in FAULTS
    }


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_planted_fault_is_found_and_named(lab: Lab, submissions: dict[str, int], fault: Fault) -> None:
    report = lab.finish(submissions[fault.series], codes=(1,))
    (target,) = report["targets"]
    assert (target["outcome"], target["verdict"]) == ("passed", "regression"), target["failure"]
    [found] = comparisons(report, metric=fault.metric)
    assert found["verdict"] == "regression"
    assert found["baseline"]["mean"] == 0 < found["candidate"]["mean"]
    assert fault.names in named(target, fault.fact)


def test_lost_wakeups_of_idle_workers_are_found(lab: Lab) -> None:
    """The series loses wakeups of high-priority pools only."""
    submission = lab.submit(
        *("--mbox", str(SERIES / "loses-wakeups.mbox"), "--blocks", "2"),
        *("--target", "work-latency@tiny", *scenarios("percpu", "highpri")),
    )
    report = lab.finish(submission, codes=(1,))
    found = {c["scenario"]: c for c in comparisons(report, metric="loses_wakeups")}
    assert found["highpri"]["verdict"] == "regression"
    assert (found["highpri"]["baseline"]["mean"], found["highpri"]["candidate"]["mean"]) == (0, 1)
    assert found["percpu"]["verdict"] == "equivalent"
    [lost] = comparisons(report, metric="lost_wakeups", scenario="highpri")
    assert lost["candidate"]["mean"] >= 1
    assert {c["candidate"]["mean"] for c in comparisons(report, metric="works_lost")} == {0}, "the next work wakes them"


def named(target: dict[str, Any], fact: str) -> str:
    """Return what the candidate's boots report as this fact; the baseline's must not report it."""
    [difference] = [each for each in target["environment"]["differences"] if each["name"] == fact]
    assert difference["baseline"] == "not reported"
    return str(difference["candidate"])
