"""What reports say of a modelled target: by which costs it was modelled, what they cannot tell, and what is not mailed.

A model's verdict is no finding: it is left out of mails to lists and of comments on pull requests.
"""

from __future__ import annotations

from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.enums import Verdict
from wqlab_contracts.specs import CostProfileId
from wqlab_contracts.specs.validation import FACT

from . import cells

CANNOT_TELL = (
    "A model's figures in virtual time, not measured: what its stated costs leave out, it cannot tell. Never quote "
    "them as measured"
)
METHOD_OF_MODELS = (
    "On a modelled device each CPU has a virtual clock of its own, and instructions, cache lines and waiting take the "
    "times of a cost profile. n is the number of seeds, as for counts. Modelled figures are a family of tests of their "
    "own. A verdict is withheld if the profile was not compared with published figures of this plan and metric, or if "
    "the change is within the noise floor."
)
"""Description of the method that reports with a modelled device have in addition."""
_SHORT = 12
"""Digits shown of a hash."""


def costs(target: TargetReport) -> str:
    """Return `modelled on ryzen-3900x costs (sha256:1a2b3c4d5e6f)`; empty if the target has no modelled figure."""
    if not target.plan.is_modelled:
        return ""
    profile = CostProfileId.parse(target.environment.facts.get(FACT, "") if target.environment else "")
    if profile is None:
        return "modelled on unknown costs"
    return f"modelled on {profile.name} costs (sha256:{profile.sha256[:_SHORT]})"


def page(report: Report) -> str:
    """Return the URL of the page that says what a model can and cannot tell."""
    return f"{report.lab_url.rstrip('/')}/docs/model/"


def without_models(report: Report) -> Report:
    """Return the report without modelled figures, and without the targets that have nothing else to say.

    A kernel that fails on a modelled device fails, so such a target stays.
    """
    targets = [
        target if not target.plan.is_modelled else _without_figures(target)
        for target in report.targets
        if not target.plan.is_modelled or target.verdict is Verdict.FAILED
    ]
    sweep = None if any(target.plan.is_modelled for target in report.targets) else report.sweep
    return report.model_copy(update={"targets": targets, "sweep": sweep})


def left_out(report: Report) -> str:
    """Return which targets `without_models` leaves out; empty if none."""
    names = [
        f"{target.plan.name} on {target.device_type}"
        for target in report.targets
        if target.plan.is_modelled and target.verdict is not Verdict.FAILED
    ]
    if not names:
        return ""
    return f"Left out, because a model's verdict is no finding: {', '.join(names)}. See the report on the lab's page."


def _without_figures(target: TargetReport) -> TargetReport:
    return target.model_copy(
        update={"comparisons": cells.without_models(target.comparisons), "curves": [], "references": []}
    )
