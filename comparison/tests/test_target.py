"""Verdict and headline of one target."""

from datetime import UTC, datetime

import pytest
from literal_samples import one, studied

from wqlab_comparison import Stated, compare, conclude, summarise
from wqlab_comparison.target import BootCount
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Verdict
from wqlab_contracts.keys import describe_defect
from wqlab_contracts.messages import Failure, StackFrame

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOCKS = {"metric": "locks", "unit": "locks", "evidence": "mechanism", "direction": "lower_is_better"}
FEWER = one([33] * 3, [3] * 3, scenario="fewer", **LOCKS)
MORE = one([33] * 3, [99] * 3, scenario="more", **LOCKS)
SAME = one([33] * 3, [33] * 3, scenario="same", **LOCKS)
UNSURE = one([33, 34, 33], [33, 33, 34], scenario="unsure", **LOCKS)
VALUE = one([1.0], [2.0], evidence="none", role="explanatory", scenario="value")


def secondary(baseline, candidate):
    columns = {**LOCKS, "metric": "locks_per_fsync", "scale": "ratio", "role": "secondary", "scenario": "secondary"}
    return one(baseline, candidate, **columns, delta=1.0)


def finding(
    arm=Arm.CANDIDATE, kind=FindingKind.PANIC, block=0, fatal=True, attempt=0, title="Kernel panic - not syncing"
):
    return FindingView(
        kind=kind,
        arm=arm,
        block=block,
        attempt=attempt,
        title=title,
        excerpt=f"trace of {title}",
        console_offset=0,
        fatal=fatal,
    )


@pytest.mark.parametrize(
    ("comparisons", "verdict"),
    [
        ([FEWER], Verdict.IMPROVEMENT),
        ([FEWER, MORE, SAME], Verdict.REGRESSION),
        ([FEWER, SAME, UNSURE], Verdict.IMPROVEMENT),
        ([SAME, SAME], Verdict.EQUIVALENT),
        ([SAME, UNSURE], Verdict.INCONCLUSIVE),
        ([FEWER, VALUE], Verdict.IMPROVEMENT),
        ([], Verdict.INCONCLUSIVE),
    ],
)
def test_verdict_of_a_target_is_the_most_severe_significant_one(comparisons, verdict):
    assert conclude(comparisons).verdict is verdict


@pytest.mark.parametrize(("caller", "verdict"), [("flush_all", Verdict.IMPROVEMENT), ("free_all", Verdict.FAILED)])
def test_oops_of_the_baseline_excuses_only_the_same_call_trace(caller, verdict):
    title = "BUG: kernel NULL pointer dereference, address: 0000000000000008"
    findings = []
    for arm, function, line in ((Arm.BASELINE, "flush_all", 20), (Arm.CANDIDATE, caller, 23)):
        stack = [StackFrame(function=function, file="kernel/workqueue.c", line=line)]
        defect = describe_defect(FindingKind.OOPS, title, stack)
        findings.append(finding(arm, FindingKind.OOPS, title=title).model_copy(update={"defect": defect}))
    assert conclude([FEWER], findings).verdict is verdict


def test_panic_after_an_oops_is_no_failure_of_its_own():
    oops = finding(kind=FindingKind.OOPS, title="BUG: kernel NULL pointer dereference, address: 8")
    headline = conclude([FEWER], [oops, finding(), finding(attempt=1)]).headline
    assert headline.startswith("the candidate showed oops in 1 boot: BUG")
    assert "the candidate showed panic in 1 boot" in headline, "the panic of another boot"


def test_headline_contains_the_figures():
    counted = "33 -> 3 lock acquisitions; a code path count, the same in every boot (n=3)"
    assert conclude([FEWER]).headline == f"locks: {counted}"
    assert conclude([FEWER, UNSURE]).headline.startswith(f"fewer: locks: {counted}")


@pytest.mark.parametrize(
    ("metric", "unit", "text"),
    [
        ("locks_per_flush", "locks", "33 -> 3 lock acquisitions per flush; a code path count,"),
        ("migrations_per_1000_ios", "migrations", "33 -> 3 migrations per 1000 ios; a code path count,"),
        ("works_lost", "works", "works_lost: 33 -> 3 works; a code path count,"),
        ("local_l3_share", "%", "local_l3_share: 33 -> 3 %, the same"),
    ],
)
def test_counts_are_worded_as_what_they_are(metric, unit, text):
    assert conclude([FEWER.model_copy(update={"metric": metric, "unit": unit})]).headline.startswith(text)
    assert "of the others 1 inconclusive" in conclude([FEWER, UNSURE]).headline


CANCELED = Failure(kind=ErrorKind.CANCELED, summary="canceled by its owner")
WORSE = secondary([20.0, 20.1, 19.9, 20.0, 20.2, 19.8], [22.6, 22.7, 22.5, 22.6, 22.8, 22.4])
BETTER = secondary([22.6, 22.7, 22.5, 22.6, 22.8, 22.4], [20.0, 20.1, 19.9, 20.0, 20.2, 19.8])


@pytest.mark.parametrize(
    ("comparisons", "verdict", "headline"),
    [
        ([SAME, WORSE], Verdict.REGRESSION, "locks_per_fsync +13.0 % ["),
        ([UNSURE, WORSE], Verdict.REGRESSION, "locks_per_fsync +13.0 % ["),
        ([FEWER, WORSE], Verdict.REGRESSION, "locks_per_fsync +13.0 % ["),
        ([MORE, WORSE], Verdict.REGRESSION, "locks: 33 -> 99"),
        ([WORSE], Verdict.REGRESSION, "locks_per_fsync +13.0 % ["),
        (
            [SAME, BETTER],
            Verdict.EQUIVALENT,
            "locks is 33 in every boot of both kernels (n=3); better: locks_per_fsync -11.5 %",
        ),
        ([FEWER, BETTER], Verdict.IMPROVEMENT, "locks: 33 -> 3"),
    ],
)
def test_regression_of_any_judged_metric_is_the_verdict_and_leads_the_headline(comparisons, verdict, headline):
    found = conclude([each.model_copy(update={"scenario": ""}) for each in comparisons])
    assert found.verdict is verdict
    assert found.headline.startswith(headline)


def test_headline_says_what_the_primary_metric_says_beside_a_regression():
    assert conclude([FEWER, WORSE]).headline.endswith("; better: fewer locks 33 -> 3")
    assert "; same: locks is 33 in every boot of both kernels" in conclude([SAME, WORSE]).headline
    assert "better: " not in conclude([FEWER, BETTER]).headline


@pytest.mark.parametrize("failure", [Failure(kind=kind, summary="over") for kind in ErrorKind])
def test_canceled_run_did_not_fail(failure):
    canceled = failure.kind is ErrorKind.CANCELED
    assert conclude([], failure=failure).verdict is (Verdict.INCONCLUSIVE if canceled else Verdict.FAILED)


def on(device_type, *comparisons, verdict=None, plan="xfs-fsync", failure=None, **kind):
    found = verdict or conclude(comparisons, failure=failure).verdict
    return Stated(
        plan,
        device_type,
        kind.pop("emulated", False),
        found,
        kind.pop("study", False),
        failure,
        comparisons=comparisons,
        **kind,
    )


TIMED = one([100.0] * 6, [107.0, 107.1, 106.9, 107.0, 107.2, 106.8], scenario="HIGH")


@pytest.mark.parametrize(
    ("targets", "text"),
    [
        ([], ""),
        (
            [on("xeon-2s", FEWER, emulated=True)],
            "Better: locks 33 -> 3 on xeon-2s (emulated). Speed was not measured.",
        ),
        (
            [on("xeon-2s", SAME, emulated=True), on("tiny", SAME, WORSE, emulated=True)],
            "Worse: locks per fsync +13.0 % on tiny (emulated). "
            "No change of locks on tiny (emulated) and xeon-2s (emulated). Speed was not measured.",
        ),
        (
            [on("xeon-2s", FEWER, MORE, SAME)],
            "Worse: locks 33 -> 99 in more on xeon-2s. Better: locks 33 -> 3 in fewer on xeon-2s. "
            "Speed was not measured.",
        ),
        ([on("epyc", TIMED)], "Better: bandwidth +7.00 % on epyc."),
        (
            [
                on("n100", verdict=Verdict.FAILED, failure=Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no power")),
                on("pentium", verdict=Verdict.FAILED, failure=Failure(kind=ErrorKind.KERNEL, summary="panic")),
                on("atom", failure=CANCELED),
            ],
            "Fails on pentium. Not measured (infrastructure) on n100. Not measured (canceled) on atom.",
        ),
        (
            [on("xeon-2s", FEWER, verdict=Verdict.FAILED), on("tiny", verdict=Verdict.EQUIVALENT)],
            "Fails on xeon-2s. Byte-identical kernels on tiny. Speed was not measured.",
        ),
        (
            [on("tiny", UNSURE), on("xeon-2s", FEWER, plan="dm-crypt")],
            "Better: locks 33 -> 3 on xeon-2s (dm-crypt). Can't tell yet on tiny (xfs-fsync). Speed was not measured.",
        ),
    ],
)
def test_summary_says_what_was_found_and_that_speed_was_not_measured(targets, text):
    assert summarise(targets) == text


class TestKernelFailures:
    boots = {Arm.BASELINE: BootCount(3, 3), Arm.CANDIDATE: BootCount(3, 2)}

    def test_one_panic_in_three_boots_fails_the_candidate(self):
        found = conclude([FEWER], [finding()], boots=self.boots)
        assert found.verdict is Verdict.FAILED
        assert "panic in 1 of 3 boots" in found.headline
        assert "; the baseline came through 3 of 3 boots" in found.headline
        assert "33 -> 3 lock acquisitions" in found.headline

    @pytest.mark.parametrize(
        ("baseline", "control"),
        [
            (BootCount(0, 0), "the baseline was not booted in this run"),
            (BootCount(2, 0), "the baseline came through 0 of 2 boots"),
        ],
    )
    @pytest.mark.parametrize("kind", [FindingKind.PANIC, FindingKind.WARNING, FindingKind.HANG])
    def test_candidate_is_not_blamed_without_a_boot_of_the_baseline(self, baseline, control, kind):
        boots = {Arm.BASELINE: baseline, Arm.CANDIDATE: BootCount(2, 0)}
        findings = [finding(kind=kind, block=block) for block in (0, 1)]
        failure = Failure(kind=ErrorKind.KERNEL, summary="panic")
        found = conclude([], findings, failure, boots=boots)
        assert found.verdict is Verdict.INCONCLUSIVE
        assert f"can't tell if the candidate is the cause: {control}" in found.headline
        assert not found.accused
        assert "did not" not in found.headline

    def test_baseline_that_failed_once_is_named_with_both_numbers(self):
        boots = {Arm.BASELINE: BootCount(4, 3), Arm.CANDIDATE: BootCount(3, 2)}
        found = conclude([FEWER], [finding()], boots=boots)
        assert found.verdict is Verdict.FAILED
        assert "; the baseline came through 3 of 4 boots" in found.headline

    def test_failure_of_both_arms_does_not_count_against_the_candidate(self):
        findings = [finding(), finding(arm=Arm.BASELINE)]
        assert conclude([FEWER], findings, boots=self.boots).verdict is Verdict.IMPROVEMENT

    def test_a_new_warning_counts(self):
        found = conclude([FEWER], [finding(kind=FindingKind.WARNING, fatal=False, title="WARNING: at a.c:1 f+0x1/0x2")])
        assert found.verdict is Verdict.FAILED
        assert [each.excerpt for each in found.accused] == ["trace of WARNING: at a.c:1 f+0x1/0x2"]

    @pytest.mark.parametrize(("emulated", "verdict"), [(True, Verdict.IMPROVEMENT), (False, Verdict.INCONCLUSIVE)])
    def test_warning_in_one_of_several_boots_is_not_blamed_on_the_candidate(self, emulated, verdict):
        warning = finding(kind=FindingKind.WARNING, fatal=False, title="WARNING: at kernel/time/hrtimer.c:1056")
        found = conclude([FEWER], [warning], emulated=emulated, boots=self.boots)
        assert found.verdict is verdict and not found.accused
        assert "did not recur: the candidate showed warning in 1 of 3 boots: WARNING: at kernel" in found.headline
        assert "33 -> 3 lock acquisitions" in found.headline

    def test_warning_that_recurs_or_that_every_boot_has_is_blamed(self):
        warnings = [
            finding(kind=FindingKind.WARNING, fatal=False, block=block, title="WARNING: at a.c:1") for block in (0, 1)
        ]
        assert conclude([FEWER], warnings, emulated=True, boots=self.boots).verdict is Verdict.FAILED
        single = {Arm.BASELINE: BootCount(1, 1), Arm.CANDIDATE: BootCount(1, 1)}
        assert conclude([FEWER], warnings[:1], emulated=True, boots=single).verdict is Verdict.FAILED

    def test_different_warning_of_the_baseline_does_not_excuse_the_candidate(self):
        def warning(arm, title):
            return finding(arm=arm, kind=FindingKind.WARNING, fatal=False, title=title)

        old = warning(Arm.BASELINE, "WARNING: CPU: 0 PID: 12 at kernel/a.c:10 a+0x1/0x20")
        same = warning(Arm.CANDIDATE, "WARNING: CPU: 3 PID: 99 at kernel/a.c:12 a+0x4/0x24")
        other = warning(Arm.CANDIDATE, "WARNING: CPU: 0 PID: 12 at kernel/a.c:10 b+0x1/0x20")
        assert conclude([FEWER], [old, same]).verdict is Verdict.IMPROVEMENT
        assert conclude([FEWER], [old, same, other]).verdict is Verdict.FAILED

    def test_stall_of_any_task_on_an_emulated_baseline_excuses_a_candidate_stall(self):
        stalls = [
            finding(arm=arm, kind=FindingKind.LOCKUP, block=block, fatal=False, title=f"BUG: soft lockup in {place}")
            for arm, block, place in ((Arm.BASELINE, 0, "a"), (Arm.CANDIDATE, 0, "b"), (Arm.CANDIDATE, 1, "b"))
        ]
        assert conclude([FEWER], stalls, emulated=True).verdict is Verdict.IMPROVEMENT
        assert conclude([FEWER], stalls).verdict is Verdict.FAILED, "hardware stalls where the kernel is at fault"
        same = [stall.model_copy(update={"title": "BUG: soft lockup in a"}) for stall in stalls]
        assert conclude([FEWER], same).verdict is Verdict.IMPROVEMENT

    def test_single_stall_on_an_emulated_device_is_ignored(self):
        stall = finding(kind=FindingKind.RCU_STALL)
        again = finding(kind=FindingKind.RCU_STALL, block=1)
        assert conclude([FEWER], [stall], emulated=True).verdict is Verdict.IMPROVEMENT
        assert conclude([FEWER], [stall, stall], emulated=True).verdict is Verdict.IMPROVEMENT
        assert conclude([FEWER], [stall, again], emulated=True).verdict is Verdict.FAILED
        assert conclude([FEWER], [stall], emulated=False).verdict is Verdict.FAILED

    def test_infrastructure_failure_is_named_in_the_headline(self):
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no console")
        found = conclude([], failure=failure)
        assert (found.verdict, found.headline) == (Verdict.FAILED, "not measured (infrastructure): no console")
        assert conclude([FEWER], failure=failure).verdict is Verdict.IMPROVEMENT


class TestStudies:
    share = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}

    def study(self, **settings):
        return compare(studied({f"scope={k}": v for k, v in settings.items()}, **self.share), references="scope=ref")

    def test_worse_setting_is_no_regression_if_another_is_better(self):
        found = conclude(self.study(ref=[50.0] * 3, better=[90.0] * 3, worse=[10.0] * 3))
        assert found.verdict is Verdict.IMPROVEMENT
        assert found.headline == (
            "HIGH: l3_share from 50 % at scope=ref: +40.0 points with scope=better, -40.0 points with scope=worse"
        )

    def test_equal_settings_are_equivalent(self):
        assert conclude(self.study(ref=[50.0] * 3, other=[50.0] * 3)).verdict is Verdict.EQUIVALENT

    def test_kernel_panic_fails_a_settings_study(self):
        found = conclude(self.study(ref=[50.0] * 3, other=[50.0] * 3), [finding(arm=Arm.BASELINE)])
        assert found.verdict is Verdict.FAILED
        assert found.headline.startswith("the kernel showed panic in 1 boot")
