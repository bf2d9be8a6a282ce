"""`wqlab submit`: submit a series or a settings study for one or more targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.text import Text
from typer.core import TyperCommand

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.layouts import MOST_LAYOUTS
from wqlab_contracts.messages import Target
from wqlab_contracts.messages.threads import REVISION_LIMIT
from wqlab_contracts.specs import Backend, format_setting, parse_setting

from ..calls.lab import LabCalls
from ..calls.submissions import SubmissionCalls
from ..errors import UsageError
from . import watch
from .looks_option import parse_looks
from .series_options import SeriesOptions, parse_series, usage_error
from .session import JsonFlag, Session, session_of
from .sweep_option import parse_sweep
from .touches import add_proposals

PER_TARGET = ("--target", "--scenario", "--setting", "--param")
_META = "wqlab.targets"


class OrderedTargets(TyperCommand):
    """Command that keeps the order of --target, --scenario, --setting and --param, which assigns them to targets."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        ctx.meta[_META] = list(self._occurrences(args))
        return super().parse_args(ctx, args)

    def _occurrences(self, args: Sequence[str]) -> Iterator[tuple[str, str]]:
        takes_value = {
            name: not getattr(param, "is_flag", False) for param in self.params for name in (param.opts or [])
        }
        rest = iter(args)
        for argument in rest:
            if argument == "--":
                return
            name, equals, value = argument.partition("=")
            if takes_value.get(name) and not equals:
                value = next(rest, "")
            if name in PER_TARGET:
                yield name, value


@dataclass
class _TargetDraft:
    plan: str
    device_type: str
    scenarios: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    parameters: dict[str, str | int | float] = field(default_factory=dict)


def parse_targets(options: Sequence[tuple[str, str]], *, sweep: bool = False, proposed: bool = False) -> list[Target]:
    """Parse targets from (option, value) pairs in command-line order; with a sweep, a target needs no device type.

    A --scenario, --setting or --param belongs to the --target before it; those before the first --target belong to
    every target, and a target's own --param overrides them. Raises UsageError for a malformed value and if there is
    no target, unless the lab proposes some.
    """
    common = _TargetDraft("", "")
    drafts: list[_TargetDraft] = []
    for name, value in options:
        draft = drafts[-1] if drafts else common
        if name == "--target":
            plan, at, device_type = value.partition("@")
            complete = plan and at and device_type and "@" not in device_type
            if not complete and not (sweep and plan and not at):
                raise UsageError(
                    f"--target {value!r} is not PLAN@DEVICE_TYPE",
                    "write for example --target xfs-fsync@xeon-2s, or --target xfs-fsync with --sweep; "
                    "`wqlab plans` and `wqlab devices` list the names",
                )
            drafts.append(_TargetDraft(plan, device_type))
        elif name == "--scenario":
            draft.scenarios.append(value)
        elif name == "--setting":
            draft.settings.append(_parse_setting(value))
        else:
            knob, equals, given = value.partition("=")
            if not (knob and equals):
                raise UsageError(f"--param {value!r} is not NAME=VALUE", "write for example --param runtime_s=20")
            draft.parameters[knob] = parse_parameter(given)
    if not drafts and proposed:
        if options:
            raise UsageError(
                f"{options[0][0]} does not change proposed targets", "pass it after a --target, or run `wqlab touches`"
            )
        return []
    if not drafts:
        raise UsageError(
            "no --target is given",
            "name a plan and a device type: --target xfs-fsync@xeon-2s, or let the lab propose some: --what-it-touches",
        )
    try:
        return [
            Target(
                plan=draft.plan,
                device_type=draft.device_type,
                scenarios=list(dict.fromkeys(common.scenarios + draft.scenarios)) or None,
                settings=list(dict.fromkeys(common.settings + draft.settings)) or None,
                parameters=common.parameters | draft.parameters,
            )
            for draft in drafts
        ]
    except ValidationError as error:
        raise usage_error("--target", error) from None


def parse_one_target(target: str, setting: str | None, parameters: Sequence[str]) -> Target:
    """Parse the options of a command with one target. Raises UsageError as `parse_targets` does."""
    options = [("--target", target), *(("--param", each) for each in parameters)]
    if setting:
        options.append(("--setting", setting))
    return parse_targets(options)[0]


def _parse_setting(value: str) -> str:
    try:
        return format_setting(parse_setting(value))
    except ValueError as error:
        raise UsageError(f"--setting: {error}", "write for example --setting scope=cache,strict=1") from None


def parse_parameter(text: str) -> str | int | float:
    """Convert `5` to 5 and `0.5` to 0.5; anything else stays text (`32k`, `1e3`, `007`)."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and str(int(digits)) == digits:
        return int(text)
    whole, dot, fraction = digits.partition(".")
    if dot and whole.isascii() and whole.isdigit() and fraction.isascii() and fraction.isdigit():
        return float(text)
    return text


def choose_tree(session: Session, option: str | None) -> str:
    """Return the tree of the option, the configuration, or the lab's default or only tree."""
    if option:
        return option
    if session.config.tree:
        return session.config.tree.value
    views = session.calls(LabCalls).trees()
    trees = [view.tree.name for view in views]
    chosen = [view.tree.name for view in views if view.default] or trees
    if len(chosen) == 1:
        return chosen[0]
    raise UsageError(
        "no --tree is given, and the lab has " + (f"several: {', '.join(trees)}" if trees else "none"),
        "pass --tree NAME, or set tree in the configuration file",
    )


def submit(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    git: Annotated[str | None, typer.Option(metavar="URL", help="Repository of the series")] = None,
    ref: Annotated[str | None, typer.Option(metavar="BRANCH", help="Branch or tag of the series")] = None,
    base: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Base commit; by default the merge base with the tree")
    ] = None,
    mbox: Annotated[str | None, typer.Option(metavar="FILE", help="The series as an mbox; - is standard input")] = None,
    message_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Message-ID of any mail of the series, or the mail's URL in an archive; its latest revision is taken",
        ),
    ] = None,
    revision: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=REVISION_LIMIT, help="Revision to take instead: 2 for [PATCH v2]"),
    ] = None,
    settings_only: Annotated[bool, typer.Option("--settings-only", help="Compare settings without a series")] = False,
    tree: Annotated[str | None, typer.Option(metavar="NAME", help="Kernel tree (`wqlab trees`)")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLAN@DEVICE_TYPE",
            help="Plan to run and device type to run it on (PLAN alone with --sweep); repeatable",
        ),
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Scenario to run, for the --target before it; repeatable"),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V,...", help="Setting to measure, for the --target before it; repeatable"),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Plan parameter, for the --target before it; repeatable"),
    ] = None,
    what_it_touches: Annotated[
        bool,
        typer.Option(
            "--what-it-touches",
            help="Show the targets that the lab proposes for what the series changes, and submit them (see `touches`)",
        ),
    ] = False,
    walk: Annotated[
        bool,
        typer.Option("--walk", help="Measure each patch against the one before: a ladder with a rung for each patch"),
    ] = False,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="DIMENSION=N,N,...",
            help="Run every --target PLAN on a family of instrumented topologies, in which l3 (domains), nodes or cpus "
            "varies: l3=1,2,4,8",
        ),
    ] = None,
    sweep_base: Annotated[
        str | None,
        typer.Option(
            metavar="DIMENSION=N,...",
            help="Dimensions that stay in a sweep; by default cpus=16,l3=4,nodes=1 without the one that varies",
        ),
    ] = None,
    sweep_costs: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE",
            help="Sweep over modelled devices with these costs instead of instrumented ones: ryzen-3900x",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Kernel recipe instead of the device types' own; debug reports findings but no figures",
        ),
    ] = None,
    backend: Annotated[
        Backend | None,
        typer.Option(
            help="Only devices of this backend; by default the pool with the shortest queue", show_default=False
        ),
    ] = None,
    blocks: Annotated[int | None, typer.Option(min=1, max=100, help="Blocks of boots per target, exactly")] = None,
    repetitions: Annotated[int | None, typer.Option(min=1, max=100, help="Untraced repetitions in each boot")] = None,
    looks: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Numbers of blocks after which a target may stop early, such as 6,10,16; the last is the most",
        ),
    ] = None,
    layouts: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_LAYOUTS,
            help="Link both kernels in so many layouts and boot another one in each block, which averages alignment; "
            "by default as many as blocks on instrumented devices, and 1 on others",
        ),
    ] = None,
    priority: Annotated[int, typer.Option(min=0, max=100, help="Higher priority runs first")] = 50,
    force: Annotated[bool, typer.Option("--force", help="Measure even if the two kernels are byte-identical")] = False,
    no_trace: Annotated[
        bool,
        typer.Option("--no-trace", help="No traced boots if a primary metric differs; the report then says only that"),
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Watch until the submission is finished, then print the report")
    ] = False,
    fail_on: watch.FailOn = None,
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Repeating a submit with this key creates no second submission")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the request as JSON without sending it")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Submit a series or a settings study.

    A --scenario, --setting or --param belongs to the --target before it; before the first --target, to every target:

    wqlab submit --mbox series.mbox --target xfs-fsync@xeon-2s --target dm-crypt-affinity@ryzen-3900x --setting
    scope=cache,strict=1 --setting scope=system,strict=0 --param runtime_s=20 --wait

    A series that was mailed needs no file: wqlab submit --message-id https://lore.kernel.org/r/ID --target
    xfs-fsync@xeon-2s

    The lab can propose targets for what a series changes: wqlab submit --mbox series.mbox --what-it-touches

    A walk says which patch of a series changes something: wqlab submit --mbox series.mbox --target xfs-fsync@xeon-2s
    --walk

    A sweep measures over the topology of instrumented devices: wqlab submit --mbox series.mbox --target xfs-fsync
    --sweep l3=1,2,4,8 --sweep-base cpus=16,nodes=1
    """
    session = session_of(context)
    if fail_on and not wait:
        raise UsageError("--fail-on needs --wait", "without --wait the command ends before there is a verdict")
    series = parse_series(SeriesOptions(git, ref, base, mbox, message_id, revision, settings_only))
    swept = parse_sweep(sweep, sweep_base, sweep_costs)
    if what_it_touches and swept is not None:
        raise UsageError("--what-it-touches and --sweep exclude each other", "a sweep needs --target PLAN")
    targets = parse_targets(context.meta[_META], sweep=swept is not None, proposed=what_it_touches)
    chosen_tree = choose_tree(session, tree)
    if what_it_touches:
        targets = add_proposals(session, series, chosen_tree, targets)
    try:
        request = SubmissionRequest(
            series=series,
            tree=chosen_tree,
            targets=targets,
            blocks=blocks,
            repetitions=repetitions,
            looks=parse_looks(looks),
            layouts=layouts,
            priority=priority,
            recipe=recipe,
            backend=backend,
            force=force,
            walk=walk,
            trace=not no_trace,
            sweep=swept,
        )
    except ValidationError as error:
        raise usage_error("the request", error) from None
    if dry_run:
        session.output.document(request)
        return
    view = session.calls(SubmissionCalls).submit(request, idempotency_key)
    if wait:
        session.output.note(f"submission {view.id} at {session.url}")
        watch.until_finished(session, view.id, list(fail_on or []), session.output.err, report=True, as_json=as_json)
    if as_json:
        session.output.document(view)
        return
    session.output.line(Text(f"submission {view.id}"))
    session.output.note(f"watch it with `wqlab watch {view.id}`, cancel it with `wqlab cancel {view.id}`")


def register(app: typer.Typer) -> None:
    app.command("submit", cls=OrderedTargets)(submit)
