"""A modelled device in a lab of tests, whose boots report the costs of their virtual time."""

from __future__ import annotations

from wqlab_contracts.enums import Arm, Outcome
from wqlab_contracts.messages import BlockFinished, BootKey, RunResult, Samples

from .datafolder import add_modelled
from .lab import NOW, LabUnderTest, RunSession, fill_pool

HASH = "ab" * 32
"""Hash of the costs."""


def add_modelled_device(lab: LabUnderTest) -> None:
    """Add a device of type `model` whose candidate has 7 % less throughput."""
    add_modelled(lab.settings.data_dir)
    lab.app.state.data._checked_at = float("-inf")
    with lab.transaction() as session:
        fill_pool(session, lab.data)
    lab.mark_all_good()
    lab.worker.value = lambda arm, setting, metric, block: (100 + block) * (0.93 if arm is Arm.CANDIDATE else 1)
    lab.worker.on_run = with_costs


def with_costs(run: RunSession) -> RunResult:
    """Run all boots, which report the costs of their virtual time."""
    for plan in run.remaining:
        for position, arm in enumerate(plan.arms):
            key = BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
            costs = Samples(at=NOW, boot=key, samples=[], facts={"cost profile": f"ryzen-3900x sha256:{HASH}"})
            *events, finished = run.boot_events(key)
            run.send(*events, costs, finished)
        run.send(BlockFinished(at=NOW, block=plan.block, attempt=plan.first_attempt))
    return RunResult(outcome=Outcome.PASSED)
