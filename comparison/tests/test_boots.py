"""Medians over repetitions, and pairs of boots."""

import pytest
from literal_samples import one, paired

from wqlab_comparison import Samples, SamplesError, compare
from wqlab_contracts.enums import Verdict


def test_unpaired_blocks_are_left_out_and_counted():
    comparison = one([10, 11, 12, 500], [10, 11, 12])
    assert (comparison.baseline.n, comparison.candidate.n) == (3, 3)
    assert comparison.baseline.mean == 11
    assert comparison.blocks_discarded == 1


def test_boot_value_is_the_median_without_warmup_repetitions():
    samples = Samples.concatenate(
        [
            paired([900] * 6, [900] * 6, repetition=0, warmup=True),
            paired([10] * 6, [20] * 6, repetition=1),
            paired([11] * 6, [21] * 6, repetition=2),
            paired([80] * 6, [90] * 6, repetition=3),
        ]
    )
    (comparison,) = compare(samples)
    assert (comparison.baseline.mean, comparison.candidate.mean, comparison.baseline.n) == (11, 21, 6)


def test_blocks_of_two_devices_are_different_blocks():
    samples = Samples.concatenate([paired([1, 2, 3], [1, 2, 3]), paired([1, 2, 4], [1, 2, 3], device="ryzen-2")])
    (comparison,) = compare(samples)
    assert comparison.baseline.n == 6


def test_boots_on_two_devices_are_not_paired():
    samples = Samples.concatenate([paired([1, 2], [], device="a"), paired([], [1, 2], device="b")])
    (comparison,) = compare(samples)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.blocks_discarded == 4


def test_two_boots_of_one_arm_in_a_block_are_rejected():
    with pytest.raises(SamplesError, match="block 0 on ryzen-1 has two baseline boots"):
        compare(paired([1, 2], [1, 2], block=[0, 0, 0, 1]))


def test_repeated_repetition_is_rejected():
    with pytest.raises(SamplesError, match="repetition 0 of boot baseline-0"):
        compare(Samples.concatenate([paired([1], [2]), paired([3], [4])]))


def test_metric_with_two_descriptions_is_rejected():
    with pytest.raises(SamplesError, match="unit 'KiB/s' and 'MiB/s'"):
        compare(paired([1, 2], [3, 4], unit=["MiB/s", "MiB/s", "MiB/s", "KiB/s"]))
