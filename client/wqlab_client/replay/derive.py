"""Derive the verdicts of a bundle again from its samples, boots and findings, and compare them with its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from wqlab_comparison import Samples, SamplesError, Stated, boot_values, compare, deciding, summarise
from wqlab_comparison.ladder import ladder_of
from wqlab_comparison.runs import RecordedBoot, conclude_run, facts_of_run
from wqlab_contracts.api.report import BootValue, Comparison, Report, UnsupportedView
from wqlab_contracts.bundle import REPORT
from wqlab_contracts.enums import PAIR, Evidence, Outcome, Verdict

from .archive import Bundle, BundleError
from .checks import Check, Result, check, differences, equal, from_problems, shown
from .records import Run, check_findings, check_records, read_runs

if TYPE_CHECKING:
    from wqlab_contracts.api.ladder import Ladder


@dataclass
class Replay:
    """All checks of a bundle, and the verdicts that its records give."""

    submission: int
    title: str
    summary: str
    """The derived verdicts in one sentence."""
    checks: list[Check] = field(default_factory=list)

    def count(self, result: Result) -> int:
        return sum(check.result is result for check in self.checks)


def replay(bundle: Bundle) -> Replay:
    """Compute every verdict again from the bundle's records, and compare it with the report.

    Raises BundleError if records are missing or contradict each other.
    """
    report = bundle.model(REPORT, Report)
    if report.submission.id != bundle.manifest.submission:
        raise BundleError(bundle.path, f"the report is of submission {report.submission.id}, the manifest of another")
    runs = read_runs(bundle, report)
    derived = _derive(bundle, runs)
    found = Replay(report.submission.id, report.submission.title, "")
    stated = []
    for run in runs:
        record = run.record
        all_own = [each for each in derived if (each.plan, each.device_type) == (record.plan.name, record.device_type)]
        own = [each for each in all_own if each.patch is None]
        boots = [RecordedBoot(boot.arm, boot.outcome is Outcome.PASSED, boot.valid) for boot in record.boots]
        conclusion = conclude_run(run.recorded, boots, record.findings, own, run.lab_discards)
        found.checks += check_records(run, report.submission.builds)
        found.checks += check_findings(bundle, run)
        found.checks += _check_values(run)
        found.checks += _check_comparisons(run, own)
        ladder = ladder_of(run.recorded, boots, record.findings, all_own, run.lab_discards)
        found.checks += _check_ladder(run, ladder)
        reported = (run.reported.verdict, run.reported.headline)
        found.checks.append(check(run.target, "verdict", reported, (conclusion.verdict, conclusion.headline)))
        study = report.submission.request.series is None
        stated.append(
            Stated(
                record.plan.name,
                record.device_type,
                record.emulated,
                conclusion.verdict,
                study,
                record.failure,
                record.plan.is_instrumented,
                record.plan.is_modelled,
                own,
            )
        )
    found.summary = summarise(stated)
    counts = Counter(
        each.verdict
        for each in deciding(derived)
        if each.verdict is not None and each.patch is None and each.evidence is not Evidence.MODELLED
    )
    found.checks.append(check("", "deciding verdicts", (_counted(report.submission.verdicts),), (_counted(counts),)))
    found.checks.append(check("", "summary", (report.summary,), (found.summary,)))
    return found


# --- figures ----------------------------------------------------------------------------------------------------


def _derive(bundle: Bundle, runs: Sequence[Run]) -> list[Comparison]:
    """Compare all runs together, because they share the families of tests."""
    measured = [run for run in runs if run.measured]
    tables = [run.samples for run in measured if run.samples is not None]
    facts = [
        facts_of_run(
            run.recorded,
            [each.arm for each in run.record.attempts if not each.finished],
            [
                UnsupportedView(
                    scenario=each.scenario,
                    setting=each.setting,
                    metric=each.metric,
                    arm=each.arm,
                    cause=each.cause,
                    reason=each.reason,
                )
                for each in run.record.unsupported
            ],
        )
        for run in measured
    ]
    try:
        return compare(Samples.concatenate(tables) if tables else None, facts)
    except SamplesError as error:
        raise BundleError(bundle.path, f"its samples cannot be compared: {error}") from None


def _check_values(run: Run) -> Iterator[Check]:
    """Check the boot values, from which figures are drawn."""
    values: list[BootValue] = []
    if run.samples is not None and run.measured:
        with suppress(SamplesError):
            values = [value for value in boot_values(run.samples) if value.arm in PAIR]
    derived = {_value_key(value): value.value for value in values}
    reported = {_value_key(value): value.value for value in run.reported.values}
    problems = [
        f"{' '.join(filter(None, map(str, key[2:])))} in block {key[1] + 1} {key[0]}: report says "
        f"{shown(reported.get(key))}, samples give {shown(derived.get(key))}"
        for key in sorted(derived.keys() | reported.keys())
        if not equal(reported.get(key), derived.get(key))
    ]
    yield from_problems(run.target, "boot values", problems, f"{len(derived)} medians of repetitions")


def _value_key(value: BootValue) -> tuple[str, int, str, str, str]:
    return value.arm.value, value.block, value.scenario, value.setting, value.metric


def _check_comparisons(run: Run, derived: Sequence[Comparison]) -> Iterator[Check]:
    given = {_comparison_key(each): each for each in run.reported.comparisons}
    own = {_comparison_key(each): each for each in derived}
    if len(given) != len(run.reported.comparisons):
        yield Check(run.target, "comparisons", Result.DIFFERS, "the report lists a comparison twice")
    for key in [*own, *(key for key in given if key not in own)]:
        subject = _comparison_subject(own.get(key) or given[key])
        if key not in given or key not in own:
            where = "report" if key in own else "samples"
            yield Check(run.target, subject, Result.DIFFERS, f"not in the {where}")
            continue
        if found := list(differences("", given[key], own[key])):
            yield Check(run.target, subject, Result.DIFFERS, "; ".join(found))
        else:
            yield Check(run.target, subject, Result.AGREES, _verdict_text(own[key]))


def _check_ladder(run: Run, derived: Ladder | None) -> Iterator[Check]:
    """Check each patch of a walk."""
    reported = run.reported.ladder
    if reported is None or derived is None:
        if reported is not derived:
            yield Check(run.target, "ladder", Result.DIFFERS, f"not in the {'report' if derived else 'records'}")
        return
    for given, own in zip_longest(reported.rungs, derived.rungs):
        subject = f"patch {(own or given).patch}"
        if given is None or own is None:
            yield Check(run.target, subject, Result.DIFFERS, f"not in the {'report' if own else 'records'}")
        elif found := list(differences("", given, own)):
            yield Check(run.target, subject, Result.DIFFERS, "; ".join(found))
        else:
            verdict = own.verdict.replace("_", " ") if own.verdict else "not judged"
            yield Check(run.target, subject, Result.AGREES, verdict)
    yield check(run.target, "ladder", (reported.sentence,), (derived.sentence,))


def _comparison_key(of: Comparison) -> tuple[str, ...]:
    return of.question.value, of.kernel.value if of.kernel else "", of.reference, of.scenario, of.setting, of.metric


def _comparison_subject(of: Comparison) -> str:
    against = f"against {of.reference} ({of.kernel})" if of.kernel else ""
    return " ".join(filter(None, (of.scenario, of.setting, of.metric, against)))


def _verdict_text(of: Comparison) -> str:
    if of.verdict is None:
        return of.reason or "explanatory, not judged"
    effect = "" if of.effect is None else f", {of.effect:+.4g} {of.effect_unit}".rstrip()
    return f"{of.verdict.replace('_', ' ')}{effect}"


def _counted(verdicts: Mapping[Verdict, int]) -> str:
    return ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in Verdict if verdicts.get(verdict)) or "none"
