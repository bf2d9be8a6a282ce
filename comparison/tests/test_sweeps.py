"""The sentence on a sweep: each point is in exactly one statement, and the statement is that of its verdict."""

from __future__ import annotations

import re
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_comparison.sweeps import Finding, describe_sweep, finding_of
from wqlab_contracts.enums import Verdict

B, W, S, U, F = (
    Verdict.IMPROVEMENT,
    Verdict.REGRESSION,
    Verdict.EQUIVALENT,
    Verdict.INCONCLUSIVE,
    Verdict.FAILED,
)


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([S, S, B, B], "better from 4 L3 domains up, the same below"),
        ([S, S, W, W], "worse from 4 L3 domains up, the same below"),
        ([W, W, S, S], "worse up to 2 L3 domains, the same above"),
        ([B, S, S, S], "better up to 1 L3 domain, the same above"),
        ([W, W, B, B], "worse up to 2 L3 domains, better from 4 up"),
        ([S, S, S, S], "the same at all points"),
        ([B, B, B, B], "better at all points"),
        ([U, U, U, U], "can't tell at all points"),
        ([F, F, F, F], "failed at all points"),
        ([None, None, None, None], "not measured at all points"),
        ([S, B, S, B], "no clear crossover: better at 2 and 8 L3 domains, the same at 1 and 4"),
        ([W, S, B, B], "no clear crossover: better at 4 and 8 L3 domains, worse at 1, the same at 2"),
        ([S, U, B, B], "better from 4 L3 domains up, the same up to 1; can't tell at 2"),
        ([W, U, F, S], "worse up to 1 L3 domain, the same from 8 up; can't tell at 2, failed at 4"),
        ([S, S, B, U], "no clear crossover: better at 4 L3 domains, the same at 1 and 2, can't tell at 8"),
        ([S, S, F, S], "the same at 1, 2 and 8 L3 domains, failed at 4"),
        ([B, None, F, F], "better at 1 L3 domain, failed at 4 and 8, not measured at 2"),
        ([S, Verdict.BELOW_THRESHOLD, S, B], "better from 8 L3 domains up, the same below"),
        ([Verdict.UNSUPPORTED, S, S, S], "the same at 2, 4 and 8 L3 domains, not measured at 1"),
    ],
)
def test_sentence(verdicts: list[Verdict | None], sentence: str) -> None:
    assert describe_sweep("l3", list(zip([1, 2, 4, 8], verdicts, strict=True))) == sentence


def test_other_dimensions_have_their_own_noun() -> None:
    assert describe_sweep("nodes", [(1, S), (2, B)]) == "better from 2 NUMA nodes up, the same below"
    assert describe_sweep("cpus", [(8, W), (16, S)]) == "worse up to 8 CPUs, the same above"
    assert describe_sweep("cpus", []) == ""


def claims(sentence: str, values: list[int]) -> dict[int, list[Finding]]:
    """Read a sentence: point -> the findings that it claims there. Written without the code under test."""
    words = {
        "better": Finding.BETTER,
        "worse": Finding.WORSE,
        "the same": Finding.SAME,
        "can't tell": Finding.UNDECIDED,
    }
    words |= {"failed": Finding.FAILED, "not measured": Finding.MISSING}
    text = re.sub(r" (CPUs?|L3 domains?|NUMA nodes?)\b", "", sentence.removeprefix("no clear crossover: "))
    found: dict[int, list[Finding]] = {value: [] for value in values}
    other = 0
    places = r"at all points|at \d+(?:(?:, | and )\d+)*|from \d+ up|up to \d+|below|above"
    for word, where in re.findall(rf"({'|'.join(words)}) ({places})", text):
        numbers = [int(number) for number in re.findall(r"\d+", where)]
        if where == "at all points":
            covered = values
        elif where.startswith("at "):
            covered = numbers
        elif where.startswith("from "):
            covered, other = [value for value in values if value >= numbers[0]], numbers[0]
        elif where.startswith("up to "):
            covered, other = [value for value in values if value <= numbers[0]], numbers[0]
        else:
            covered = [value for value in values if (value < other if where == "below" else value > other)]
        for value in covered:
            found[value].append(words[word])
    return found


VERDICTS = [B, W, S, Verdict.BELOW_THRESHOLD, U, F, None]


def check(points: list[tuple[int, Verdict | None]]) -> None:
    sentence = describe_sweep("l3", points)
    claimed = claims(sentence, [value for value, _ in points])
    assert claimed == {value: [finding_of(verdict)] for value, verdict in points}, sentence


def test_every_sentence_on_four_points_is_complete_and_true() -> None:
    for verdicts in product(VERDICTS, repeat=4):
        check(list(zip([1, 2, 4, 8], verdicts, strict=True)))


@given(st.dictionaries(st.integers(1, 64), st.sampled_from(VERDICTS), min_size=1, max_size=8))
def test_every_sentence_is_complete_and_true(points: dict[int, Verdict | None]) -> None:
    check(sorted(points.items()))


@given(st.dictionaries(st.integers(1, 64), st.sampled_from([B, W, S]), min_size=2, max_size=8))
def test_a_range_is_claimed_only_if_the_verdict_changes_once(points: dict[int, Verdict | None]) -> None:
    """With a decision everywhere, `no clear crossover` means more than one change, and a range exactly one."""
    ordered = [verdict for _, verdict in sorted(points.items())]
    changes = sum(one is not other for one, other in pairwise(ordered))
    sentence = describe_sweep("cpus", sorted(points.items()))
    assert sentence.endswith("at all points") == (changes == 0)
    assert sentence.startswith("no clear crossover") == (changes > 1)
