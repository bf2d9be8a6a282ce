from dataclasses import replace
from datetime import UTC, datetime

import pytest
from literal_samples import one, paired, studied, target

from wqlab_comparison import Samples, Stated, compare, conclude, summarise
from wqlab_contracts.api.report import UnsupportedView
from wqlab_contracts.api.submissions import FindingView
from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Question, Role, Verdict
from wqlab_contracts.messages import Failure

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOCKS = {"metric": "locks", "unit": "", "evidence": "mechanism", "direction": "lower_is_better"}
FEWER = one([33] * 3, [3] * 3, scenario="fewer", **LOCKS)
MORE = one([33] * 3, [99] * 3, scenario="more", **LOCKS)
SAME = one([33] * 3, [33] * 3, scenario="same", **LOCKS)
UNSURE = one([33, 34, 33], [33, 33, 34], scenario="unsure", **LOCKS)
VALUE = one([1.0], [2.0], evidence="none", role="explanatory", scenario="value")


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
def test_the_worst_that_is_certain(comparisons, verdict):
    assert conclude(comparisons).verdict is verdict


def test_the_headline_carries_the_figures():
    assert conclude([FEWER]).headline == "locks falls from 33 to 3, the same in every boot (n=3)"
    assert conclude([FEWER, UNSURE]).headline.startswith("fewer: locks falls from 33 to 3")
    assert "of the others 1 inconclusive" in conclude([FEWER, UNSURE]).headline


def test_all_targets_in_a_sentence():
    def on(device_type, verdict, plan="xfs-fsync", emulated=False, study=False, failure=None):
        return Stated(plan, device_type, emulated, verdict, study, failure)

    broken = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no power")
    panicked = Failure(kind=ErrorKind.KERNEL, summary="panic")
    assert summarise([]) == ""
    assert (
        summarise(
            [
                on("chromebook", Verdict.INCONCLUSIVE, emulated=True),
                on("xeon-2s", Verdict.IMPROVEMENT),
                on("ryzen-3900x", Verdict.EQUIVALENT),
                on("epyc", Verdict.IMPROVEMENT),
                on("atom", Verdict.IMPROVEMENT),
                on("n100", Verdict.FAILED, failure=broken),
                on("pentium", Verdict.FAILED, failure=panicked),
            ]
        )
        == "not measured on n100, fails on pentium, improves xeon-2s, epyc and atom, no change on ryzen-3900x, "
        "can't tell on chromebook (emulated)"
    )
    assert (
        summarise([on("tiny", Verdict.REGRESSION), on("tiny", Verdict.IMPROVEMENT, "dm-crypt", study=True)])
        == "xfs-fsync: regresses tiny; dm-crypt: a setting improves tiny"
    )


class TestKernelFailures:
    boots = {Arm.BASELINE: 3, Arm.CANDIDATE: 3}

    def test_a_candidate_that_died_once_of_three_failed_and_says_so(self):
        found = conclude([FEWER], [finding()], boots=self.boots)
        assert found.verdict is Verdict.FAILED
        assert "panic in 1 of 3 boots" in found.headline
        assert "falls from 33 to 3" in found.headline

    def test_what_the_baseline_does_too_is_not_held_against_the_candidate(self):
        findings = [finding(), finding(arm=Arm.BASELINE)]
        assert conclude([FEWER], findings, boots=self.boots).verdict is Verdict.IMPROVEMENT

    def test_a_new_warning_counts(self):
        found = conclude([FEWER], [finding(kind=FindingKind.WARNING, fatal=False, title="WARNING: at a.c:1 f+0x1/0x2")])
        assert found.verdict is Verdict.FAILED
        assert [each.excerpt for each in found.accused] == ["trace of WARNING: at a.c:1 f+0x1/0x2"]

    def test_another_warning_of_the_baseline_does_not_excuse_it(self):
        def warning(arm, title):
            return finding(arm=arm, kind=FindingKind.WARNING, fatal=False, title=title)

        old = warning(Arm.BASELINE, "WARNING: CPU: 0 PID: 12 at kernel/a.c:10 a+0x1/0x20")
        same = warning(Arm.CANDIDATE, "WARNING: CPU: 3 PID: 99 at kernel/a.c:12 a+0x4/0x24")
        other = warning(Arm.CANDIDATE, "WARNING: CPU: 0 PID: 12 at kernel/a.c:10 b+0x1/0x20")
        assert conclude([FEWER], [old, same]).verdict is Verdict.IMPROVEMENT
        assert conclude([FEWER], [old, same, other]).verdict is Verdict.FAILED

    def test_a_stall_of_any_task_on_the_baseline_excuses_one_of_the_candidate(self):
        stalls = [
            finding(arm=arm, kind=FindingKind.HUNG_TASK, block=block, title=f"INFO: task {task}:7 blocked")
            for arm, block, task in ((Arm.BASELINE, 0, "fio"), (Arm.CANDIDATE, 0, "sync"), (Arm.CANDIDATE, 1, "sync"))
        ]
        assert conclude([FEWER], stalls).verdict is Verdict.IMPROVEMENT

    def test_one_stall_on_an_emulated_device_proves_nothing(self):
        stall = finding(kind=FindingKind.RCU_STALL)
        again = finding(kind=FindingKind.RCU_STALL, block=1)
        assert conclude([FEWER], [stall], emulated=True).verdict is Verdict.IMPROVEMENT
        assert conclude([FEWER], [stall, stall], emulated=True).verdict is Verdict.IMPROVEMENT
        assert conclude([FEWER], [stall, again], emulated=True).verdict is Verdict.FAILED
        assert conclude([FEWER], [stall], emulated=False).verdict is Verdict.FAILED

    def test_infrastructure_is_named_as_such(self):
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no console")
        found = conclude([], failure=failure)
        assert (found.verdict, found.headline) == (Verdict.FAILED, "not measured (infrastructure): no console")
        assert conclude([FEWER], failure=failure).verdict is Verdict.IMPROVEMENT


class TestStudies:
    share = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}

    def study(self, **settings):
        return compare(studied({f"scope={k}": v for k, v in settings.items()}, **self.share), references="scope=ref")

    def test_a_worse_setting_is_no_regression_while_another_is_better(self):
        found = conclude(self.study(ref=[50.0] * 3, better=[90.0] * 3, worse=[10.0] * 3))
        assert found.verdict is Verdict.IMPROVEMENT
        assert found.headline == (
            "HIGH: l3_share from 50 % at scope=ref: +40.0 points with scope=better, -40.0 points with scope=worse"
        )

    def test_all_settings_the_same(self):
        assert conclude(self.study(ref=[50.0] * 3, other=[50.0] * 3)).verdict is Verdict.EQUIVALENT

    def test_a_kernel_that_dies_in_a_study_fails_it(self):
        found = conclude(self.study(ref=[50.0] * 3, other=[50.0] * 3), [finding(arm=Arm.BASELINE)])
        assert found.verdict is Verdict.FAILED
        assert found.headline.startswith("the kernel showed panic in 1 boot")


class TestNothingIsDropped:
    def samples(self):
        share = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}
        return studied({"scope=system": [24.0, 25.0], "scope=cache": [80.0, 81.5]}, **share)

    def test_every_planned_cell_answers(self):
        lack = UnsupportedView(
            scenario="HIGH", setting="scope=cache_shard", metric=None, arm=Arm.BASELINE, reason="Linux 6.12 lacks it"
        )
        found = compare(self.samples(), [target(unsupported=[lack])])
        cells = {(c.scenario, c.setting, c.metric): c for c in found}
        assert len(cells) == 2 * 2 * 2
        assert [c.scenario for c in found] == ["HIGH"] * 4 + ["LOW"] * 4
        unsupported = cells["HIGH", "scope=cache_shard", "l3_share"]
        assert (unsupported.verdict, unsupported.reason) == (Verdict.UNSUPPORTED, "Linux 6.12 lacks it")
        assert unsupported.baseline.n == 2
        assert unsupported.candidate is None
        missing = cells["LOW", "scope=cache", "l3_share"]
        assert (missing.verdict, missing.reason) == (Verdict.INCONCLUSIVE, "not measured")
        assert cells["HIGH", "scope=cache", "bandwidth"].verdict is Verdict.NO_EVIDENCE
        assert cells["HIGH", "scope=cache", "bandwidth"].role is Role.EXPLANATORY

    def test_one_kernel_without_samples_is_no_verdict_and_named(self):
        lack = UnsupportedView(
            scenario="LOW",
            setting="scope=cache",
            metric=None,
            arm=Arm.CANDIDATE,
            reason="not measured: fio moved no data",
        )
        told = "candidate kernel: not measured: fio moved no data"
        facts = target(arms=[Arm.BASELINE, Arm.CANDIDATE], unsupported=[lack])
        share = {"metric": "l3_share", "unit": "%", "scale": "difference", "evidence": "mechanism"}
        both = paired([50.0] * 6, [50.0] * 6, setting="scope=cache", scenario="HIGH", **share)
        alone = paired([50.0] * 6, [], setting="scope=cache", scenario="LOW", **share)
        for samples, verdict in (([both, alone], Verdict.INCONCLUSIVE), ([both], Verdict.UNSUPPORTED)):
            cells = compare(Samples.concatenate(samples), [facts])
            (low,) = [
                cell
                for cell in cells
                if (cell.question, cell.scenario, cell.setting, cell.metric)
                == (Question.KERNEL, "LOW", "scope=cache", "l3_share")
            ]
            assert (low.verdict, low.reason) == (verdict, told)
            primaries = [cell for cell in cells if cell.setting == "scope=cache"]
            assert (conclude(primaries).verdict is Verdict.EQUIVALENT) == (verdict is Verdict.UNSUPPORTED)
        lacks = replace(facts, unsupported=[lack.model_copy(update={"reason": "no such scope"})])
        found = compare(Samples.concatenate([both, alone]), [lacks])
        assert "candidate kernel: no such scope" in {c.reason for c in found if c.verdict is Verdict.UNSUPPORTED}

    def test_a_failed_run_fails_what_it_did_not_measure(self):
        failure = Failure(kind=ErrorKind.KERNEL, summary="candidate panicked in both boots")
        found = compare(None, [target(arms=list(Arm), failure=failure)])
        primaries = [c for c in found if c.role is Role.PRIMARY]
        assert primaries
        assert {c.verdict for c in primaries} == {Verdict.FAILED}
        assert {c.reason for c in primaries} == {"kernel: candidate panicked in both boots"}

    def test_a_candidate_that_lost_a_setting_is_named(self):
        lack = UnsupportedView(scenario="*", setting="scope=cache", metric=None, arm=Arm.CANDIDATE, reason="gone")
        found = compare(None, [target(arms=list(Arm), settings=["scope=cache"], unsupported=[lack])])
        kernel = next(c for c in found if c.question == "kernel")
        assert (kernel.verdict, kernel.reason) == (Verdict.UNSUPPORTED, "candidate kernel: gone")

    def test_a_study_that_a_kernel_cannot_do_says_why_first(self):
        lacks = [
            UnsupportedView(scenario="*", setting=each, metric=None, arm=Arm.BASELINE, reason="Linux 6.1 has no scopes")
            for each in ("scope=system", "scope=cache")
        ]
        found = compare(None, [target(settings=["scope=system", "scope=cache"], unsupported=lacks)])
        concluded = conclude(found, boots={Arm.BASELINE: 1})
        assert concluded.verdict is Verdict.UNSUPPORTED
        assert concluded.headline.endswith("scope=cache unsupported; Linux 6.1 has no scopes")

    def test_discarded_blocks_are_told(self):
        found = compare(self.samples(), [target(blocks_discarded=2)])
        assert {c.blocks_discarded for c in found} == {2}


def test_a_dead_candidate_leaves_its_baseline_in_the_table():
    samples = Samples.concatenate([paired([1.0, 2.0], [3.0]), paired([1.0, 2.0], [], scenario="LOW")])
    low = next(c for c in compare(samples) if c.scenario == "LOW")
    assert (low.baseline.n, low.candidate, low.verdict) == (2, None, Verdict.INCONCLUSIVE)
    assert low.blocks_discarded == 2
