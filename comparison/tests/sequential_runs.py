"""Runs with looks, made of simulated differences and decided by the shipped code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from literal_samples import PLAN, claims_difference, paired
from noise_shapes import Floats

from wqlab_comparison import Samples, TargetFacts, compare
from wqlab_comparison.looks import LOOKS
from wqlab_comparison.stopping import look_at
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import PAIR, Role, Verdict

DEVICE_TYPE = "ryzen-3900x"


@dataclass(frozen=True)
class Stopped:
    """A run that has stopped: its number of blocks and its primary comparisons."""

    blocks: int
    primaries: list[Comparison]

    @property
    def claimed(self) -> bool:
        """Return True if a difference is claimed in any scenario."""
        return any(map(claims_difference, self.primaries))

    @property
    def equivalent(self) -> bool:
        return all(each.verdict is Verdict.EQUIVALENT for each in self.primaries)


def facts(scenarios: int, planned: Sequence[int], **changes: object) -> TargetFacts:
    """Return a plan on hardware with one primary metric and so many scenarios."""
    plan = PLAN.model_copy(
        update={
            "scenarios": [PLAN.scenarios[0].model_copy(update={"name": f"s{index}"}) for index in range(scenarios)],
            "metrics": [metric for metric in PLAN.metrics if metric.role(False) is Role.PRIMARY],
        }
    )
    given = {
        "plan": plan,
        "device_type": DEVICE_TYPE,
        "emulated": False,
        "arms": list(PAIR),
        "settings": ["scope=cache"],
        "looks": planned,
        "ended": False,
        **changes,
    }
    return TargetFacts(**given)  # type: ignore[arg-type]


def samples(percent: Floats, blocks: int, device_type: str = DEVICE_TYPE) -> Samples:
    """Return the first blocks of a run. `percent`: differences of shape (scenarios, blocks), in percent."""
    return Samples.concatenate(
        [
            paired(
                [1000.0] * blocks,
                (1000 * np.exp(of_scenario[:blocks] / 100)).tolist(),
                scenario=f"s{index}",
                setting="scope=cache",
                plan=PLAN.name,
                device_type=device_type,
            )
            for index, of_scenario in enumerate(percent)
        ]
    )


def run(percent: Floats, planned: Sequence[int] = LOOKS) -> Stopped:
    """Measure block after block until a look stops the run. `percent`: shape (scenarios, blocks), or (blocks,).

    A run with one planned number has a fixed size.
    """
    percent = np.atleast_2d(percent)
    open_run = facts(len(percent), planned)
    blocks = planned[-1]
    for number in planned if len(planned) > 1 else ():
        if look_at(samples(percent, number), [open_run], (PLAN.name, DEVICE_TYPE), number).stops:
            blocks = number
            break
    ended = facts(len(percent), planned if len(planned) > 1 else (), ended=True)
    found = compare(samples(percent, blocks), [ended])
    return Stopped(blocks, [each for each in found if each.role is Role.PRIMARY and each.kernel is None])


def rates(data_sets: Iterator[Floats], planned: Sequence[int] = LOOKS) -> tuple[float, float, float, Counter[int]]:
    """Return the shares of runs that claim a difference and that are equivalent, the mean number of blocks, and how
    many runs stopped at which number."""
    runs = [run(each, planned) for each in data_sets]
    return (
        float(np.mean([each.claimed for each in runs])),
        float(np.mean([each.equivalent for each in runs])),
        float(np.mean([each.blocks for each in runs])),
        Counter(each.blocks for each in runs),
    )
