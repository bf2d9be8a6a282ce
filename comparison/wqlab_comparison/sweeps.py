"""Say where the verdict changes over the topologies of a sweep. Derived from verdicts only, never from effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from wqlab_contracts.enums import Verdict
from wqlab_contracts.specs import NOUNS, Dimension


class Finding(StrEnum):
    """What a verdict says about one point of a sweep. The value is the word of the sentence."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "the same"
    """Equivalent, or significant but below the threshold of a relevant effect."""
    UNDECIDED = "can't tell"
    WITHHELD = "withheld"
    FAILED = "failed"
    MISSING = "not measured"

    @property
    def decided(self) -> bool:
        """Return True if the verdict compares the two kernels."""
        return self in {Finding.BETTER, Finding.WORSE, Finding.SAME}


_FINDINGS = {
    Verdict.IMPROVEMENT: Finding.BETTER,
    Verdict.REGRESSION: Finding.WORSE,
    Verdict.EQUIVALENT: Finding.SAME,
    Verdict.BELOW_THRESHOLD: Finding.SAME,
    Verdict.INCONCLUSIVE: Finding.UNDECIDED,
    Verdict.WITHHELD: Finding.WITHHELD,
    Verdict.FAILED: Finding.FAILED,
}


@dataclass(frozen=True)
class _Stretch:
    """Neighbouring points with the same finding."""

    finding: Finding
    values: tuple[int, ...]


def finding_of(verdict: Verdict | None) -> Finding:
    """Return what a verdict says about its point; None if there is no comparison."""
    return _FINDINGS.get(verdict, Finding.MISSING) if verdict else Finding.MISSING


def describe_sweep(vary: Dimension, points: Sequence[tuple[int, Verdict | None]]) -> str:
    """Return one sentence, without a capital and a period, on where the verdict changes over the topology.

    `points`: value of the dimension that varies, and the verdict there, by ascending value. Examples: `better from 4 L3
    domains up, the same below`; `the same at all points`; `no clear crossover: better at 2 and 8 L3 domains, the same
    at 4`. A point without a decision is named, and no range contains it. Returns an empty string without points.
    """
    found = [(value, finding_of(verdict)) for value, verdict in points]
    stretches = [
        _Stretch(finding, tuple(value for value, _ in group))
        for finding, group in groupby(found, key=lambda each: each[1])
    ]
    if not stretches:
        return ""
    if len(stretches) == 1:
        return f"{stretches[0].finding} at all points"
    decided = [each for each in stretches if each.finding.decided]
    if len(decided) == 2 and decided[0].finding is not decided[1].finding:
        if len(stretches) == 2:
            return _crossover(vary, *decided)
        if stretches[0] is decided[0] and stretches[-1] is decided[1]:
            between = [each for each in stretches if not each.finding.decided]
            return f"{_gap(vary, *decided)}; {_list(between)}"
    one_finding = len({each.finding for each in decided}) < 2
    text = _list(sorted(stretches, key=lambda each: list(Finding).index(each.finding)), vary)
    return text if one_finding else f"no clear crossover: {text}"


def _crossover(vary: Dimension, low: _Stretch, high: _Stretch) -> str:
    """Describe two findings, one up to a point and one from the next point up. The change is named first."""
    if low.finding is Finding.SAME:
        return f"{high.finding} from {_counted(vary, high.values[0])} up, {low.finding} below"
    if high.finding is Finding.SAME:
        return f"{low.finding} up to {_counted(vary, low.values[-1])}, {high.finding} above"
    return f"{low.finding} up to {_counted(vary, low.values[-1])}, {high.finding} from {high.values[0]} up"


def _gap(vary: Dimension, low: _Stretch, high: _Stretch) -> str:
    """Describe two findings with undecided points between them."""
    if low.finding is Finding.SAME:
        return f"{high.finding} from {_counted(vary, high.values[0])} up, {low.finding} up to {low.values[-1]}"
    return f"{low.finding} up to {_counted(vary, low.values[-1])}, {high.finding} from {high.values[0]} up"


def _list(stretches: Sequence[_Stretch], vary: Dimension | None = None) -> str:
    """List the points of each finding, in the order of the findings; the first value has the noun of `vary`."""
    values: dict[Finding, list[int]] = {}
    for each in stretches:
        values.setdefault(each.finding, []).extend(each.values)
    parts: list[str] = []
    for finding, points in values.items():
        *others, last = [f"{value}" for value in sorted(points)]
        text = f"{', '.join(others)} and {last}" if others else last
        noun = f" {NOUNS[vary][points != [1]]}" if vary and not parts else ""
        parts.append(f"{finding} at {text}{noun}")
    return ", ".join(parts)


def _counted(vary: Dimension, value: int) -> str:
    return f"{value} {NOUNS[vary][value != 1]}"
