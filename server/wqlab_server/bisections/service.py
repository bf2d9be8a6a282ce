"""Bisections: begin and cancel them."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.bisections import OPEN_STATES, BisectionRequest
from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.enums import BisectionState, Evidence
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.specs import Tree
from wqlab_contracts.yamlfile import suggest_name

from ..http.problems import invalid, not_found
from ..models import Bisection, Submission
from ..storage.db import Message, clock, post
from ..wait import Wait
from . import lists

MOST_OPEN = 10
"""Open bisections of one owner."""


def get(session: Session, bisection_id: int, *, lock: bool = False) -> Bisection:
    """Return a bisection. Raises ApiProblem 404."""
    query = select(Bisection).where(Bisection.id == bisection_id).execution_options(populate_existing=lock)
    found = session.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise not_found("bisection", bisection_id)
    return found


def create(
    session: Session,
    data: DataFolder,
    request: BisectionRequest,
    owner: str,
    *,
    limited: bool,
    repository: Tree | None = None,
    watch: str | None = None,
    device: str | None = None,
) -> Bisection:
    """Begin a bisection: a worker is asked for the commits.

    Raises ApiProblem 422 with every mistake of the request, and Wait if the owner has too many open ones.
    """
    request = complete(request, data)
    if request.submission is not None and session.get(Submission, request.submission) is None:
        raise invalid([{"pointer": "/submission", "detail": f"no submission {request.submission}"}])
    unfinished = select(func.count()).where(Bisection.owner == owner, Bisection.state.in_(OPEN_STATES))
    if watch is None and (session.scalar(unfinished) or 0) >= MOST_OPEN:
        raise Wait(
            f"{MOST_OPEN} of your bisections go on; wait until one has ended, or cancel one",
            pause=timedelta(minutes=10),
        )
    row = Bisection(
        request=request,
        repository=repository or data.trees[request.tree],
        owner=owner,
        limited=limited,
        watch=watch,
        device=device,
        state=BisectionState.LISTING,
    )
    session.add(row)
    session.flush()
    lists.request(session, row, request.good, request.bad)
    return row


def cancel(session: Session, bisection_id: int) -> Bisection:
    """Request the cancellation of a bisection; what it measures now is canceled too. Raises ApiProblem 404.

    Changes nothing if it has ended.
    """
    row = get(session, bisection_id, lock=True)
    if row.state in OPEN_STATES and row.cancel_requested_at is None:
        row.cancel_requested_at = clock(session)
        post(session, Message(TICK, None, SERVER_QUEUE))
    return row


def complete(request: BisectionRequest, data: DataFolder) -> BisectionRequest:
    """Return the request with scenario and setting, and on real and emulated devices the number of blocks.

    Raises ApiProblem 422 with every mistake.
    """
    found: list[dict[str, str]] = []

    def mistake(pointer: str, detail: str) -> None:
        found.append({"pointer": pointer, "detail": detail})

    if request.tree not in data.trees:
        mistake("/tree", f"no tree {request.tree!r}; {suggest_name(request.tree, set(data.trees))}")
    elif data.trees[request.tree].url is None:
        mistake("/tree", f"{request.tree} is a source package; commits are bisected in a git repository")
    if request.good == request.bad:
        mistake("/bad", "is the good one; name two commits")
    if request.recipe is not None and request.recipe not in data.recipes:
        mistake("/recipe", f"no kernel recipe {request.recipe!r}; {suggest_name(request.recipe, set(data.recipes))}")
    if not data.has_device_type(request.device_type):
        mistake("/device_type", f"no device type {request.device_type!r}; see `wqlab devices`")
    if request.plan not in data.plans:
        mistake("/plan", f"no plan {request.plan!r}; {suggest_name(request.plan, set(data.plans))}")
    if found:
        raise invalid(found)
    device_type = data.device_type(request.device_type)
    plan = data.plans[request.plan].on(device_type)
    profile = plan.profile(device_type.emulated)
    scenario, setting = request.scenario, request.setting
    names = profile.scenarios or [each.name for each in plan.scenarios]
    if scenario is None and len(names) > 1:
        mistake("/scenario", f"name one of {', '.join(names)}")
    elif scenario is not None and scenario not in {each.name for each in plan.scenarios}:
        known = {each.name for each in plan.scenarios}
        mistake("/scenario", f"plan {plan.name} has no scenario {scenario!r}; {suggest_name(scenario, known)}")
    if setting is None:
        setting = plan.reference_setting
    try:
        plan.check_setting(setting)
    except ValueError as error:
        mistake("/setting", str(error))
    metrics = {each.name: each.evidence(device_type.emulated) for each in plan.metrics}
    if request.metric is not None and request.metric not in metrics:
        known = set(metrics)
        mistake("/metric", f"plan {plan.name} has no metric {request.metric!r}; {suggest_name(request.metric, known)}")
    elif request.metric is not None and metrics[request.metric] is Evidence.NONE:
        usable = [name for name, evidence in metrics.items() if evidence is not Evidence.NONE]
        mistake("/metric", f"{request.metric} is no evidence on {device_type.name}; {', '.join(usable) or 'none'} is")
    elif request.metric is not None and metrics[request.metric] is Evidence.MODELLED:
        counts = [name for name, evidence in metrics.items() if evidence is Evidence.INSTRUMENTED]
        mistake("/metric", f"{request.metric} is modelled on {device_type.name}: choose a count, {', '.join(counts)}")
    recipe = data.recipes[request.recipe or device_type.recipe]
    if request.metric is not None and not recipe.figures:
        mistake("/recipe", f"{recipe.name} gives no figures; leave it out, or search for a failure")
    if found:
        raise invalid(found)
    blocks = request.blocks
    if blocks is None and not device_type.instrumented:
        blocks = profile.most_blocks
    return request.model_copy(update={"scenario": scenario or names[0], "setting": setting, "blocks": blocks})
