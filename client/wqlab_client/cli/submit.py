"""`wqlab submit`: a series, or settings alone, against one or more targets."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.text import Text
from typer.core import TyperCommand

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.messages import GitSeries, MboxSeries, Series, Target
from wqlab_contracts.specs import Backend, format_setting, parse_setting

from ..errors import UsageError
from . import watch
from .session import JsonFlag, Session, of

PER_TARGET = ("--target", "--scenario", "--setting", "--param")
_META = "wqlab.targets"


class OrderedTargets(TyperCommand):
    """Keeps the order of --target, --setting and --param, which says what belongs to which target."""

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
class _Draft:
    plan: str
    device_type: str
    scenarios: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    parameters: dict[str, str | int | float] = field(default_factory=dict)


def targets_in_order(options: Sequence[tuple[str, str]]) -> list[Target]:
    """Targets from options in command-line order.

    A --scenario, --setting or --param belongs to the --target before it; those before the first --target belong to
    every target, and a target's own --param wins over them. Raises UsageError for malformed ones and when there is
    no target.
    """
    common = _Draft("", "")
    drafts: list[_Draft] = []
    for name, value in options:
        draft = drafts[-1] if drafts else common
        if name == "--target":
            plan, at, device_type = value.partition("@")
            if not (plan and at and device_type) or "@" in device_type:
                raise UsageError(
                    f"--target {value!r} is not PLAN@DEVICE_TYPE",
                    "write for example --target xfs-fsync@xeon-2s; `wqlab plans` and `wqlab devices` list the names",
                )
            drafts.append(_Draft(plan, device_type))
        elif name == "--scenario":
            draft.scenarios.append(value)
        elif name == "--setting":
            draft.settings.append(_setting(value))
        else:
            knob, equals, given = value.partition("=")
            if not (knob and equals):
                raise UsageError(f"--param {value!r} is not NAME=VALUE", "write for example --param runtime_s=20")
            draft.parameters[knob] = number_or_text(given)
    if not drafts:
        raise UsageError("no --target is given", "say what to measure where: --target xfs-fsync@xeon-2s")
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
        raise _mistake("--target", error) from None


def _setting(value: str) -> str:
    try:
        return format_setting(parse_setting(value))
    except ValueError as error:
        raise UsageError(f"--setting: {error}", "write for example --setting scope=cache,strict=1") from None


def number_or_text(text: str) -> str | int | float:
    """`5` -> 5, `0.5` -> 0.5, anything else as it is (`32k`, `1e3`, `007`)."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and str(int(digits)) == digits:
        return int(text)
    whole, dot, fraction = digits.partition(".")
    if dot and whole.isascii() and whole.isdigit() and fraction.isascii() and fraction.isdigit():
        return float(text)
    return text


def series_of(
    git: str | None, ref: str | None, base: str | None, mbox: str | None, settings_only: bool
) -> Series | None:
    """What to test, from the options. Raises UsageError unless exactly one kind is given completely."""
    given = [
        name for name, is_given in (("--git", git), ("--mbox", mbox), ("--settings-only", settings_only)) if is_given
    ]
    if len(given) != 1:
        raise UsageError(
            f"{' and '.join(given)} exclude each other" if given else "nothing to test is given",
            "pass one of --git URL --ref BRANCH, --mbox FILE (- for standard input), or --settings-only",
        )
    if not git and (ref or base):
        raise UsageError(f"{'--ref' if ref else '--base'} needs --git", "pass --git URL, or leave it out")
    if git:
        if not ref:
            raise UsageError("--git needs --ref", "name the branch or tag that holds the series: --ref my-branch")
        return Series(git=GitSeries(url=git, ref=ref, base=base))
    return Series(mbox=MboxSeries(text=_read_mbox(mbox))) if mbox else None


def _read_mbox(name: str) -> str:
    what = "standard input" if name == "-" else name
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"--mbox: {what} is not UTF-8 (byte {error.start})", "write it with `git format-patch --stdout`"
        ) from None
    except OSError as error:
        raise UsageError(f"--mbox: cannot read {what}: {error.strerror}") from None
    if not text.strip():
        raise UsageError(f"--mbox: {what} is empty", "write it with `git format-patch --stdout BASE..` or `b4 am`")
    return text


def _mistake(what: str, error: ValidationError) -> UsageError:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return UsageError(f"{what}: {where}: {first['msg']} (got {str(first['input'])[:60]!r})")


def _tree(session: Session, named: str | None) -> str:
    if named:
        return named
    if session.config.tree:
        return session.config.tree.value
    views = session.client.trees()
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
    git: Annotated[str | None, typer.Option(metavar="URL", help="Repository that holds the series")] = None,
    ref: Annotated[str | None, typer.Option(metavar="BRANCH", help="Its branch or tag")] = None,
    base: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Baseline; by default the merge base with the tree")
    ] = None,
    mbox: Annotated[str | None, typer.Option(metavar="FILE", help="The series as an mbox; - is standard input")] = None,
    settings_only: Annotated[bool, typer.Option("--settings-only", help="No series: compare settings")] = False,
    tree: Annotated[str | None, typer.Option(metavar="NAME", help="Kernel tree (`wqlab trees`)")] = None,
    target: Annotated[
        list[str] | None, typer.Option(metavar="PLAN@DEVICE_TYPE", help="What to measure where; repeatable")
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Scenario to measure, for the --target before it; repeatable"),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V,...", help="Setting to measure, for the --target before it; repeatable"),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Plan parameter, for the --target before it; repeatable"),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Kernel recipe instead of the devices' own; debug gives findings, no figures"
        ),
    ] = None,
    backend: Annotated[
        Backend | None,
        typer.Option(
            help="Only devices that are reached so; else the pool with the shortest queue", show_default=False
        ),
    ] = None,
    blocks: Annotated[int | None, typer.Option(min=1, max=100, help="Blocks of boots per target")] = None,
    priority: Annotated[int, typer.Option(min=0, max=100, help="Higher goes first")] = 50,
    wait: Annotated[bool, typer.Option("--wait", help="Watch until it is finished, print the report")] = False,
    fail_on: watch.FailOn = None,
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Repeating a submit with this key makes no second submission")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the request as JSON, send nothing")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Submit a series, or a study of settings.

    A --scenario, --setting or --param belongs to the --target before it; given before the first --target, to every
    target:

    wqlab submit --mbox series.mbox --target xfs-fsync@xeon-2s --target dm-crypt-affinity@ryzen-3900x --setting
    scope=cache,strict=1 --setting scope=system,strict=0 --param runtime_s=20 --wait
    """
    session = of(context)
    if fail_on and not wait:
        raise UsageError("--fail-on needs --wait", "without it the command ends before there is a verdict")
    series = series_of(git, ref, base, mbox, settings_only)
    targets = targets_in_order(context.meta[_META])
    try:
        request = SubmissionRequest(
            series=series,
            tree=_tree(session, tree),
            targets=targets,
            blocks=blocks,
            priority=priority,
            recipe=recipe,
            backend=backend,
        )
    except ValidationError as error:
        raise _mistake("the request", error) from None
    if dry_run:
        session.output.document(request)
        return
    view = session.client.submit(request, idempotency_key)
    if wait:
        session.output.note(f"submission {view.id} at {session.client.url}")
        watch.until_finished(session, view.id, list(fail_on or []), session.output.err, report=True, as_json=as_json)
    if as_json:
        session.output.document(view)
        return
    session.output.line(Text(f"submission {view.id}"))
    session.output.note(f"watch it with `wqlab watch {view.id}`, cancel it with `wqlab cancel {view.id}`")


def register(app: typer.Typer) -> None:
    app.command("submit", cls=OrderedTargets)(submit)
