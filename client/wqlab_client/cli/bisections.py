"""`wqlab bisect` and `wqlab bisection`: search the commit that has changed a metric, and follow the search."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from pydantic import ValidationError

from wqlab_contracts.api.bisections import OPEN_STATES, Bisection, BisectionCommit, BisectionData, BisectionRequest
from wqlab_contracts.enums import BisectionState, BisectionStepState, ExitCode

from ..calls.bisections import BisectionCalls
from ..errors import UsageError
from ..formatting import one_line
from .output import Output
from .session import DETACHED_EXIT, Cursor, JsonFlag, Limit, Session, session_of
from .submit import choose_tree, parse_one_target

POLL_S = 5.0
bisection_app = typer.Typer(
    name="bisection", help="Follow searches for a commit (`wqlab bisect`).", rich_markup_mode=None, no_args_is_help=True
)
BisectionId = Annotated[int, typer.Argument(min=1, metavar="ID", help="Number of the bisection", show_default=False)]
_EXIT = {
    BisectionState.FOUND: ExitCode.DONE,
    BisectionState.RANGE: ExitCode.DONE,
    BisectionState.NO_DIFFERENCE: ExitCode.REGRESSION,
    BisectionState.NOT_CONFIRMED: ExitCode.REGRESSION,
    BisectionState.FAILED: ExitCode.SERIES_FAILED,
    BisectionState.CANCELED: ExitCode.SERIES_FAILED,
}


def bisect(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    good: Annotated[str, typer.Option(metavar="COMMIT", help="Branch, tag or commit before the change")],
    bad: Annotated[str, typer.Option(metavar="COMMIT", help="Branch, tag or commit that has it")],
    target: Annotated[str, typer.Option(metavar="PLAN@DEVICE_TYPE", help="Plan and device type that show it")],
    metric: Annotated[str | None, typer.Option(metavar="NAME", help="Metric that has changed")] = None,
    failure: Annotated[
        bool, typer.Option("--failure", help="Search what makes the kernel fail instead: oops, hang, lockdep report")
    ] = False,
    scenario: Annotated[str | None, typer.Option(metavar="NAME", help="Scenario, if the plan has several")] = None,
    setting: Annotated[
        str | None, typer.Option(metavar="K=V,...", help="Setting; by default the plan's reference setting")
    ] = None,
    param: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Plan parameter; repeatable")] = None,
    tree: Annotated[str | None, typer.Option(metavar="NAME", help="Kernel tree (`wqlab trees`)")] = None,
    ref: Annotated[
        str | None,
        typer.Option(
            metavar="BRANCH", help="Branch or tag with both commits; by default --bad, else the tree's branch"
        ),
    ] = None,
    blocks: Annotated[
        int | None, typer.Option(min=1, max=100, help="Blocks of the two ends and of the confirmation")
    ] = None,
    step_blocks: Annotated[
        int | None, typer.Option(min=1, max=20, help="Blocks of each commit between; by default 2, or what it takes")
    ] = None,
    first_parent: Annotated[
        bool, typer.Option("--first-parent", help="Report a merge as the result, without going into its side branch")
    ] = False,
    recipe: Annotated[
        str | None, typer.Option(metavar="NAME", help="Kernel recipe; debug checks locking and memory (--failure)")
    ] = None,
    priority: Annotated[int, typer.Option(min=0, max=100, help="Higher priority runs first")] = 50,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end, then print the result")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the request as JSON without sending it")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Search for the commit that changed a metric or made the kernel fail.

    wqlab bisect --good v6.16 --bad for-next --target xfs-fsync@xeon-2s --metric locks_per_flush --wait

    Good and bad are measured first. Then each commit that tells most is measured against the good one on the same
    device, and the suspect against its parent.
    """
    session = session_of(context)
    if (metric is None) is not failure:
        raise UsageError("name what to search for", "pass either --metric NAME or --failure")
    parsed = parse_one_target(target, setting, param or [])
    try:
        request = BisectionRequest(
            tree=choose_tree(session, tree),
            good=good,
            bad=bad,
            ref=ref,
            plan=parsed.plan,
            device_type=parsed.device_type,
            scenario=scenario,
            setting=parsed.settings[0] if parsed.settings else None,
            parameters=parsed.parameters,
            metric=metric,
            failure=failure,
            blocks=blocks,
            step_blocks=step_blocks,
            into_merges=not first_parent,
            recipe=recipe,
            priority=priority,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"the request: {where}: {first['msg']} (got {str(first['input'])[:60]!r})") from None
    if dry_run:
        session.output.document(request)
        return
    begun = session.calls(BisectionCalls).bisect(request)
    if wait:
        session.output.note(f"bisection {begun.id} at {session.url}")
        _wait(session, begun.id, as_json)
    if as_json:
        session.output.document(begun)
        return
    session.output.line(f"bisection {begun.id}")
    session.output.note(
        f"watch it with `wqlab bisection watch {begun.id}`, cancel it with `wqlab bisection cancel {begun.id}`"
    )


@bisection_app.command("list")
def list_bisections(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    state: Annotated[BisectionState | None, typer.Option(help="Only bisections in this state")] = None,
    active: Annotated[bool, typer.Option("--active", help="Only those that go on")] = False,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this account")] = None,
    watch: Annotated[str | None, typer.Option(metavar="NAME", help="Only of shifts of the tree of this watch")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """List bisections, newest first."""
    session = session_of(context)
    page = session.calls(BisectionCalls).bisections(
        state=state, active=True if active else None, owner=owner, watch=watch, cursor=cursor, limit=limit
    )
    header = ("ID", "STATE", "MEASURED", "SEARCHED", "COMMITS", "NUMBER", "BOOTS", "CULPRIT")
    session.output.page(
        page,
        as_json=as_json,
        show=lambda found: session.output.table(header, [_row(each) for each in found]),
        none="no bisections; `wqlab bisect` begins one",
    )


def _row(each: Bisection) -> list[str]:
    return [
        str(each.id), each.state.value.replace("_", " "), one_line(each.request.target), _subject(each),
        f"{one_line(each.request.good)[:20]}..{one_line(each.request.bad)[:20]}",
        "" if each.commits is None else str(each.commits), str(each.boots), _culprit(each),
    ]  # fmt: skip


@bisection_app.command("show")
def show(context: typer.Context, bisection_id: BisectionId, as_json: JsonFlag = False) -> None:
    """Show a bisection: the culprit, the commits that were measured, and its submissions."""
    session = session_of(context)
    found = session.calls(BisectionCalls).bisection(bisection_id)
    if as_json:
        session.output.document(found)
    else:
        _print(session.output, found)


@bisection_app.command("watch")
def watch(context: typer.Context, bisection_id: BisectionId, as_json: JsonFlag = False) -> None:
    """Wait until a bisection has ended, then show it; Ctrl-C detaches without canceling it."""
    _wait(session_of(context), bisection_id, as_json)


@bisection_app.command("cancel")
def cancel(context: typer.Context, bisection_id: BisectionId, as_json: JsonFlag = False) -> None:
    """Cancel a bisection, and the submission that it waits for (its owner and maintainers)."""
    session = session_of(context)
    found = session.calls(BisectionCalls).cancel_bisection(bisection_id)
    if as_json:
        session.output.document(found)
    elif found.state in OPEN_STATES:
        session.output.line(f"bisection {found.id} is being canceled")
    else:
        session.output.line(f"bisection {found.id} has ended: {found.state.value.replace('_', ' ')}")


def _wait(session: Session, bisection_id: int, as_json: bool) -> None:
    """Print what the bisection does until it has ended; then print it, and exit with its code."""
    told: set[tuple[int, str]] = set()
    reason = ""
    try:
        while True:
            found = session.calls(BisectionCalls).bisection(bisection_id)
            for step in found.steps:
                if (step.id, step.state.value) not in told:
                    told.add((step.id, step.state.value))
                    session.output.note(_step_text(found, step.id))
            if found.reason and found.reason != reason and found.state in OPEN_STATES:
                session.output.note(one_line(found.reason))
            reason = found.reason
            if found.state not in OPEN_STATES:
                break
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        session.output.note(f"detached; bisection {bisection_id} continues. Resume with `wqlab bisection watch`.")
        raise typer.Exit(DETACHED_EXIT) from None
    if as_json:
        session.output.document(found)
    else:
        _print(session.output, found)
    raise typer.Exit(_EXIT[found.state])


# --- output -----------------------------------------------------------------------------------------------------


def _subject(found: Bisection) -> str:
    return found.request.metric or "failure"


def _culprit(found: Bisection) -> str:
    if found.culprit is None:
        return ""
    sure = "" if found.state not in OPEN_STATES else "suspected: "
    start = "" if found.first in {None, found.culprit.commit} else f"{(found.first or '')[:12]}.."
    return f"{sure}{start}{found.culprit.commit[:12]} {one_line(found.culprit.subject)}"


def _effect(unit: str, effect: float | None, ci95: tuple[float, float] | None) -> str:
    if effect is None:
        return ""
    interval = f" [{ci95[0]:+.3g}, {ci95[1]:+.3g}]" if ci95 is not None else ""
    return f"{effect:+.3g} {unit}{interval}"


def _step_text(found: BisectionData, step_id: int) -> str:
    step = next(each for each in found.steps if each.id == step_id)
    what = {
        "ends": "good against bad",
        "probe": f"commit {step.candidate[:12]}",
        "confirm": f"suspect {step.candidate[:12]} against its parent",
        "revert": f"bad against bad with {step.candidate[:12]} reverted",
    }[step.kind.value]
    said = {
        BisectionStepState.RUNNING: "is measured",
        BisectionStepState.MEASURED: _effect(found.effect_unit, step.effect, step.ci95)
        or f"{step.failed} of {step.failed + step.passed} boots fail",
    }.get(step.state, one_line(step.reason))
    return f"submission {step.submission_id}: {what}: {said}"


def _print(output: Output, found: BisectionData) -> None:
    request = found.request
    count = "" if found.commits is None else f", {found.commits} commits along first parents"
    output.line(
        f"bisection {found.id}: {found.state.value.replace('_', ' ')}: {_subject(found)} of {one_line(request.target)} "
        f"{one_line(' '.join(part for part in (request.scenario, request.setting) if part))}".rstrip()
    )
    output.line(f"    {one_line(request.good)}..{one_line(request.bad)} of {one_line(request.tree)}{count}")
    if found.reason:
        output.line(f"    {one_line(found.reason)}")
    if found.effect is not None:
        output.line(f"    good to bad: {_effect(found.effect_unit, found.effect, found.ci95)}")
    if found.failure_rate is not None:
        output.line(f"    {found.failure_rate:.0%} of the bad commit's boots fail: {one_line(found.failure_title)}")
    if found.culprit is not None:
        chance = "" if found.probability is None else f" (probability {found.probability:.3f})"
        output.line(f"    culprit: {_culprit(found)}{chance}")
        output.line(f"             by {one_line(found.culprit.author)}")
    if found.culprit_effect is not None:
        output.line(f"    against its parent: {_effect(found.effect_unit, found.culprit_effect, found.culprit_ci95)}")
    if found.boots:
        output.line(f"    {found.boots} boots of search; a plain bisection takes {found.plain_boots}")
    for level in found.levels:
        if level.merge is not None:
            output.line(f"  in the side branch of merge {level.merge[:12]}:")
        shown = [each for each in level.commits if each.submissions or each.unusable or each.probability >= 0.01]
        for each in shown:
            output.line(f"    {each.commit[:12]} {each.probability:6.1%}  {_measured(found, each)}")
    for step in found.steps:
        output.line(f"    {_step_text(found, step.id)}")


def _measured(found: BisectionData, commit: BisectionCommit) -> str:
    if commit.unusable:
        said = "cannot be measured"
    elif commit.effect is not None:
        said = _effect(found.effect_unit, commit.effect, commit.ci95)
    elif commit.passed + commit.failed:
        said = f"{commit.failed} of {commit.failed + commit.passed} boots fail"
    else:
        said = "not measured"
    return f"{said:32} {one_line(commit.subject)}"


def register(app: typer.Typer) -> None:
    app.command("bisect")(bisect)
    app.add_typer(bisection_app)
