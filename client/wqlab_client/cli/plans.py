"""`wqlab plans` and `trees`: list test plans and kernel trees, create a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from wqlab_contracts.enums import Role
from wqlab_contracts.specs import INSTRUMENTED_METRICS, Profile

from ..calls.lab import LabCalls
from ..errors import UsageError
from ..formatting import clean, one_line
from ..new_plan import create, find_checkout
from .output import Output
from .session import JsonFlag, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.plans import PlanView


class _PlansGroup(TyperGroup):
    """`wqlab plans [NAME]` is `wqlab plans show [NAME]`. No plan has the name of a command (`RESERVED_NAMES`)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not (args and (args[0] in self.commands or args[0] in ctx.help_option_names)):
            args = ["show", *args]
        return super().parse_args(ctx, args)


plans_app = typer.Typer(
    name="plans",
    cls=_PlansGroup,
    help="List test plans, show one (`wqlab plans NAME`), or create one.",
    rich_markup_mode=None,
)


@plans_app.command("show")
def show_plans(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show this plan", show_default=False)] = None,
    script: Annotated[
        bool, typer.Option("--script", help="With NAME: print the script that runs on the device")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """List test plans, or show one with its scenarios, knobs, settings, parameters and metrics."""
    session = session_of(context)
    views = session.calls(LabCalls).plans(files=name is not None)
    if name is None:
        if script:
            raise UsageError("--script needs the NAME of a plan", "write `wqlab plans NAME --script`")
        if as_json:
            session.output.document(views)
            return
        rows = [(view.plan.name, ", ".join(s.name for s in view.plan.scenarios), view.plan.summary) for view in views]
        session.output.table(("NAME", "SCENARIOS", "SUMMARY"), rows)
        return
    chosen = next((view for view in views if view.plan.name == name), None)
    if chosen is None:
        raise UsageError(
            f"the lab has no plan {name!r}", f"its plans: {', '.join(view.plan.name for view in views) or 'none'}"
        )
    if as_json:
        session.output.document(chosen)
    elif script:
        session.output.text(chosen.script)
    else:
        session.output.lines(format_plan(chosen))


def format_plan(view: PlanView) -> list[Text]:
    """Format a plan as lines of text."""
    plan = view.plan
    lines = [Text(f"{plan.name}: {one_line(plan.summary)}", style="bold")]
    lines += [Text(f"  scenario {s.name}: {one_line(s.summary)}{_parameters(s.parameters)}") for s in plan.scenarios]
    lines += [Text(f"  knob {axis.name}: {', '.join(axis.values)}") for axis in plan.axes]
    if plan.fragments:
        lines.append(Text(f"  added to the kernels' configuration: {', '.join(plan.fragments)}"))
    if plan.axes:
        lines.append(Text(f"  reference setting: {plan.reference_setting}"))
    lines += _profile_lines("hardware", plan.hardware) + _profile_lines("emulated devices", plan.emulated)
    if not plan.checks_health:
        lines += _profile_lines("instrumented devices", plan.instrumented_profile)
    if plan.modelled is not None:
        lines += _profile_lines("modelled devices", plan.modelled)
    for metric in plan.metrics:
        roles = {metric.role_hardware: "hardware", metric.role_emulated: "emulated devices"}
        primary = f", primary on {roles[Role.PRIMARY]}" if Role.PRIMARY in roles else ""
        if metric.role_hardware is metric.role_emulated is Role.PRIMARY:
            primary = ", primary"
        unit = "%" if metric.scale == "ratio" else metric.unit
        delta = f", delta {metric.delta:g} {unit}" if metric.delta else ""
        if metric.emulator_delta:
            delta += f" (emulated {metric.least_effect(emulated=True):g})"
        direction = metric.direction.replace("_", " ")
        lines.append(
            Text(
                f"  metric {metric.name} ({clean(metric.unit)}, {direction}{primary}{delta}): "
                f"{one_line(metric.summary)}"
            )
        )
    if not plan.checks_health:
        names = ", ".join(
            f"{metric.name}{' (primary)' if metric.role_emulated is Role.PRIMARY else ''}"
            for metric in INSTRUMENTED_METRICS
        )
        lines.append(Text(f"  on instrumented devices, instead of these metrics: {names}"))
    return lines


def _profile_lines(device: str, profile: Profile) -> list[Text]:
    r = profile.repetitions
    warmups = f"{r.warmup} to {r.warmup_most}" if r.warmup_most else f"{r.warmup}"
    lines = [
        Text(
            f"  on {device}: {profile.blocks} blocks, {warmups} warm-up + {r.untraced} untraced + {r.traced} traced "
            f"repetitions{_parameters(profile.parameters)}"
        )
    ]
    for cpus, parameters in sorted(profile.from_cpus.items()):
        lines.append(Text(f"    from {cpus} CPUs:{_parameters(parameters)}"))
    if profile.scenarios:
        lines.append(Text(f"    scenarios: {', '.join(profile.scenarios)}"))
    settings = [setting for setting in profile.settings if setting]
    return lines + ([Text(f"    settings: {'; '.join(settings)}")] if settings else [])


def _parameters(parameters: dict[str, str | int | float]) -> str:
    return (
        f" [{' '.join(f'{name}={one_line(str(value))}' for name, value in parameters.items())}]" if parameters else ""
    )


@plans_app.command("new")
def new_plan(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the plan, as futex-wake", show_default=False)],
    checkout: Annotated[
        Path, typer.Option(help="Checkout of wqlab; default: the one that this folder is in", show_default=False)
    ] = Path(),
) -> None:
    """Create a plan with a parser and a test in a checkout of wqlab. It runs as it is: replace its workload."""
    output = Output()
    root = find_checkout(checkout)
    for path in create(root, name):
        output.line(f"new  {path}")
    output.note(f"Try it in {root}, then replace the workload (docs/plans/writing.md):")
    for command in (
        f"make test-one T='worker/tests/plans worker/tests/measure/parsers/test_{name.replace('-', '_')}.py'",
        "make restart",
        f"wqlab submit --mbox tests/series/noop.mbox --target {name}@tiny --blocks 1 --wait",
    ):
        output.note(f"    {command}")


def trees(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the kernel trees, which --tree names."""
    session = session_of(context)
    views = session.calls(LabCalls).trees()
    if as_json:
        session.output.document(views)
        return
    rows = []
    for view in views:
        suite = f" of {view.tree.debian_suite}" if view.tree.debian_suite else ""
        origin = view.tree.url or f"Debian package {view.tree.debian_source}{suite}"
        branch = view.tree.branch if view.tree.url else ""
        rows.append((view.tree.name, (view.base_commit or "")[:12], branch, origin, view.tree.summary))
    session.output.table(("NAME", "BASE", "BRANCH", "ORIGIN", "SUMMARY"), rows)


def register(app: typer.Typer) -> None:
    app.add_typer(plans_app)
    app.command("trees")(trees)
