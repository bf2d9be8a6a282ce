"""`wqlab ab --quick`: the exit code and the line for one boot."""

from __future__ import annotations

from pathlib import Path

import pytest
from ab_runs import METRIC, PANIC, ROOT, ScriptedBackend, begun

from wqlab_client.ab import run
from wqlab_client.ab.job import find_data
from wqlab_client.ab.quick import CHECKS, Check, judge, worst
from wqlab_contracts.enums import Arm, ExitCode


@pytest.mark.parametrize(
    ("backend", "zero", "code", "said"),
    [
        (ScriptedBackend(lambda *_: 0.0), METRIC, ExitCode.DONE, f"passed, boots without a fault, {METRIC} 0"),
        (ScriptedBackend(lambda *_: 2.0), METRIC, ExitCode.SERIES_FAILED, f"FAILED, {METRIC} is 2, not 0"),
        (ScriptedBackend(), "time_s", ExitCode.DONE, "not measured: time_s"),
        (ScriptedBackend(panics=frozenset({Arm.BASELINE})), METRIC, ExitCode.SERIES_FAILED, PANIC),
        (ScriptedBackend(stop_in=0), METRIC, ExitCode.INFRASTRUCTURE, "not checked, interrupted"),
    ],
)
def test_boot_is_judged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backend: ScriptedBackend,
    zero: str,
    code: ExitCode,
    said: str,
) -> None:
    folder = begun(tmp_path, blocks=1, arms=[Arm.BASELINE])
    monkeypatch.setattr(run, "_backend", lambda *_: backend)
    found, text = judge(Check("hackbench", "pipes", [zero]), run.measure_all(folder, tmp_path, lambda _: None))
    assert (found, said in text) == (code, True), text


def test_each_check_is_of_a_plan_that_counts_it() -> None:
    for each in CHECKS:
        plan = find_data(ROOT).plans[each.plan]
        assert each.scenario in {scenario.name for scenario in plan.scenarios}
        assert {plan.metric(name).unit for name in each.zero} == {"works"}


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([ExitCode.DONE, ExitCode.DONE], ExitCode.DONE),
        ([ExitCode.DONE, ExitCode.INFRASTRUCTURE], ExitCode.INFRASTRUCTURE),
        ([ExitCode.SERIES_FAILED, ExitCode.INFRASTRUCTURE], ExitCode.SERIES_FAILED),
        ([ExitCode.INFRASTRUCTURE, ExitCode.SERIES_FAILED], ExitCode.SERIES_FAILED),
    ],
)
def test_a_fault_of_the_kernel_decides_the_exit_code(codes: list[ExitCode], code: ExitCode) -> None:
    assert worst(codes) is code
