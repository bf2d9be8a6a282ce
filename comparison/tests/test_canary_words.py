"""Sentences about canaries."""

from datetime import UTC, datetime

import pytest

from wqlab_comparison.canary_words import floor_text, percent, record_line
from wqlab_contracts.api.canaries import CanaryMetric, CanaryRecord, FalsePositiveRate, SmallestEffect
from wqlab_contracts.enums import CanaryKind, Evidence, Role, Scale

RATE = FalsePositiveRate(
    comparisons=412, called_different=11, constant=0, rate=11 / 412, rate_low=0.01497, rate_high=0.04713
)


def record(rate=RATE, kind=CanaryKind.SAME_KERNEL):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return CanaryRecord(
        device="xeon-2s-1", device_type="xeon-2s", plan="xfs-fsync", kind=kind, canaries=60, since=at, until=at,
        false_positives=rate, metrics=[],
    )  # fmt: skip


def metric(scale=Scale.RATIO, floor=0.6247, effects=(2.1, 1.31, 1.08, None)):
    return CanaryMetric(
        metric="bandwidth", unit="percent", scale=scale, role=Role.PRIMARY, evidence=Evidence.PERFORMANCE,
        scenario="high", floor=floor, blocks=360, false_positives=RATE,
        effects=[SmallestEffect(blocks=n, effect=size) for n, size in zip((6, 8, 10, 16), effects, strict=False)],
    )  # fmt: skip


def test_record_states_count_rate_and_interval():
    assert record_line(record()) == (
        "On xeon-2s-1, 412 A/A comparisons of xfs-fsync: 11 called different, 2.7 % (95 % interval 1.5 to 4.7 %)"
    )


def test_kind_is_named():
    assert "of xfs-fsync with nops in one arm:" in record_line(record(kind=CanaryKind.NOPS))


def test_counts_that_never_varied_have_no_rate():
    constant = FalsePositiveRate(
        comparisons=0, called_different=0, constant=60, rate=None, rate_low=None, rate_high=None
    )
    assert record_line(record(constant)) == (
        "On xeon-2s-1, every boot of 60 A/A runs of xfs-fsync gave the same counts"
    )


@pytest.mark.parametrize(("share", "text"), [(0.0267, "2.7"), (0.0, "0"), (1.0, "100"), (0.0004, "0")])
def test_percent(share, text):
    assert percent(share) == text


def test_floor_has_its_unit():
    assert floor_text(metric()) == "0.625 %"
    assert floor_text(metric(Scale.DIFFERENCE)) == "0.625 points"
    assert floor_text(metric(floor=None)) == "0"
