"""Summarise the verdicts of all targets of a submission in one sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wqlab_contracts.enums import VERDICT_ORDER, ErrorKind, Verdict
from wqlab_contracts.messages import Failure


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

    @property
    def kind(self) -> str:
        """Return the kind of device as in texts: `modelled`; empty for hardware."""
        kinds = {"modelled": self.modelled, "instrumented": self.instrumented, "emulated": self.emulated}
        return next((kind for kind, is_so in kinds.items() if is_so), "")


_OF_A_SERIES = {
    Verdict.FAILED: "fails on",
    Verdict.REGRESSION: "regresses",
    Verdict.IMPROVEMENT: "improves",
    Verdict.BELOW_THRESHOLD: "changes less than the threshold on",
    Verdict.EQUIVALENT: "no change on",
    Verdict.INCONCLUSIVE: "can't tell on",
    Verdict.WITHHELD: "verdict withheld on",
    Verdict.UNSUPPORTED: "not supported on",
    Verdict.NO_EVIDENCE: "no evidence from",
}
"""Phrase for each verdict on a series."""
_OF_SETTINGS = _OF_A_SERIES | {
    Verdict.REGRESSION: "no setting is better, some are worse on",
    Verdict.IMPROVEMENT: "a setting improves",
    Verdict.BELOW_THRESHOLD: "settings differ less than the threshold on",
    Verdict.EQUIVALENT: "settings make no difference on",
}
_OF_COUNTS = _OF_A_SERIES | {
    Verdict.REGRESSION: "more kernel instructions on",
    Verdict.IMPROVEMENT: "fewer kernel instructions on",
    Verdict.BELOW_THRESHOLD: "kernel instructions change less than the threshold on",
    Verdict.EQUIVALENT: "the same kernel instructions on",
}
"""Phrase for each verdict on a count: it is no time, so nothing improves or regresses by it alone."""
_OF_COUNTS_OF_SETTINGS = _OF_COUNTS | {
    Verdict.REGRESSION: "no setting takes fewer kernel instructions, some take more on",
    Verdict.IMPROVEMENT: "a setting takes fewer kernel instructions on",
    Verdict.BELOW_THRESHOLD: "kernel instructions of settings differ less than the threshold on",
    Verdict.EQUIVALENT: "settings take the same kernel instructions on",
}
_OF_MODELS = _OF_A_SERIES | {
    Verdict.REGRESSION: "modelled as worse on",
    Verdict.IMPROVEMENT: "modelled as better on",
    Verdict.BELOW_THRESHOLD: "modelled to change less than the threshold on",
    Verdict.EQUIVALENT: "modelled as the same on",
}
"""Phrase for each verdict on a model's figures: nothing regresses or improves by them."""
_OF_MODELS_OF_SETTINGS = _OF_MODELS | {
    Verdict.REGRESSION: "no setting is modelled as better, some as worse on",
    Verdict.IMPROVEMENT: "a setting is modelled as better on",
    Verdict.BELOW_THRESHOLD: "settings are modelled to differ less than the threshold on",
    Verdict.EQUIVALENT: "settings are modelled as the same on",
}
_NOT_MEASURED = "not measured on"


def summarise(targets: Sequence[Stated]) -> str:
    """Format all verdicts as `improves xeon-2s and ryzen-3900x, can't tell on tiny (emulated)`, grouped by plan."""
    by_plan: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for target in sorted(targets, key=lambda target: VERDICT_ORDER.index(target.verdict)):
        phrase = _phrases(target)[target.verdict]
        if target.verdict is Verdict.FAILED and target.failure and target.failure.kind is not ErrorKind.KERNEL:
            phrase = _NOT_MEASURED
        name = f"{target.device_type} ({target.kind})" if target.kind else target.device_type
        by_plan[target.plan][phrase].append(name)
    order = dict.fromkeys(target.plan for target in targets)
    texts = {plan: ", ".join(f"{phrase} {_and(names)}" for phrase, names in by_plan[plan].items()) for plan in order}
    return "; ".join(f"{plan}: {text}" for plan, text in texts.items()) if len(texts) > 1 else "".join(texts.values())


def _phrases(target: Stated) -> Mapping[Verdict, str]:
    if target.modelled:
        return _OF_MODELS_OF_SETTINGS if target.study else _OF_MODELS
    if target.instrumented:
        return _OF_COUNTS_OF_SETTINGS if target.study else _OF_COUNTS
    return _OF_SETTINGS if target.study else _OF_A_SERIES


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
