"""What differs between traced boots: the rule, the words, and how often noise alone is called a difference."""

from __future__ import annotations

import numpy as np
import pytest

from wqlab_comparison.differences import KEPT, Sides, TracedBoot, differences, sentences
from wqlab_contracts.api.explanations import TracedDifference
from wqlab_contracts.traced_counts import Row, TracedTopic

PLAIN = Row(scenario="fsync", setting="", topic=TracedTopic.QUEUED, name="f").model_dump(exclude={"name", "count"})
QUEUED, MIGRATED, CONTENDED = TracedTopic.QUEUED, TracedTopic.MIGRATED, TracedTopic.CONTENDED


def row(topic: TracedTopic, name: str, count: int, total_us: int | None = None, p99_us: int | None = None) -> Row:
    return Row(scenario="fsync", setting="", topic=topic, name=name, count=count, total_us=total_us, p99_us=p99_us)


def boot(*rows: Row, operations: int = 1000) -> TracedBoot:
    done = [row(TracedTopic.OPERATIONS, "fsync", operations)] if operations else []
    return TracedBoot.of([*done, *rows])


def side(*rows: Row, operations: int = 1000) -> list[TracedBoot]:
    """Return six boots whose counts vary by up to 2.5 %."""
    return [
        boot(
            *(each.model_copy(update={"count": round(each.count * (1 + vary))}) for each in rows), operations=operations
        )
        for vary in (0.0, 0.02, -0.01, 0.01, -0.02, 0.025)
    ]


def judged(left: list[TracedBoot], right: list[TracedBoot], *, times: bool = False) -> list[TracedDifference]:
    [found] = differences([Sides(left, right)], times=times)
    return found


def texts(left: list[TracedBoot], right: list[TracedBoot]) -> list[str]:
    return [each.text for each in judged(left, right)]


def test_counts_are_per_operation_and_the_largest_relative_change_is_first() -> None:
    left = side(row(QUEUED, "a", 4100), row(QUEUED, "b", 2010))
    right = side(row(QUEUED, "a", 810), row(QUEUED, "b", 6030), operations=2000)
    found = texts(left, right)
    assert [text.split(":")[0] for text in found] == ["work items of a", "work items of b"]
    assert all(text.endswith(" per fsync") for text in found)
    [first, _] = judged(left, right)
    assert (first.reference[0], first.compared[0]) == (4.1, 0.405)


def test_fewer_than_six_blocks_show_nothing() -> None:
    left, right = side(row(QUEUED, "a", 1000)), side(row(QUEUED, "a", 9000))
    assert len(texts(left, right)) == 1
    assert texts(left[:5], right[:5]) == []
    assert texts(left, right[:5]) == []


def test_blocks_that_do_not_agree_are_no_difference() -> None:
    left = [boot(row(QUEUED, "a", 1000)) for _ in range(6)]
    right = [boot(row(QUEUED, "a", count)) for count in (4000, 9000, 3000, 2000, 5000, 900)]
    assert texts(left, right) == []


@pytest.mark.parametrize(("before", "after", "shown"), [(90, 0, 0), (120, 0, 1), (0, 90, 0), (0, 120, 1), (0, 0, 0)])
def test_rare_events_are_not_judged(before: int, after: int, shown: int) -> None:
    sides = [side(row(MIGRATED, "between NUMA nodes", count)) for count in (before, after)]
    assert len(texts(*sides)) == shown


@pytest.mark.parametrize(("percent", "shown"), [(9, 0), (14, 1)])
def test_interval_must_be_beyond_ten_percent(percent: int, shown: int) -> None:
    left = [boot(row(QUEUED, "a", 10_000)) for _ in range(6)]
    right = [boot(row(QUEUED, "a", 10_000 + 100 * (percent + more))) for more in (-2, -1, 0, 0, 1, 2)]
    assert len(texts(left, right)) == shown


def test_change_whose_size_is_uncertain_is_not_shown() -> None:
    """It is larger in each block, and by 30 % on average, but perhaps by less than 10 %."""
    left = [boot(row(QUEUED, "a", 10_000)) for _ in range(6)]
    right = [boot(row(QUEUED, "a", count)) for count in (10_200, 10_800, 11_000, 13_000, 16_000, 17_000)]
    assert texts(left, right) == []


def test_places_where_works_started_are_lines() -> None:
    def six(on_cpu: int, off: int) -> list[TracedBoot]:
        return [
            boot(
                row(QUEUED, "a", on_cpu + off).model_copy(
                    update={"on_cpu": on_cpu + vary, "on_l3": 0, "on_node": off - vary, "off_node": 0}
                )
            )
            for vary in (0, 9, -7, 4, -3, 8)
        ]

    found = texts(six(900, 1100), six(300, 1700))
    assert [text.split(":")[0] for text in found] == [
        "work items of a that started on the CPU that queued them",
        "work items of a that started in another last-level cache domain",
    ]


def test_times_are_compared_only_where_they_are_evidence() -> None:
    left = [boot(row(QUEUED, "a", 1000, 1_200_000 + more, 4096)) for more in range(6)]
    right = [boot(row(QUEUED, "a", 1000, 300_000 + more, 512)) for more in range(6)]
    assert texts(left, right) == []
    (found,) = judged(left, right, times=True)
    assert found.text == "time from queueing to start of a, mean: 1.20 -> 0.30 ms (p99 at most 4.1 ms -> 512 us)"
    assert (found.is_time, found.unit) == (True, "us")
    assert (found.reference[0], found.compared[0]) == (1200, 300)


def test_a_time_needs_events_in_every_boot() -> None:
    left = [boot(row(CONTENDED, "mutex", 1000, 900_000, 1024)) for _ in range(6)]
    right = [*(boot(row(CONTENDED, "mutex", 1000, 100_000 + more, 128)) for more in range(5)), boot()]
    assert not [each for each in judged(left, right, times=True) if each.is_time]


def test_workloads_with_different_operations_are_counted_per_repetition() -> None:
    left, right = side(row(QUEUED, "a", 1000)), side(row(QUEUED, "a", 3000), operations=0)
    assert [text.split(" -> ")[1] for text in texts(left, right)] == ["3012.50 per repetition"]


def test_only_the_first_difference_of_a_function_is_a_sentence() -> None:
    left = side(*(row(QUEUED, name, 1000, 900_000, 1024) for name in "abcd"))
    right = side(*(row(QUEUED, name, 5000, 100_000, 64) for name in "abcd"))
    ranked = judged(left, right, times=True)
    assert len(ranked) == 8
    assert len(sentences(ranked)) == 3
    assert len({each.split(" of ")[1].split(",")[0].split(":")[0] for each in sentences(ranked)}) == 3


def test_at_most_so_many_differences_are_kept() -> None:
    left = side(*(row(QUEUED, f"f{n}", 1000) for n in range(50)))
    right = side(*(row(QUEUED, f"f{n}", 9000) for n in range(50)))
    assert len(texts(left, right)) == KEPT


def test_no_boots_no_differences() -> None:
    assert differences([], times=True) == []
    assert judged([], [boot(row(QUEUED, "a", 1000))]) == []


def noisy(rng: np.random.Generator, blocks: int, deviation: float, factor: float = 1.0) -> list[TracedBoot]:
    """Return boots with 20 functions whose counts vary; that of the first one is `factor` times that of the others."""
    counts = 1000 * np.exp(rng.normal(0, deviation, (blocks, 20)))
    counts[:, 0] *= factor
    rows = {
        (QUEUED, f"f{n}"): [Row.model_construct(**PLAIN, name=f"f{n}", count=round(count)) for count in of]
        for n, of in enumerate(counts.T)
    }
    return [TracedBoot({line: of[block] for line, of in rows.items()}, 1000, "fsync") for block in range(blocks)]


@pytest.mark.parametrize("blocks", [6, pytest.param(16, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("deviation", [0.03, 0.3])
def test_noise_alone_seldom_shows_anything(blocks: int, deviation: float) -> None:
    """Two scenarios of equal kernels with 20 lines each are one family: at most 5 % of reports show any line."""
    rng = np.random.default_rng(7)
    shown = 0
    for _ in range(150):
        sides = [Sides(noisy(rng, blocks, deviation), noisy(rng, blocks, deviation)) for _ in range(2)]
        shown += any(differences(sides, times=False))
    assert shown / 150 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)


@pytest.mark.parametrize(("factor", "share"), [(1.5, 0.6), (3.0, 0.95)])
def test_large_changes_are_shown_beside_noise(factor: float, share: float) -> None:
    """One of twenty lines changes; all vary by 5 % between boots."""
    rng = np.random.default_rng(8)
    shown = [{each.name for each in judged(noisy(rng, 6, 0.05), noisy(rng, 6, 0.05, factor))} for _ in range(100)]
    assert np.mean(["f0" in names for names in shown]) >= share
    assert np.mean([bool(names - {"f0"}) for names in shown]) <= 0.08
