"""Say what canaries have shown, in the same words in reports, quotes and pages."""

from __future__ import annotations

from wqlab_contracts.api.canaries import CanaryMetric, CanaryRecord
from wqlab_contracts.enums import CanaryKind

from .words import amount, count

_ARMS = {
    CanaryKind.SAME_KERNEL: "",
    CanaryKind.NOPS: " with nops in one arm",
    CanaryKind.OTHER_LAYOUT: " with another layout in one arm",
}


def record_line(record: CanaryRecord) -> str:
    """Return the record as one sentence without a full stop."""
    found = record.false_positives
    where, arms = f"On {record.device}", f"{record.plan}{_ARMS[record.kind]}"
    if found.rate is None:
        return f"{where}, every boot of {count(record.canaries, 'A/A run')} of {arms} gave the same counts"
    interval = ""
    if found.rate_low is not None and found.rate_high is not None:
        interval = f" (95 % interval {percent(found.rate_low)} to {percent(found.rate_high)} %)"
    return (
        f"{where}, {count(found.comparisons, 'A/A comparison')} of {arms}: {found.called_different} called different, "
        f"{percent(found.rate)} %{interval}"
    )


def percent(share: float) -> str:
    """Return a share in percent with one decimal, without the sign: `2.7`, `0`."""
    return f"{100 * share:.1f}".removesuffix(".0")


def floor_text(metric: CanaryMetric) -> str:
    """Return the floor: `0.62 %`, or `0` if no boot ever differed."""
    return "0" if metric.floor is None else amount(metric.floor, metric.effect_unit)
