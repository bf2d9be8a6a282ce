"""Sharing a submission's budget of blocks among its runs."""

import numpy as np
from shared_budget import measure

from wqlab_comparison.budget import RunBlocks, share_out


def waits(blocks: int, next_look: int, expected: float, last_look: int = 16) -> RunBlocks:
    return RunBlocks(blocks, next_look, last_look, expected)


def measures(blocks: int, last_look: int = 16) -> RunBlocks:
    return RunBlocks(blocks, last_look=last_look)


def ended(blocks: int) -> RunBlocks:
    return RunBlocks(blocks, last_look=blocks)


def granted(shares):
    return {key: share.granted for key, share in shares.items()}


def test_budget_that_suffices_for_all_holds_nobody():
    shares = share_out(32, {1: waits(6, 10, 0.1), 2: measures(6)})
    assert granted(shares) == {1: True}
    assert shares[1].text == "4 blocks: the others can use all their blocks too"


def test_scarce_blocks_wait_until_every_run_is_looked_at():
    assert share_out(20, {1: waits(6, 10, 0.9), 2: measures(6)}) == {}


def test_blocks_go_where_they_decide_most():
    shares = share_out(20, {1: waits(6, 10, 0.2), 2: waits(6, 10, 0.7)})
    assert granted(shares) == {2: True, 1: True}
    shares = share_out(17, {1: waits(6, 10, 0.2), 2: waits(6, 10, 0.7)})
    assert granted(shares) == {2: True}, "one block is left, the other waits: a failed run may return some"
    assert shares[2].text == "4 blocks of 5 left, as number 1 of 2 waiting targets: 0.70 decisions expected"


def test_decisions_count_per_block():
    """A look that is six blocks away must promise half as much again as one that is four away."""
    assert granted(share_out(22, {1: waits(10, 16, 0.5), 2: waits(6, 10, 0.4)})) == {2: True}
    assert granted(share_out(22, {1: waits(10, 16, 0.7), 2: waits(6, 10, 0.4)})) == {1: True}


def test_blocks_that_a_large_step_leaves_go_to_the_next_run_that_fits():
    shares = share_out(21, {1: waits(10, 16, 0.9), 2: waits(6, 10, 0.1)})
    assert granted(shares) == {2: True}


def test_spent_budget_ends_the_runs_that_wait():
    shares = share_out(24, {1: waits(10, 16, 0.9), 2: waits(10, 16, 0.3)})
    assert granted(shares) == {1: False, 2: False}
    assert shares[1].text == "its next look needs 6 blocks, and the budget of 24 has 4 left"


def test_blocks_of_a_run_that_ended_early_go_to_the_others():
    assert granted(share_out(24, {1: ended(6), 2: waits(10, 16, 0.3)})) == {2: True}


def test_run_in_its_last_stage_holds_nobody():
    assert granted(share_out(30, {1: measures(16), 2: waits(10, 16, 0.3)})) == {2: False}


def test_order_of_the_runs_makes_no_difference():
    runs = {1: waits(6, 10, 0.3), 2: waits(6, 10, 0.3), 3: waits(10, 16, 0.9)}
    assert share_out(33, runs) == share_out(33, dict(reversed(runs.items())))


def test_overspent_budget_gives_nothing():
    """A run of fixed size takes all its blocks, whatever the budget is."""
    assert granted(share_out(20, {1: ended(32), 2: waits(6, 10, 0.9)})) == {2: False}


# --- rates, with fewer submissions than benchmarks/budget.py ----------------------------------------------

NOISE = np.array([0.5, 1.0, 1.0, 2.0])
"""Standard deviation of the differences of each target, percent."""


def test_shared_budget_makes_at_most_five_percent_false_claims():
    """Which target gets the next blocks depends on the data; p is valid at every planned look nevertheless."""
    rng, sets = np.random.default_rng(41), 60
    draws = rng.normal(size=(sets, len(NOISE), 16)) * NOISE[:, None]
    claimed = sum(measure(d, 32).claims(range(len(NOISE))) for d in draws)
    assert claimed / sets <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / sets)


def test_no_submission_uses_more_than_its_budget():
    rng, sets = np.random.default_rng(42), 30
    draws = rng.normal(size=(sets, len(NOISE), 16)) * NOISE[:, None] + np.array([0.0, 3.0, 1.2, 0.0])[:, None]
    used = [sum(measure(d, 36).blocks) for d in draws]
    assert max(used) <= 36
    assert min(used) >= 4 * 6, "first looks are owed"
