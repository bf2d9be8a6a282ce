"""Ranking of what differs between traced boots: the rule, the words, and how often noise alone ranks."""

from __future__ import annotations

import random

import pytest

from wqlab_comparison.differences import KEPT, TracedBoot, differences, sentences
from wqlab_contracts.traced_counts import Row, TracedTopic

QUEUED, MIGRATED, CONTENDED = TracedTopic.QUEUED, TracedTopic.MIGRATED, TracedTopic.CONTENDED


def row(topic: TracedTopic, name: str, count: int, total_us: int | None = None, p99_us: int | None = None) -> Row:
    return Row(scenario="fsync", setting="", topic=topic, name=name, count=count, total_us=total_us, p99_us=p99_us)


def boot(*rows: Row, operations: int = 1000) -> TracedBoot:
    done = [row(TracedTopic.OPERATIONS, "fsync", operations)] if operations else []
    return TracedBoot.of([*done, *rows])


def texts(left: list[TracedBoot], right: list[TracedBoot], *, times: bool = False) -> list[str]:
    return [each.text for each in differences(left, right, times=times)]


def test_counts_are_per_operation_and_the_largest_relative_change_is_first() -> None:
    left = [boot(row(QUEUED, "a", 4000), row(QUEUED, "b", 2000)), boot(row(QUEUED, "a", 4200), row(QUEUED, "b", 2020))]
    right = [
        boot(row(QUEUED, "a", 800), row(QUEUED, "b", 6000), operations=2000),
        boot(row(QUEUED, "a", 820), row(QUEUED, "b", 6060), operations=2000),
    ]
    assert texts(left, right) == [
        "work items of a: 4.10 -> 0.41 per fsync",
        "work items of b: 2.01 -> 3.01 per fsync",
    ]


def test_boots_that_do_not_agree_are_no_difference() -> None:
    left = [boot(row(QUEUED, "a", 1000)), boot(row(QUEUED, "a", 5000))]
    right = [boot(row(QUEUED, "a", 4000)), boot(row(QUEUED, "a", 9000))]
    assert texts(left, right) == []


@pytest.mark.parametrize(("before", "after", "ranked"), [(99, 0, 0), (100, 0, 1), (0, 99, 0), (0, 100, 1), (0, 0, 0)])
def test_rare_events_are_not_ranked(before: int, after: int, ranked: int) -> None:
    sides = [[boot(row(MIGRATED, "between NUMA nodes", count)) for _ in range(2)] for count in (before, after)]
    assert len(texts(*sides)) == ranked


def test_small_changes_are_not_ranked() -> None:
    sides = [[boot(row(QUEUED, "a", count)) for _ in range(2)] for count in (10_000, 10_900)]
    assert texts(*sides) == []


def test_a_rare_event_that_vanishes_ranks_behind_a_frequent_one() -> None:
    left = [boot(row(QUEUED, "rare", 110), row(QUEUED, "frequent", 100_000)) for _ in range(2)]
    right = [boot(row(QUEUED, "frequent", 10_000)) for _ in range(2)]
    assert [text.split(":")[0] for text in texts(left, right)] == ["work items of frequent", "work items of rare"]


def test_times_are_compared_only_where_they_are_evidence() -> None:
    left = [boot(row(QUEUED, "a", 1000, 1_200_000, 4096)) for _ in range(2)]
    right = [boot(row(QUEUED, "a", 1000, 300_000, 512)) for _ in range(2)]
    assert texts(left, right) == []
    (found,) = differences(left, right, times=True)
    assert found.text == "time from queueing to start of a, mean: 1200 -> 300 us (p99 at most 4096 -> 512 us)"
    assert (found.is_time, found.unit, found.reference, found.compared) == (True, "us", [1200, 1200], [300, 300])


def test_a_time_needs_events_in_every_boot() -> None:
    left = [boot(row(CONTENDED, "mutex", 1000, 900_000, 1024)) for _ in range(2)]
    right = [boot(row(CONTENDED, "mutex", 1000, 100_000, 128)), boot()]
    assert not [each for each in differences(left, right, times=True) if each.is_time]


def test_workloads_with_different_operations_are_counted_per_repetition() -> None:
    left = [boot(row(QUEUED, "a", 1000)) for _ in range(2)]
    right = [boot(row(QUEUED, "a", 3000), operations=0) for _ in range(2)]
    assert texts(left, right) == ["work items of a: 1000 -> 3000 per repetition"]


def test_only_the_first_difference_of_a_function_is_a_sentence() -> None:
    left = [boot(*(row(QUEUED, name, 1000, 900_000, 1024) for name in "abcd")) for _ in range(2)]
    right = [boot(*(row(QUEUED, name, 5000, 100_000, 64) for name in "abcd")) for _ in range(2)]
    ranked = differences(left, right, times=True)
    assert len(ranked) == 8
    assert len(sentences(ranked)) == 3
    assert len({text.split(":")[0].rsplit(" ", 1)[-1] for text in sentences(ranked)}) >= 1


def test_at_most_so_many_differences_are_kept() -> None:
    left = [boot(*(row(QUEUED, f"f{n}", 1000) for n in range(50))) for _ in range(2)]
    right = [boot(*(row(QUEUED, f"f{n}", 9000) for n in range(50))) for _ in range(2)]
    assert len(differences(left, right, times=False)) == KEPT


def test_no_boots_no_differences() -> None:
    assert differences([], [boot(row(QUEUED, "a", 1000))], times=True) == []


def test_noise_alone_seldom_ranks() -> None:
    """Counts of equal kernels that vary by 3 % between boots: boots must agree and differ by 10 %."""
    chance = random.Random(7)

    def noisy() -> list[TracedBoot]:
        return [boot(*(row(QUEUED, f"f{n}", round(chance.gauss(1000, 30))) for n in range(10))) for _ in range(2)]

    ranked = sum(len(differences(noisy(), noisy(), times=False)) for _ in range(200))
    assert ranked / 2000 < 0.005
