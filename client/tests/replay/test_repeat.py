"""Tests of what a lab can repeat."""

import pytest

from wqlab_client.replay.repeat import emulated_topology
from wqlab_contracts.specs import Topology

FOUR_DOMAINS = Topology(sockets=1, l3_per_socket=4, cores_per_l3=2, threads_per_core=1, numa_nodes=1)


def test_generated_type_can_be_repeated_in_a_lab_that_never_had_it() -> None:
    assert emulated_topology("instrumented-8c-4l3-1n", {}) == FOUR_DOMAINS


@pytest.mark.parametrize("name", ["xeon-2s", "instrumented-8c-3l3-1n", "instrumented-4l3"])
def test_type_that_the_lab_cannot_have_is_not_repeated(name: str) -> None:
    assert emulated_topology(name, {}) is None
