"""A quote for a request as the lab is now: reads what the pure estimate needs, writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from wqlab_contracts import mbox
from wqlab_contracts.api.quotes import Quote
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import Arm, JobState, Outcome
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import Target

from ..estimates import lab_snapshot, timings
from ..models import Apply, Boot, BootValue, Build, Run
from ..settings import Settings
from . import detectable
from .quote import Kernel, Request, Wanted, quote
from .service import target_profile
from .validate import Mistake, mistakes

_RUNS = 20
"""How many of the newest runs a spread is taken from."""


def make(session: Session, data: DataFolder, settings: Settings, request: SubmissionRequest, owner: str) -> Quote:
    errors = mistakes(request, data, settings.local_git_path_list)
    good = [(index, target) for index, target in enumerate(request.targets) if _is_good(index, errors)]
    series = request.series is not None
    usual = timings.boots(session, {(target.plan, target.device_type) for _, target in good})
    wanted = []
    for index, target in good:
        device_type = data.device_types[target.device_type]
        plan = data.plans[target.plan].measured(target.scenarios, device_type.emulated)
        # One that is not there is among the errors.
        recipe = data.recipes.get(request.recipe_for(device_type), data.recipes[device_type.recipe])
        profile = target_profile(plan, device_type, target, request.blocks, recipe)
        metric = detectable.primary(plan, device_type.emulated)
        effect = None
        if metric is not None:
            effect = detectable.detectable(
                plan,
                metric,
                emulated=device_type.emulated,
                series=series,
                blocks=profile.blocks,
                past=_past(session, plan.name, device_type.name, metric.name),
            )
        wanted.append(
            Wanted(
                index=index,
                plan=plan,
                device_type=device_type,
                profile=profile,
                boots_per_block=2 if series else 1,
                measured=usual.get((target.plan, target.device_type)),
                detectable=effect,
            )
        )
    built = timings.builds(session)
    return quote(
        Request(
            owner=owner,
            priority=request.priority,
            wanted=wanted,
            kernels=_kernels(session, data, request, [target for _, target in good], built),
            builds_ahead=_builds_ahead(session, built),
            errors=errors,
        ),
        lab_snapshot.load(session, settings),
    )


def _is_good(index: int, errors: Sequence[Mistake]) -> bool:
    """Whether a target can be quoted, whatever is wrong with the rest of the request."""
    own = f"/targets/{index}"
    return not any(error["pointer"] == own or error["pointer"].startswith(f"{own}/") for error in errors)


_Built = dict[tuple[str, str, Arm], timings.Usual]


def _kernels(
    session: Session, data: DataFolder, request: SubmissionRequest, targets: Sequence[Target], built: _Built
) -> list[Kernel]:
    """One baseline, and with a series one candidate, per recipe, architecture and kind of device."""
    arms = list(Arm) if request.series is not None else [Arm.BASELINE]
    types = [data.device_types[target.device_type] for target in targets]
    kinds = dict.fromkeys((request.recipe_for(spec), spec.arch, spec.emulated) for spec in types)
    there = _baselines(session, request) if targets else set()
    return [
        Kernel(recipe, _usual(built, recipe, arch, arm), arm is Arm.BASELINE and (recipe, arch, emulated) in there)
        for recipe, arch, emulated in kinds
        for arm in arms
    ]


def _baselines(session: Session, request: SubmissionRequest) -> set[tuple[str, str, bool]]:
    """(recipe, arch, emulated) of the kernels there are of the tree's last known commit, where the request may sit."""
    result = type_coerce(Apply.result, JSONB)
    head = session.execute(
        select(result["baseline"]["tree_oid"].astext, result["baseline"]["base_commit"].astext)
        .where(
            Apply.outcome == Outcome.PASSED,
            result["candidate"].astext.is_(None),
            type_coerce(Apply.tree, JSONB)["name"].astext == request.tree,
        )
        .order_by(Apply.id.desc())
        .limit(1)
    ).one_or_none()
    if head is None:
        return set()
    tree_oid, commit = head
    if request.series is not None and request.series.mbox is not None:
        named = mbox.base_commit([request.series.mbox.text])
        if named is not None and named != commit:
            return set()
    found = session.execute(
        select(Build.recipe, Build.arch, Build.emulated).where(
            Build.outcome == Outcome.PASSED, type_coerce(Build.source, JSONB)["tree_oid"].astext == tree_oid
        )
    )
    return {(recipe.name, arch, emulated) for recipe, arch, emulated in found}


def _usual(built: _Built, recipe: str, arch: str, arm: Arm) -> timings.Usual | None:
    """The kernel's own time, or that of the other arm: both are the same tree to a compiler."""
    return next((built[recipe, arch, each] for each in (arm, *Arm) if (recipe, arch, each) in built), None)


def _builds_ahead(session: Session, built: _Built) -> list[timings.Usual | None]:
    pending = session.execute(
        select(Build.recipe, Build.arch).where(Build.state.in_([JobState.QUEUED, JobState.RUNNING]))
    )
    return [_usual(built, recipe.name, arch, Arm.BASELINE) for recipe, arch in pending]


def _past(session: Session, plan: str, device_type: str, metric: str) -> list[detectable.PastValue]:
    newest = (
        select(Run.id)
        .where(Run.plan_name == plan, Run.device_type == device_type, Run.compared_at.is_not(None))
        .order_by(Run.id.desc())
        .limit(_RUNS)
    )
    rows = session.execute(
        select(BootValue.run_id, Boot.block, Boot.arm, BootValue.scenario, BootValue.setting, BootValue.value)
        .join(Boot, Boot.id == BootValue.boot_id)
        .where(BootValue.run_id.in_(newest), BootValue.metric == metric, Boot.valid)
    )
    return [detectable.PastValue(*row) for row in rows]
