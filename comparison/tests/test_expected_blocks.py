"""Predicted number of blocks of a run with looks."""

import numpy as np
import pytest
from noise_shapes import differences
from sequential_runs import rates

from wqlab_comparison.effect import bounds
from wqlab_comparison.expected_blocks import expected_blocks
from wqlab_comparison.looks import LOOKS
from wqlab_contracts.enums import Scale

LIMITS = bounds(1.0, Scale.RATIO)


def noise(deviation: float) -> np.ndarray:
    return np.random.default_rng(1).normal(0, deviation / 100, 40)


def test_quiet_devices_need_the_first_look_only_and_noisy_ones_are_given_up() -> None:
    assert expected_blocks(noise(0.1), LIMITS, LOOKS) == 6
    assert expected_blocks(noise(0.8), LIMITS, LOOKS) > 8
    assert expected_blocks(noise(20), LIMITS, LOOKS) < 12


def test_equal_input_gives_an_equal_result() -> None:
    assert expected_blocks(noise(0.8), LIMITS, LOOKS) == expected_blocks(noise(0.8), LIMITS, LOOKS)


def test_prediction_agrees_with_simulated_runs() -> None:
    past = differences("normal", np.random.default_rng(2), 1, 200)[0] / 100
    _, _, blocks, _ = rates(iter(differences("normal", np.random.default_rng(3), 60, 16)))
    assert expected_blocks(past, LIMITS, LOOKS) == pytest.approx(blocks, abs=2)
