"""Submissions: created with a snapshot of everything they ask for, canceled, tried again."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts import mbox
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.celery_names import ADVANCE, SERVER_QUEUE
from wqlab_contracts.enums import Arm, EventKind, RunPurpose, SubmissionState, Verdict
from wqlab_contracts.keys import fragment_names
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import Target, normalised_subject
from wqlab_contracts.specs import DeviceType, KernelRecipe, Profile, Repetitions, TestPlan

from ..http.problems import ApiProblem, invalid, not_found
from ..jobs import claims
from ..models import Apply, Run, Submission
from ..settings import Settings
from ..storage.db import Message, clock, post
from ..storage.events import emit
from .state import check_transition
from .validate import mistakes

_LONGEST = 500
"""Characters; a row of a btree has room for 2,700 bytes."""
_ONCE = Repetitions(warmup=0, untraced=1, traced=0)
"""Of a kernel that gives no figures: nothing to warm up for, and tracing all its lock calls would take minutes."""
_DEBUG_SLOWER = 4
"""So many times its limit may a repetition take under lockdep and KASAN."""
_LONGEST_MEASURE_S = 7200


def create(
    session: Session,
    data: DataFolder,
    settings: Settings,
    request: SubmissionRequest,
    owner: str,
    *,
    idempotency_key: str | None = None,
    retry_of: int | None = None,
) -> Submission:
    """A new submission with its apply queued and its runs waiting. Raises ApiProblem 422 with every mistake.

    The same owner's same `idempotency_key` again gives the submission that it made the first time.
    """
    if idempotency_key is not None:
        known = session.scalar(
            select(Submission).where(Submission.owner == owner, Submission.idempotency_key == idempotency_key)
        )
        if known is not None:
            if known.request != request:
                raise ApiProblem(422, f"idempotency key {idempotency_key!r} was used for another request")
            return known
    found = mistakes(request, data, settings.local_git_path_list)
    if found:
        raise invalid(found)
    toolchain = data.recipes[request.recipe_for(data.device_types[request.targets[0].device_type])].toolchain
    submission = Submission(
        request=request,
        owner=owner,
        idempotency_key=idempotency_key,
        retry_of=retry_of,
        tree=request.tree,
        facets=facets(request),
        priority=request.priority,
        state=SubmissionState.APPLYING,
        event_seq=0,
        **_names(request),
    )
    session.add(submission)
    session.flush()
    for index, target in enumerate(request.targets):
        session.add(plan_run(submission, index, target, data))
    apply = Apply(submission_id=submission.id, tree=data.trees[request.tree], toolchain=toolchain)
    session.add(apply)
    session.flush()
    emit(session, submission.id, EventKind.SUBMISSION_STATE, state=submission.state)
    claims.queue_apply(session, apply)
    return submission


def plan_run(submission: Submission, index: int, target: Target, data: DataFolder) -> Run:
    """The run of one target, with everything it will use copied from the data folder."""
    device_type = data.device_types[target.device_type]
    plan = data.plans[target.plan].measured(target.scenarios, device_type.emulated)
    recipe = data.recipes[submission.request.recipe_for(device_type)]
    profile = target_profile(plan, device_type, target, submission.request.blocks, recipe)
    seed = secrets.randbits(48)
    return Run(
        submission_id=submission.id,
        purpose=RunPurpose.MEASURE,
        target=index,
        owner=submission.owner,
        priority=submission.priority,
        seed=seed,
        wanted_backend=submission.request.backend,
        blocks=block_plan(profile.blocks, submission.request.series is not None, seed),
        profile=profile,
        **snapshot(data, device_type, plan, recipe),
    )


def snapshot(
    data: DataFolder, device_type: DeviceType, plan: TestPlan, recipe: KernelRecipe | None = None
) -> dict[str, object]:
    """Columns of a run that keep what the data folder says now. `recipe`: instead of the device type's own."""
    recipe = recipe or data.recipes[device_type.recipe]
    names = fragment_names(recipe, device_type.arch, device_type.emulated)
    return {
        "device_type": device_type.name,
        "device_spec": device_type,
        "plan_name": plan.name,
        "plan": plan,
        "files": data.plan_files(plan.name),
        "recipe": recipe,
        "fragments": {name: data.fragment(name) for name in names},
        "modules": data.modules_of(recipe),
    }


def target_profile(
    plan: TestPlan, device_type: DeviceType, target: Target, blocks: int | None, recipe: KernelRecipe
) -> Profile:
    profile = plan.profile(device_type.emulated)
    if not recipe.figures:
        profile = profile.model_copy(
            update={
                "repetitions": _ONCE,
                "measure_timeout_s": min(profile.measure_timeout_s * _DEBUG_SLOWER, _LONGEST_MEASURE_S),
            }
        )
    return profile.model_copy(
        update={
            "parameters": {**profile.parameters, **target.parameters},
            "settings": target.settings or profile.settings,
            "blocks": blocks or profile.blocks,
        }
    )


def block_plan(blocks: int, series: bool, seed: int) -> list[list[Arm]]:
    """Arms of each block in boot order: half of the blocks baseline first (one more at random when they are odd),
    shuffled. Without a series a block is one boot of the tree's own kernel."""
    if not series:
        return [[Arm.BASELINE] for _ in range(blocks)]
    shuffle = random.Random(seed)  # noqa: S311 - an order that is stored with its seed, not a secret
    first, second = [Arm.BASELINE, Arm.CANDIDATE], [Arm.CANDIDATE, Arm.BASELINE]
    plan = [list(order) for order in [first, second] * (blocks // 2)]
    if blocks % 2:
        plan.append(list(shuffle.choice([first, second])))
    shuffle.shuffle(plan)
    return plan


def lock(session: Session, submission_id: int) -> Submission:
    """Raises ApiProblem 404."""
    submission = session.scalar(
        select(Submission)
        .where(Submission.id == submission_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    if submission is None:
        raise not_found("submission", submission_id)
    return submission


def cancel(session: Session, submission_id: int) -> Submission:
    """Asks for the end of a submission: what waits ends now, what runs is told to stop. Canceling twice, or what is
    finished, changes nothing. Raises ApiProblem 404."""
    submission = lock(session, submission_id)
    if submission.state is not SubmissionState.FINISHED and submission.cancel_requested_at is None:
        submission.cancel_requested_at = clock(session)
        post(session, Message(ADVANCE, submission.id, SERVER_QUEUE))
    return submission


def retry(session: Session, data: DataFolder, settings: Settings, submission_id: int, owner: str) -> Submission:
    """A new submission that asks for the same; builds that passed are used again. Raises ApiProblem 404, or 409 while
    the old one is not finished (a finished submission never changes, so that its report stays true)."""
    old = lock(session, submission_id)
    if old.state is not SubmissionState.FINISHED:
        raise ApiProblem(409, f"submission {old.id} is {old.state}; cancel it first, or wait")
    return create(session, data, settings, old.request, owner, retry_of=old.id)


def enter(session: Session, submission: Submission, state: SubmissionState) -> None:
    """Moves forward; staying is no change. Raises IllegalTransition."""
    if submission.state is state:
        return
    check_transition(submission.state, state)
    submission.state = state
    if state is not SubmissionState.FINISHED:
        emit(session, submission.id, EventKind.SUBMISSION_STATE, state=state)


def facets(request: SubmissionRequest, verdicts: Iterable[Verdict] = ()) -> list[str]:
    """What lists of submissions filter by: each target's plan, device type and both, and the targets' verdicts."""
    found = [f"verdict:{verdict}" for verdict in verdicts]
    for target in request.targets:
        found += [f"plan:{target.plan}", f"type:{target.device_type}", f"target:{target.plan}@{target.device_type}"]
    return sorted(set(found))


def cut(text: str) -> str:
    """At most what an index of PostgreSQL can hold of a submitter's words."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _names(request: SubmissionRequest) -> dict[str, object]:
    """What a submission is called until its series has been applied: columns title, series_key, author, version."""
    if request.series is None:
        targets = ", ".join(f"{target.plan} on {target.device_type}" for target in request.targets)
        return {"title": cut(f"settings study: {targets}"), "series_key": "", "author": "", "version": None}
    if request.series.git is not None:
        title = f"{request.series.git.ref} of {request.series.git.url}"
        return {"title": cut(title), "series_key": cut(normalised_subject(title)), "author": "", "version": None}
    assert request.series.mbox is not None  # noqa: S101 - validated: one of the two
    first = mbox.first_of(request.series.mbox.text)
    subject = " ".join((first.subject if first else "").split()) or "mailbox"
    return {
        "title": cut(subject),
        "series_key": cut(normalised_subject(subject)),
        "author": cut(first.author) if first else "",
        "version": first.version if first else None,
    }
