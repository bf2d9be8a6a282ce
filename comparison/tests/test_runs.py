"""Input and conclusion of one run from its records."""

from __future__ import annotations

from dataclasses import replace

from wqlab_comparison.runs import BYTE_IDENTICAL, RecordedBoot, RecordedRun, conclude_run, facts_of_run
from wqlab_contracts.api.report import UnsupportedView
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.enums import PAIR, Arm, ErrorKind, FindingKind, NotMeasuredCause, Verdict
from wqlab_contracts.messages import Failure
from wqlab_contracts.specs import TestPlan as Plan

PLAN = Plan.model_validate(
    {
        "name": "locks",
        "summary": "counts locks",
        "script": "run.sh",
        "parser": "locks",
        "reference_setting": "",
        "scenarios": [{"name": "flush", "summary": "flushes"}],
        "hardware": {"settings": [""]},
        "emulated": {"settings": [""]},
        "metrics": [],
    }
)
BOOTS = [RecordedBoot(arm, passed=True, valid=True) for arm in PAIR]


def recorded(
    *, figures: bool = True, compared: bool = True, byte_identical: bool = False, failure: Failure | None = None
) -> RecordedRun:
    return RecordedRun(
        plan=PLAN,
        device_type="device",
        emulated=True,
        settings=[""],
        blocks=[[Arm.CANDIDATE, Arm.BASELINE]],
        recipe="debug",
        figures=figures,
        compared=compared,
        byte_identical=byte_identical,
        failure=failure,
    )


def unsupported(reason: str, arm: Arm = Arm.BASELINE) -> UnsupportedView:
    return UnsupportedView(
        scenario="flush", setting="", metric=None, arm=arm, cause=NotMeasuredCause.LACKING, reason=reason
    )


def test_discards_without_an_arm_are_counted_for_none() -> None:
    facts = facts_of_run(recorded(), [Arm.CANDIDATE, None, Arm.CANDIDATE], [])
    assert facts.discarded == {Arm.CANDIDATE: 2}
    assert facts.blocks_discarded == 3
    assert facts.arms == list(PAIR)


def test_order_of_unsupported_entries_makes_no_difference() -> None:
    entries = [unsupported("b"), unsupported("a"), unsupported("c", Arm.CANDIDATE)]
    facts = facts_of_run(recorded(), [], entries)
    assert facts.unsupported == facts_of_run(recorded(), [], reversed(entries)).unsupported
    assert [(each.arm, each.reason) for each in facts.unsupported] == [(Arm.BASELINE, "a"), (Arm.CANDIDATE, "c")]


def test_run_without_comparisons_says_why() -> None:
    canceled = conclude_run(recorded(compared=False), BOOTS, [], [], [])
    assert (canceled.verdict, "not compared" in canceled.headline) == (Verdict.INCONCLUSIVE, True)
    faultless = conclude_run(recorded(figures=False), BOOTS, [], [], [])
    assert faultless.verdict is Verdict.NO_EVIDENCE
    assert "no problem found in 1 boot of the baseline and 1 boot of the candidate" in faultless.headline
    failed = conclude_run(recorded(failure=Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no power")), [], [], [], [])
    assert (failed.verdict, failed.headline) == (Verdict.FAILED, "not measured (infrastructure): no power")


def test_byte_identical_kernels_are_equivalent() -> None:
    found = conclude_run(recorded(byte_identical=True), [], [], [], [])
    assert (found.verdict, found.headline) == (Verdict.EQUIVALENT, BYTE_IDENTICAL)


def test_silent_device_in_a_block_that_the_lab_discarded_is_no_hang() -> None:
    hang = FindingView(
        kind=FindingKind.HANG, arm=Arm.CANDIDATE, block=0, attempt=1, title="no output", excerpt="", console_offset=0,
        fatal=True,
    )  # fmt: skip
    boots = [*BOOTS, RecordedBoot(Arm.CANDIDATE, passed=False, valid=False)]
    run = replace(recorded(), emulated=False)
    assert conclude_run(run, boots, [hang], [], []).verdict is Verdict.FAILED
    assert conclude_run(run, boots, [hang], [], [(0, 1)]).verdict is not Verdict.FAILED
