"""Samples for tests: literal arrays in, a table out; and a plan that they could come from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wqlab_comparison import Samples, TargetFacts, compare
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import Arm
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
    """One sample per boot; block i holds baseline[i] and candidate[i]."""
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
    """A settings study: boot i of the baseline kernel gave settings[name][i] under each setting."""
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
    """The only comparison of one metric."""
    (comparison,) = compare(paired(baseline, candidate, **columns))
    return comparison


def with_moments(mean: float, deviation: float, shape: Sequence[float]) -> list[float]:
    """Values with exactly this mean and sample standard deviation, spread as `shape` is."""
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
    """PLAN on the device type that samples have by default: a settings study, unless `changes` say otherwise."""
    facts: dict[str, Any] = {
        "plan": PLAN,
        "device_type": "ryzen-3900x",
        "emulated": True,
        "arms": [Arm.BASELINE],
        "settings": ["scope=system", "scope=cache", "scope=cache_shard"],
    }
    return TargetFacts(**{**facts, **changes})
