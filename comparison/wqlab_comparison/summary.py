"""Summarise the targets of a submission as the report's headline: what was found, and what was not measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import VERDICT_ORDER, ErrorKind, Evidence, Question, Role, Verdict
from wqlab_contracts.messages import Failure

from . import words
from .target import conclude_figures, of_kernels

_MAX_METRICS = 2
"""Maximum number of metrics that the headline names of one target."""
_MAX_TARGETS = 3
"""Maximum number of targets of which it names metrics that are better, or worse."""


@dataclass(frozen=True)
class Stated:
    """Verdict of one target, as input of `summarise`."""

    plan: str
    device_type: str
    emulated: bool
    verdict: Verdict
    study: bool
    """True if settings of one kernel were compared, False if a series was."""
    failure: Failure | None = None
    instrumented: bool = False
    """True if the verdict is on counts of an instrumented device."""
    modelled: bool = False
    """True if it is on a model's figures. A modelled device is instrumented too."""
    comparisons: Sequence[Comparison] = ()

    @property
    def kind(self) -> str:
        """Return the kind of device as in texts: `modelled`; empty for hardware."""
        kinds = {"modelled": self.modelled, "instrumented": self.instrumented, "emulated": self.emulated}
        return next((kind for kind, is_so in kinds.items() if is_so), "")


_OF_A_SERIES = {
    Verdict.FAILED: "fails on",
    Verdict.REGRESSION: "worse on",
    Verdict.IMPROVEMENT: "better on",
    Verdict.BELOW_THRESHOLD: "{metric} changed by less than the threshold on",
    Verdict.EQUIVALENT: "no change of {metric} on",
    Verdict.INCONCLUSIVE: "can't tell yet on",
    Verdict.WITHHELD: "verdict withheld on",
    Verdict.NOT_EXERCISED: "no changed line ran on",
    Verdict.UNSUPPORTED: "not supported on",
    Verdict.NO_EVIDENCE: "no problem and no figures on",
}
"""Phrase for each verdict on a series; `metric`: the primary ones."""
_OF_SETTINGS = _OF_A_SERIES | {
    Verdict.REGRESSION: "no setting is better, some are worse on",
    Verdict.IMPROVEMENT: "a setting is better on",
    Verdict.BELOW_THRESHOLD: "settings change {metric} by less than the threshold on",
    Verdict.EQUIVALENT: "settings make no difference to {metric} on",
}
_OF_MODELS = _OF_A_SERIES | {
    Verdict.BELOW_THRESHOLD: "{metric} modelled to change by less than the threshold on",
    Verdict.EQUIVALENT: "{metric} modelled as the same on",
}
_SPEED = {
    Evidence.PERFORMANCE: "",
    Evidence.MODELLED: "Speed was modelled, not measured",
}
"""What a headline says of speed by its best evidence; without any it was not measured."""


def summarise(targets: Sequence[Stated]) -> str:
    """Return one sentence for each kind of result, the most severe first. The last one says if speed was not measured.

    Example: `Worse: locks per fsync +12.9 % on tiny (emulated). Can't tell yet on n100. Speed was not measured.`
    """
    several = len({target.plan for target in targets}) > 1
    names = {id(target): _name(target, several=several) for target in targets}
    claims = {id(target): _claims(target) for target in targets}
    sentences = defaultdict[str, list[str]](list)
    ordered = sorted(targets, key=lambda target: VERDICT_ORDER.index(target.verdict))
    for modelled in (False, True):
        for verdict, start in ((Verdict.REGRESSION, "worse"), (Verdict.IMPROVEMENT, "better")):
            found = [
                f"{text} on {names[id(target)]}"
                for target in ordered
                if (text := _describe(target, [c for c in claims[id(target)] if c.verdict is verdict], modelled))
            ]
            if found:
                more = len(found) - _MAX_TARGETS
                shown = [*found[:_MAX_TARGETS], *([f"{words.count(more, 'more target')}"] if more > 0 else [])]
                sentences[f"modelled as {start}:" if modelled else f"{start}:"] = ["; ".join(shown)]
    for target in ordered:
        if not any(claim.role is Role.PRIMARY for claim in claims[id(target)]):
            sentences[_phrase(target)].append(names[id(target)])
    fails = [phrase for phrase in sentences if phrase == _OF_A_SERIES[Verdict.FAILED]]
    texts = [f"{phrase} {_and(sentences[phrase])}" for phrase in [*fails, *(p for p in sentences if p not in fails)]]
    return " ".join(f"{text[:1].upper()}{text[1:]}." for text in [*texts, *_speed(targets)])


def _name(target: Stated, *, several: bool) -> str:
    about = ", ".join(filter(None, [target.kind, target.plan if several else ""]))
    return f"{target.device_type} ({about})" if about else target.device_type


def _claims(target: Stated) -> list[Comparison]:
    """Return the comparisons that are better or worse; none if the target's verdict is not that of its figures."""
    figures, primary = conclude_figures(target.comparisons, study=target.study)
    if figures.verdict is not target.verdict:
        return []
    if target.study:
        return [
            each
            for each in target.comparisons
            if each.role is Role.PRIMARY and each.verdict is Verdict.IMPROVEMENT and primary is Verdict.IMPROVEMENT
        ]
    return [
        each for each in of_kernels(target.comparisons) if each.verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT}
    ]


def _describe(target: Stated, claims: Sequence[Comparison], modelled: bool) -> str:
    """Return what the claims of one kind say of each metric; empty without any."""
    by_metric = defaultdict[str, list[Comparison]](list)
    for claim in sorted(claims, key=lambda each: each.role is not Role.PRIMARY):
        if (claim.evidence is Evidence.MODELLED) is modelled:
            by_metric[claim.metric].append(claim)
    texts = [_describe_metric(target, cells) for cells in by_metric.values()]
    more = len(texts) - _MAX_METRICS
    return ", ".join([*texts[:_MAX_METRICS], *([words.count(more, "more metric")] if more > 0 else [])])


def _describe_metric(target: Stated, claims: Sequence[Comparison]) -> str:
    """Return the largest effect, and where it is: `locks per fsync +12.9 % in LOW`, `... in 2 of 3 cases`."""
    largest = max(claims, key=lambda each: abs(each.effect or 0.0))
    judged = [
        each
        for each in target.comparisons
        if each.metric == largest.metric and each.question is largest.question and each.verdict is not None
    ]
    text = words.claim(largest).replace("_", " ")
    if largest.question is Question.SETTING:
        return f"{text} with {largest.setting}"
    if len(judged) < 2:
        return text
    if len(claims) > 1:
        return f"{text} in {len(claims)} of {len(judged)} cases"
    return f"{text} in {' '.join(filter(None, (largest.scenario, largest.setting)))}"


def _label(comparison: Comparison) -> str:
    return comparison.metric.replace("_", " ")


def _phrase(target: Stated) -> str:
    """Return what is said of a target whose primary metric is neither better nor worse."""
    if target.failure and target.failure.kind is not ErrorKind.KERNEL and not _is_judged(target):
        return f"not measured ({target.failure.kind}) on"
    if target.verdict is Verdict.EQUIVALENT and not target.comparisons:
        return "byte-identical kernels on"
    figures, of_primary = conclude_figures(target.comparisons, study=target.study)
    verdict = target.verdict if figures.verdict is not target.verdict or of_primary is None else of_primary
    of_series: Mapping[Verdict, str] = _OF_MODELS if target.modelled else _OF_A_SERIES
    phrases = _OF_SETTINGS if target.study else of_series
    primaries = dict.fromkeys(_label(each) for each in target.comparisons if each.role is Role.PRIMARY)
    return phrases[verdict].format(metric=_and(list(primaries)) if primaries else "anything")


def _is_judged(target: Stated) -> bool:
    return target.verdict not in {Verdict.FAILED, Verdict.INCONCLUSIVE}


def _speed(targets: Sequence[Stated]) -> list[str]:
    """Return what was not measured of speed; nothing if no target was measured, or speed was."""
    measured = {each.evidence for target in targets for each in target.comparisons if each.candidate and each.baseline}
    if not measured:
        return []
    text = next((text for evidence, text in _SPEED.items() if evidence in measured), "Speed was not measured")
    return [text] if text else []


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
