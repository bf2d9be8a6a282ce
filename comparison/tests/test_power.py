"""Sample sizes and smallest detectable effects."""

import pytest

from wqlab_comparison import significance
from wqlab_comparison.power import blocks_that_decide, smallest_effect


def test_blocks_that_decide_agree_with_the_sample_size_formula():
    # One sd per block against a threshold of one: equivalence at no effect takes (1.73 + .86)^2, about 10 blocks.
    assert blocks_that_decide(6, 0.0, 1.0, (-1.0, 1.0), 0.05) in range(8, 13)
    # An effect of one sd: (2.26 + .88)^2, about 10.
    assert blocks_that_decide(6, 1.0, 1.0, (-1.0, 1.0), 0.05) in range(8, 13)
    # A hundred blocks do not see a hundredth of a sd.
    assert blocks_that_decide(6, 0.01, 1.0, (-0.01, 0.01), 0.05) is None
    assert blocks_that_decide(2, 10.0, 0.1, (-1.0, 1.0), 0.05) == 6


@pytest.mark.parametrize("blocks", [6, 8, 20, 90])
def test_smallest_effect_is_the_inverse_of_blocks_that_decide(blocks: int) -> None:
    """The two formulas are inverse: a slightly larger effect needs no more blocks, a slightly smaller one does."""
    smallest = smallest_effect(blocks, 0.01, significance.ALPHA)
    assert smallest is not None

    def deciding(mean: float) -> int | None:
        return blocks_that_decide(blocks - 1, mean, 0.01, (-1.0, mean), significance.ALPHA)  # never equivalent

    assert deciding(smallest * 1.001) == blocks
    assert (deciding(smallest * 0.999) or 101) > blocks


def test_too_few_blocks_have_no_detectable_effect() -> None:
    assert smallest_effect(5, 0.01, significance.ALPHA) is None
