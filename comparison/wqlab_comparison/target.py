"""Conclude the verdict of one target (a plan on a device type), and format it as a headline."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wqlab_contracts.api.report import Comparison
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.consequences import causes
from wqlab_contracts.enums import (
    SEEDED,
    STALLS,
    Arm,
    ErrorKind,
    Evidence,
    FindingKind,
    Question,
    Role,
    Verdict,
)
from wqlab_contracts.keys import defect_key
from wqlab_contracts.messages import Failure

from . import words
from .csvfile import SHARE_UNITS

_STALLS = STALLS | {FindingKind.HANG}
"""Kinds that overcommitted host cores also cause on an emulated device, so a single one there is not counted."""
_SIGNIFICANT = (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.BELOW_THRESHOLD)
_MAX_NAMED = 3
"""Maximum number of comparisons in a headline."""


@dataclass(frozen=True)
class Accusation:
    """A kind of kernel failure that counts against the variant."""

    kind: FindingKind
    boots: int
    title: str
    excerpt: str
    fatal: bool = True

    def is_repeated(self, attempted: int) -> bool:
        """Return True if the failure may be taken for a property of the kernel.

        One report that the kernel survived, in one of several boots, can be a rare one that both kernels have: timing
        warnings of a busy host are.
        """
        return self.fatal or self.boots > 1 or attempted < 2


@dataclass(frozen=True)
class BootCount:
    """Number of boots of one arm of a run."""

    attempted: int
    passed: int
    """Boots that came through: the kernel booted and, if it was measured, so did the workload."""


@dataclass(frozen=True)
class Conclusion:
    """Verdict of one target with its headline."""

    verdict: Verdict
    headline: str
    accused: Sequence[Accusation] = ()
    """Kernel failures that count against the variant; with any, the verdict is `failed`."""


def conclude(
    comparisons: Sequence[Comparison],
    findings: Sequence[FindingView] = (),
    failure: Failure | None = None,
    emulated: bool = False,
    boots: Mapping[Arm, BootCount] | None = None,
    *,
    machine: str = "",
) -> Conclusion:
    """Return the verdict of the judged metrics over all scenarios: the most severe significant one.

    A kernel failure that only the candidate showed precedes any figure, provided that a boot of the baseline passed:
    without one, the device or the tree may be at fault. Next is a regression of any judged metric in any cell, then
    the primary metric: an improvement in any cell; `equivalent` needs every primary to be equivalent. Without a second
    kernel the settings are compared and the best setting gives the verdict: a setting worse than the reference is no
    regression. A canceled run without figures is `inconclusive`. `boots` has each planned arm. `machine`: cost profile
    of a modelled device.
    """
    if boots:
        study = Arm.CANDIDATE not in boots
    else:
        study = not any(comparison.question is Question.KERNEL for comparison in comparisons)
    accused = failures_against(
        findings, emulated, Arm.BASELINE if study and _only_baseline(findings) else Arm.CANDIDATE
    )
    figures, _ = conclude_figures(comparisons, study=study)
    surviving = _surviving_figures(figures)
    if is_modelled(comparisons):
        figures, surviving = (
            as_modelled(figures, machine),
            "",
        )  # a failure is a fact; no model's figure stands beside it
    attempted = boots[Arm.CANDIDATE].attempted if boots and not study else 0
    once = [each for each in accused if not each.is_repeated(attempted)]
    accused = [each for each in accused if each not in once]
    if once and not accused:
        figures = _with_single_reports(figures, once, boots or {}, emulated=emulated)
    if accused and not study and boots and not boots[Arm.BASELINE].passed:
        return Conclusion(
            Verdict.INCONCLUSIVE,
            _join(_describe_failures(accused, study, boots), surviving),
        )
    if failure and failure.kind is ErrorKind.KERNEL and not accused:
        return Conclusion(Verdict.FAILED, _join(failure.summary, surviving))
    if accused:
        return Conclusion(
            Verdict.FAILED,
            _join(_describe_failures(accused, study, boots or {}), surviving),
            accused,
        )
    if failure and figures.verdict in {Verdict.INCONCLUSIVE, Verdict.FAILED, Verdict.NO_EVIDENCE}:
        # A cancellation is no failure of a kernel, and decides nothing.
        verdict = Verdict.INCONCLUSIVE if failure.kind is ErrorKind.CANCELED else Verdict.FAILED
        return Conclusion(verdict, f"not measured ({failure.kind}): {failure.summary}")
    if failure:
        return Conclusion(figures.verdict, _join(figures.headline, f"the run ended early ({failure.kind})"))
    return figures


def failures_against(
    findings: Sequence[FindingView], emulated: bool, arm: Arm = Arm.CANDIDATE, reference: Arm = Arm.BASELINE
) -> list[Accusation]:
    """Return the kernel failures that count against `arm`.

    These do not count: failures that the arm `reference` showed too; reports that another one of the same boot caused,
    as an oops causes a panic; and on an emulated device stalls that occurred only once.
    """
    of_boot: dict[tuple[Arm, int, int], list[FindingView]] = defaultdict(list)
    for finding in findings:
        of_boot[finding.arm, finding.block, finding.attempt].append(finding)
    findings = [
        cause
        for reports in of_boot.values()
        for cause in causes(sorted(reports, key=lambda report: report.console_offset))
    ]
    other = {_finding_key(finding, emulated) for finding in findings if finding.arm is reference is not arm}
    boots: dict[FindingKind, set[tuple[int, int]]] = defaultdict(set)
    first: dict[FindingKind, FindingView] = {}
    for finding in findings:
        if (
            finding.arm is arm
            and _finding_key(finding, emulated) not in other
            and (arm is not Arm.BASELINE or finding.fatal)
        ):
            boots[finding.kind].add((finding.block, finding.attempt))
            first.setdefault(finding.kind, finding)
    return [
        Accusation(kind, len(seen), first[kind].title, first[kind].excerpt, first[kind].fatal)
        for kind, seen in boots.items()
        if not (emulated and kind in _STALLS and len(seen) < 2)
    ]


def _finding_key(finding: FindingView, emulated: bool) -> tuple[FindingKind, str]:
    """Return a key that is equal for the same defect.

    A busy host stalls any task of an emulated device, so of a stall there only the kind is compared. A device that does
    not answer names no defect.
    """
    if finding.kind is FindingKind.HANG or (emulated and finding.kind in STALLS):
        return finding.kind, ""
    return finding.kind, defect_key(finding.defect or finding.title)


def _only_baseline(findings: Sequence[FindingView]) -> bool:
    return all(finding.arm is Arm.BASELINE for finding in findings)


def _describe_failures(accused: Sequence[Accusation], study: bool, boots: Mapping[Arm, BootCount]) -> str:
    arm = Arm.BASELINE if study else Arm.CANDIDATE
    name = "the kernel" if study else "the candidate"
    total = boots[arm].attempted if arm in boots else 0
    texts = [
        f"{name} showed {one.kind.value.replace('_', ' ')} in {one.boots} of {words.count(total, 'boot')}: {one.title}"
        if total >= one.boots
        else f"{name} showed {one.kind.value.replace('_', ' ')} in {words.count(one.boots, 'boot')}: {one.title}"
        for one in accused
    ]
    if not study and boots:
        texts.append(_describe_control(boots[Arm.BASELINE]))
    return "; ".join(texts)


def _with_single_reports(
    figures: Conclusion, once: Sequence[Accusation], boots: Mapping[Arm, BootCount], *, emulated: bool
) -> Conclusion:
    """Return the conclusion if the candidate's only reports occurred in one of several boots and did not end them.

    On an emulated device the figures decide, as with a single stall; on hardware nothing is decided.
    """
    reports = _describe_failures(once, False, boots)
    if emulated:
        return Conclusion(figures.verdict, _join(figures.headline, f"not counted, because it did not recur: {reports}"))
    reason = f"can't tell if the candidate is the cause, because it did not recur: {reports}"
    return Conclusion(Verdict.INCONCLUSIVE, _join(reason, _surviving_figures(figures)))


def _describe_control(baseline: BootCount) -> str:
    if not baseline.attempted:
        return "can't tell if the candidate is the cause: the baseline was not booted in this run"
    came_through = f"the baseline came through {baseline.passed} of {words.count(baseline.attempted, 'boot')}"
    return came_through if baseline.passed else f"can't tell if the candidate is the cause: {came_through}"


def conclude_figures(comparisons: Sequence[Comparison], *, study: bool) -> tuple[Conclusion, Verdict | None]:
    """Return the conclusion of a target's figures alone, and the verdict of its primary metric if it has one.

    `study`: settings of one kernel were compared.
    """
    if study:
        conclusion = _conclude_settings(_primaries(comparisons))
        return conclusion, conclusion.verdict
    judged = of_kernels(comparisons)
    modelled = is_modelled(judged)
    own = [each for each in judged if (each.evidence is Evidence.MODELLED) is modelled]
    conclusion = conclude_kernels(own)
    counted = _largest(each for each in judged if modelled and each not in own and is_regression(each))
    if counted:  # counts are exact, so the headline of a modelled target names those that became worse
        text = f"counted as worse: {_describe_cells(counted, *_places(judged))}"
        conclusion = replace(conclusion, headline=_join(conclusion.headline, text))
    return conclusion, _worst(_primaries(own))


def is_modelled(comparisons: Sequence[Comparison]) -> bool:
    """Return True if the primary metric is a model's figure."""
    return any(each.evidence is Evidence.MODELLED for each in _primaries(comparisons))


def of_kernels(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the judged comparisons of two kernels: of primary and secondary metrics."""
    return [each for each in comparisons if each.role is not Role.EXPLANATORY and each.question is Question.KERNEL]


def deciding(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons that decide a target's verdict: those of primary metrics, and each judged regression."""
    return [each for each in comparisons if each.role is Role.PRIMARY or is_regression(each)]


def is_regression(comparison: Comparison) -> bool:
    """Return True if the candidate kernel is judged worse by any metric. A setting that is worse is no regression."""
    return comparison.verdict is Verdict.REGRESSION and comparison.question is Question.KERNEL


def conclude_kernels(judged: Sequence[Comparison]) -> Conclusion:
    """Return the verdict of the figures of two kernels, from the comparisons of judged metrics.

    The primary metric decides, unless any metric is judged worse. The headline names what became worse, then what
    became better, then the verdict of the primary metric if it is in neither. If the primary metric improved, other
    improvements are only in the table.
    """
    primaries = _primaries(judged)
    of_primaries = _worst(primaries)
    worse = _largest(each for each in judged if is_regression(each))
    verdict = Verdict.REGRESSION if worse and of_primaries is not Verdict.FAILED else of_primaries
    if verdict is None:
        return Conclusion(Verdict.INCONCLUSIVE, "no primary metric was measured")
    carrying = worse if verdict is Verdict.REGRESSION else [each for each in primaries if each.verdict is verdict]
    better = [each for each in judged if each.verdict is Verdict.IMPROVEMENT and verdict is not Verdict.IMPROVEMENT]
    is_told = any(each.role is Role.PRIMARY for each in (*carrying, *better))
    beside = [] if is_told else [each for each in primaries if each.verdict is of_primaries]
    places = _places(judged)
    found = [
        _describe_cells(_largest(carrying), *places),
        _describe_better(_largest(better), *places),
        _describe_cells(beside, *places),
    ]
    named = {id(each) for group in (carrying, better, beside) for each in group}
    others = Counter(each.verdict for each in primaries if id(each) not in named and each.verdict is not None)
    rest = ", ".join(f"{number} {words.VERDICT[other]}" for other, number in others.items())
    return Conclusion(verdict, _join(*found, f"of the others {rest}" if rest else ""))


def _describe_better(cells: Sequence[Comparison], scenario: bool, setting: bool) -> str:
    """Return what became better beside the verdict, each metric once and briefly."""
    largest = {each.metric: each for each in reversed(cells)}
    shown = [each for each in cells if largest[each.metric] is each][:_MAX_NAMED]
    texts = [f"{_where(each, scenario, setting)}{words.claim(each)}" for each in shown]
    more = f"{len(cells) - len(shown)} more" if len(cells) > len(shown) else ""
    return f"better: {', '.join(filter(None, [*texts, more]))}" if texts else ""


def _where(comparison: Comparison, scenario: bool, setting: bool) -> str:
    parts = [comparison.scenario if scenario else "", comparison.setting if setting else ""]
    return f"{' '.join(filter(None, parts))} " if any(parts) else ""


def _places(comparisons: Sequence[Comparison]) -> tuple[bool, bool]:
    """Return whether a description needs the scenario, and whether it needs the setting."""
    settings = {each.setting for each in comparisons}
    return len({(each.scenario, each.setting) for each in comparisons}) > 1, len(settings) > 1


def _primaries(comparisons: Sequence[Comparison]) -> list[Comparison]:
    return [each for each in comparisons if each.role is Role.PRIMARY]


def _largest(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Return the comparisons by the size of their effects, those of primary metrics first."""
    return sorted(comparisons, key=lambda each: (each.role is not Role.PRIMARY, -abs(each.effect or 0.0)))


def _describe_cells(cells: Sequence[Comparison], scenario: bool, setting: bool) -> str:
    texts = [_describe_comparison(each, scenario, setting) for each in cells[:_MAX_NAMED]]
    return "; ".join([*texts, *([f"{len(cells) - _MAX_NAMED} more like it"] if len(cells) > _MAX_NAMED else [])])


def _conclude_settings(primaries: Sequence[Comparison]) -> Conclusion:
    if not primaries:
        return Conclusion(Verdict.INCONCLUSIVE, "no primary metric was measured")
    by_setting: dict[str, list[Comparison]] = defaultdict(list)
    for comparison in primaries:
        by_setting[comparison.setting].append(comparison)
    verdicts = [verdict for group in by_setting.values() if (verdict := _worst(group)) is not None]
    order = [Verdict.IMPROVEMENT, *(v for v in Verdict if v is not Verdict.IMPROVEMENT)]
    best = min(verdicts, key=order.index, default=Verdict.INCONCLUSIVE)
    first = primaries[0]
    scenario = next((c.scenario for c in primaries if c.verdict is best), first.scenario)
    shown = [c for c in primaries if c.scenario == scenario and c.kernel is first.kernel]
    shown.sort(key=lambda c: -abs(c.effect or 0.0))
    parts = [_describe_setting(c, words.VERDICT[c.verdict or best]) for c in shown[:_MAX_NAMED]]
    more = f", {len(shown) - _MAX_NAMED} more" if len(shown) > _MAX_NAMED else ""
    start = ""
    if shown[0].baseline is not None:
        divisor, unit = words.readable_time([shown[0].baseline.mean], first.unit)
        start = f" from {words.number(shown[0].baseline.mean / divisor)} {unit}"
    text = f"{scenario}: {words.metric_name(first.metric)}{start} at {first.reference}: {', '.join(parts)}{more}"
    has_no_figure = best in {Verdict.INCONCLUSIVE, Verdict.WITHHELD, Verdict.UNSUPPORTED}
    return Conclusion(best, _join(text, shown[0].reason if has_no_figure else ""))


def _describe_setting(of: Comparison, verdict: str) -> str:
    effect = words.effect(of)
    return f"{effect} with {of.setting}" if effect else f"{of.setting} {verdict}"


def _worst(comparisons: Sequence[Comparison]) -> Verdict | None:
    verdicts = [comparison.verdict for comparison in comparisons if comparison.verdict is not None]
    for verdict in (Verdict.FAILED, *_SIGNIFICANT):
        if verdict in verdicts:
            return verdict
    judged = [verdict for verdict in verdicts if verdict is not Verdict.UNSUPPORTED]
    for verdict in (
        Verdict.NOT_EXERCISED,
        Verdict.INCONCLUSIVE,
        Verdict.WITHHELD,
        Verdict.EQUIVALENT,
        Verdict.NO_EVIDENCE,
    ):
        if verdict in judged:
            return verdict
    return Verdict.UNSUPPORTED if verdicts else None


def _describe_comparison(comparison: Comparison, scenario: bool, setting: bool) -> str:
    where = _where(comparison, scenario, setting).rstrip()
    metric = " ".join(filter(None, [where and f"{where}:", words.metric_name(comparison.metric)]))
    before, after = comparison.baseline, comparison.candidate
    if comparison.verdict is Verdict.NOT_EXERCISED:
        return f"{metric}: {comparison.reason}"
    if comparison.exact and before and after and comparison.verdict is not Verdict.INCONCLUSIVE:
        if before.mean == after.mean:
            return f"{metric} is {words.number(before.mean)} in every boot of both kernels (n={before.n})"
        figures = f"{words.number(before.mean)} -> {words.number(after.mean)}"
        name = where if "_per_" in comparison.metric else metric
        kind = "" if comparison.unit.lower() in SHARE_UNITS else "; a code path count"
        text = f"{figures} {words.counted(comparison)}{kind}, the same in every boot (n={before.n})"
        return f"{name}: {text}" if name else text
    if comparison.verdict is Verdict.WITHHELD:
        figures = f"{words.effect(comparison)} {words.ci(comparison)}".strip()
        return ", ".join(filter(None, [f"{metric} {figures}".strip(), f"verdict withheld: {comparison.reason}"]))
    if comparison.evidence is Evidence.MODELLED and comparison.verdict in _SIGNIFICANT and after:
        figures = f"{words.modelled(comparison)} {words.ci(comparison)}".strip()
        return f"{where}: {figures}".removeprefix(": ") + f" over {words.count(after.n, 'seed')}"
    if comparison.evidence in SEEDED and before and after:
        if comparison.effect == 0 and before.mean == after.mean:
            return f"{metric}: {comparison.reason}"
        if comparison.verdict in _SIGNIFICANT:
            interval = f" {words.ci(comparison)}".rstrip()
            return f"{metric}: {words.fewer_or_more(comparison)}{interval} over {words.count(after.n, 'seed')}"
    if comparison.verdict is Verdict.EQUIVALENT:
        return f"{metric} is the same within {words.threshold(comparison)}"
    if comparison.verdict in _SIGNIFICANT:
        return f"{metric} {words.effect(comparison)} {words.ci(comparison)}".strip()
    return f"{metric}: {comparison.reason}"


def _surviving_figures(figures: Conclusion) -> str:
    return f"figures of the boots that finished: {figures.headline}" if figures.verdict in _SIGNIFICANT else ""


def as_modelled(conclusion: Conclusion, machine: str = "") -> Conclusion:
    """Return the conclusion of a model's figures as such: its headline begins with `modelled`, and the machine."""
    where = f" on a {machine}-like machine" if machine else ""
    return replace(conclusion, headline=f"modelled{where}: {conclusion.headline}")


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
