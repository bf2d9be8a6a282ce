"""Build samples from literal arrays, and a matching plan, for tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wqlab_comparison import ALPHA, Samples, TargetFacts, compare
from wqlab_contracts.api.report import ArmSummary, Comparison
from wqlab_contracts.enums import Arm, Direction, Evidence, Question, Role, Scale, Verdict
from wqlab_contracts.specs import TestPlan

DEFAULTS: dict[str, Any] = {
    "device_type": "ryzen-3900x",
    "device": "ryzen-1",
    "plan": "dm-crypt",
    "scenario": "HIGH",
    "setting": "",
    "position": 0,
    "repetition": 0,
    "warmup": False,
    "metric": "bandwidth",
    "unit": "MiB/s",
    "scale": "ratio",
    "direction": "higher_is_better",
    "role": "primary",
    "evidence": "performance",
    "delta": None,
}


def paired(baseline: Sequence[float], candidate: Sequence[float], **columns: Any) -> Samples:
    """Return one sample per boot; block i holds baseline[i] and candidate[i]."""
    arms = ["baseline"] * len(baseline) + ["candidate"] * len(candidate)
    return Samples.from_columns(
        **{
            **DEFAULTS,
            "block": [*range(len(baseline)), *range(len(candidate))],
            "arm": arms,
            "boot": [f"{arm}-{index}" for index, arm in enumerate(arms)],
            "value": [*baseline, *candidate],
            **columns,
        }
    )


def studied(settings: dict[str, Sequence[float]], **columns: Any) -> Samples:
    """Return samples of a settings study: boot i of the baseline kernel has the value settings[name][i]."""
    names = [name for name, values in settings.items() for _ in values]
    boots = [index for values in settings.values() for index in range(len(values))]
    return Samples.from_columns(
        **{
            **DEFAULTS,
            "arm": "baseline",
            "setting": names,
            "block": boots,
            "boot": [str(boot) for boot in boots],
            "value": [value for values in settings.values() for value in values],
            **columns,
        }
    )


def one(baseline: Sequence[float], candidate: Sequence[float], **columns: Any) -> Comparison:
    """Return the only comparison of one metric."""
    (comparison,) = compare(paired(baseline, candidate, **columns))
    return comparison


def with_moments(mean: float, deviation: float, shape: Sequence[float]) -> list[float]:
    """Return values with exactly this mean and sample standard deviation, distributed like `shape`."""
    z = np.array(shape, float)
    z = (z - z.mean()) / z.std(ddof=1)
    return [float(value) for value in mean + deviation * z]


PLAN = TestPlan.model_validate(
    {
        "name": "dm-crypt",
        "summary": "",
        "script": "run.sh",
        "parser": "fio",
        "scenarios": [{"name": "HIGH", "summary": ""}, {"name": "LOW", "summary": ""}],
        "axes": [{"name": "scope", "values": ["system", "cache", "cache_shard"]}],
        "reference_setting": "scope=system",
        "hardware": {"settings": ["scope=system", "scope=cache"]},
        "emulated": {"settings": ["scope=system", "scope=cache"]},
        "metrics": [
            {
                "name": "l3_share",
                "summary": "",
                "unit": "%",
                "scale": "difference",
                "direction": "higher_is_better",
                "class": "mechanism",
                "taken_from": "traced",
                "role_emulated": "primary",
            },
            {
                "name": "bandwidth",
                "summary": "",
                "unit": "MiB/s",
                "scale": "ratio",
                "direction": "higher_is_better",
                "class": "performance",
                "taken_from": "untraced",
                "role_hardware": "primary",
            },
        ],
    }
)


def target(**changes: Any) -> TargetFacts:
    """Return facts of PLAN on the default device type: a settings study unless `changes` replace that."""
    facts: dict[str, Any] = {
        "plan": PLAN,
        "device_type": "ryzen-3900x",
        "emulated": True,
        "arms": [Arm.BASELINE],
        "settings": ["scope=system", "scope=cache", "scope=cache_shard"],
    }
    return TargetFacts(**{**facts, **changes})


def claims_difference(of: Comparison) -> bool:
    """Return True if the comparison says that something changed: also `inconclusive` does, if only the relevance of
    the change is open."""
    claims = {Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD}
    return of.verdict in claims or (of.p_adjusted is not None and of.p_adjusted <= ALPHA)


def cell(
    scenario: str = "HIGH",
    setting: str = "scope=cache",
    metric: str = "l3_share",
    reason: str = "too few",
    **more: Any,
) -> Comparison:
    """Return an inconclusive comparison of two settings; `more` replaces fields."""
    values = {
        "plan": "plan",
        "device_type": "type",
        "scenario": scenario,
        "setting": setting,
        "question": Question.SETTING,
        "reference": "scope=system",
        "kernel": Arm.BASELINE,
        "metric": metric,
        "unit": "locks",
        "scale": Scale.DIFFERENCE,
        "direction": Direction.LOWER_IS_BETTER,
        "role": Role.PRIMARY,
        "evidence": Evidence.MECHANISM,
        "baseline": ArmSummary(mean=34, stddev=0, n=2),
        "candidate": ArmSummary(mean=4, stddev=0, n=2),
        "verdict": Verdict.INCONCLUSIVE,
        "reason": reason,
    }
    return Comparison.model_validate({**values, **more})
