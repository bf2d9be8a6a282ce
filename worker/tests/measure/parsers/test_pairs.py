"""Shares compared with a count item by item."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts.messages import MeasuredTopology
from wqlab_worker.measure.collect import NotMeasured, Unsupported, read_records
from wqlab_worker.measure.parsers.pairs import chance, locality, read_pairs, share

CPUS = 8
items = st.lists(
    st.tuples(st.integers(0, CPUS - 1), st.integers(0, CPUS - 1), st.integers(1, 9), st.integers(0, 10**9)),
    min_size=1,
    max_size=30,
)
layouts = st.lists(st.integers(0, 3), min_size=CPUS, max_size=CPUS)


def text_of(found: list[tuple[int, int, int, int]]) -> str:
    return "begin\tpairs\n" + "".join(f"{q} {e} {n} {ns}\n" for q, e, n, ns in found) + "end\tpairs\n"


@given(items, layouts)
def test_share_counts_each_item(found: list[tuple[int, int, int, int]], domain: list[int]) -> None:
    pairs = read_pairs(read_records(text_of(found)), range(CPUS))
    each = [(q, e) for q, e, n, _ in found for _ in range(n)]
    expected = 100 * sum(domain[q] == domain[e] for q, e in each) / len(each)
    assert share(pairs, domain) == pytest.approx(expected)
    assert 0 <= share(pairs, domain) <= 100


@given(items, layouts)
def test_chance_is_the_mean_over_all_cpus(found: list[tuple[int, int, int, int]], domain: list[int]) -> None:
    pairs = read_pairs(read_records(text_of(found)), range(CPUS))
    spread = [(q, cpu) for q, _, n, _ in found for _ in range(n) for cpu in range(CPUS)]
    assert chance(pairs, domain) == pytest.approx(100 * sum(domain[q] == domain[e] for q, e in spread) / len(spread))


@given(items, st.permutations(range(CPUS)))
def test_renumbering_the_cpus_changes_nothing(found: list[tuple[int, int, int, int]], new: list[int]) -> None:
    def topology(number: list[int]) -> MeasuredTopology:
        place = sorted(range(CPUS), key=lambda cpu: number[cpu])
        return MeasuredTopology(
            cpus=CPUS,
            core=[place[cpu] // 2 for cpu in range(CPUS)],
            l3=[place[cpu] // 4 for cpu in range(CPUS)],
            node=[0] * CPUS,
            package=[0] * CPUS,
        )

    renumbered = [(new[q], new[e], n, ns + 1) for q, e, n, ns in found]
    before = locality(read_records(text_of([(q, e, n, ns + 1) for q, e, n, ns in found])), topology(list(range(CPUS))))
    assert locality(read_records(text_of(renumbered)), topology(new)) == pytest.approx(before)


def test_two_cpus_in_one_l3_are_always_local() -> None:
    tiny = MeasuredTopology(cpus=2, core=[0, 1], l3=[0, 0], node=[0, 0], package=[0, 0])
    found = locality(read_records(text_of([(0, 1, 3, 10), (1, 1, 1, 20)])), tiny)
    assert found["local_l3_share"] == found["local_node_share"] == found["local_l3_by_chance"] == 100.0
    assert found["local_cpu_share"] == 25.0


def test_time_share_weights_items_by_execution_time() -> None:
    two_l3 = MeasuredTopology(cpus=2, core=[0, 1], l3=[0, 1], node=[0, 0], package=[0, 0])
    found = locality(read_records(text_of([(0, 0, 1, 900), (0, 1, 9, 100)])), two_l3)
    assert (found["local_l3_share"], found["local_l3_time_share"]) == (10.0, 90.0)


HOLES = MeasuredTopology(cpus=4, online=[0, 2, 4, 6], core=[0, 1, 2, 3], l3=[0, 0, 1, 1], node=[0] * 4, package=[0] * 4)
"""CPU numbers under nosmt on four cores with two threads each."""


def test_cpus_keep_their_numbers_where_others_are_offline() -> None:
    found = locality(read_records(text_of([(0, 2, 3, 1), (4, 6, 3, 1), (6, 6, 1, 1), (2, 4, 1, 1)])), HOLES)
    assert (found["local_l3_share"], found["local_cpu_share"]) == (87.5, 12.5)
    assert found["local_l3_by_chance"] == 50.0


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (8, 0)])
def test_pair_of_an_offline_cpu_is_not_measured(pair: tuple[int, int]) -> None:
    unknown = max(pair) if 8 in pair else 1
    with pytest.raises(NotMeasured, match=f"CPU {unknown} is not one of the 4 CPUs"):
        locality(read_records(text_of([(*pair, 1, 1)])), HOLES)


def test_core_numbers_repeat_in_every_package() -> None:
    topology = MeasuredTopology(cpus=4, core=[0, 1, 0, 1], l3=[0, 0, 1, 1], node=[0, 0, 1, 1], package=[0, 0, 1, 1])
    assert locality(read_records(text_of([(0, 2, 1, 1)])), topology)["local_core_share"] == 0.0


def test_l3_shares_are_unsupported_without_l3() -> None:
    topology = MeasuredTopology(cpus=2, core=[0, 1], l3=[-1, -1], node=[0, 0], package=[0, 0])
    found = locality(read_records(text_of([(0, 1, 1, 1)])), topology)
    assert isinstance(found["local_l3_share"], Unsupported)
    assert isinstance(found["local_l3_by_chance"], Unsupported)
    assert found["local_node_share"] == 100.0


def test_incomplete_topology_is_not_measured() -> None:
    with pytest.raises(NotMeasured, match="all 4 CPUs"):
        locality(read_records(text_of([(0, 2, 1, 1)])), HOLES.model_copy(update={"online": [0, 2]}))
    with pytest.raises(NotMeasured, match="all 2 CPUs"):
        locality(
            read_records(text_of([(0, 1, 1, 1)])), MeasuredTopology(cpus=2, core=[0], l3=[0], node=[0], package=[0])
        )
