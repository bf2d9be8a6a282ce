"""`wqlab devices`, `plans`, `trees`: what the lab has."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from wqlab_contracts.api.submissions import DeviceTypeView, DeviceView, PlanView
from wqlab_contracts.enums import DeviceHealth, Role
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import Profile, Topology

from ..display import utc_now
from ..errors import UsageError
from ..wording import clean, one_line, rough, word
from .session import JsonFlag, of

devices_app = typer.Typer(
    name="devices",
    help="List the lab's devices; take one out of the pool or put it back.",
    rich_markup_mode=None,
    invoke_without_command=True,
)
DeviceName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the device", show_default=False)]


@devices_app.callback()
def devices(
    context: typer.Context,
    device_type: Annotated[str | None, typer.Option("--type", metavar="NAME", help="Only of this type")] = None,
    health: Annotated[DeviceHealth | None, typer.Option(help="Only in this health")] = None,
    as_json: JsonFlag = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    session = of(context)
    found = [
        device
        for device in session.client.devices()
        if device_type in {None, device.device_type} and health in {None, device.health}
    ]
    if as_json:
        session.output.document(found)
        return
    if not found:
        session.output.note("no device matches" if device_type or health else "the lab has no devices")
        return
    now = utc_now()
    session.output.table(
        ("NAME", "TYPE", "LAB", "HEALTH", "CHECKED", "DOES", "REASON"), [_device_row(device, now) for device in found]
    )


def _device_row(device: DeviceView, now: datetime) -> list[Text | str]:
    checked = f"{rough((now - device.health_checked_at).total_seconds())} ago" if device.health_checked_at else "never"
    doing = f"run {device.lease.run_id}" if device.lease else "away" if device.away else device.elsewhere or "idle"
    reason = device.health_reason or device.away
    return [device.name, device.device_type, device.lab, word(device.health), checked, doing, reason]


@devices_app.command("show")
def show_device(context: typer.Context, name: DeviceName, as_json: JsonFlag = False) -> None:
    """Show one device: health, lease, and the topology that its last boot reported."""
    session = of(context)
    device = session.client.device(name)
    if as_json:
        session.output.document(device)
        return
    now = utc_now()
    lines = [Text(f"{device.name}: {device.device_type} in lab {device.lab}, ").append_text(word(device.health))]
    if device.health_reason:
        lines.append(Text(f"  reason: {one_line(device.health_reason)}"))
    if device.away:
        lines.append(Text(f"  not to be had now: {one_line(device.away)}"))
    if device.health_checked_at:
        lines.append(Text(f"  checked {rough((now - device.health_checked_at).total_seconds())} ago"))
    if device.lease:
        left = rough((device.lease.expires_at - now).total_seconds())
        lines.append(
            Text(
                f"  leased to run {device.lease.run_id} by {one_line(device.lease.holder)}, "
                f"fence {device.lease.fence}, {left} left"
            )
        )
    measured = topology_measured(device.measured_topology) if device.measured_topology else "not measured yet"
    lines.append(Text(f"  topology: {measured}"))
    session.output.lines(lines)


@devices_app.command("types")
def device_types(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List device types: what --target can name after the @."""
    session = of(context)
    types = session.client.device_types()
    if as_json:
        session.output.document(types)
        return
    for problem in sorted({problem for each in types for problem in each.problems}):
        session.output.warn(problem)
    session.output.table(("NAME", "ARCH", "TOPOLOGY", "FREE", "QUEUED", "SUMMARY"), [_type_row(each) for each in types])


def _type_row(each: DeviceTypeView) -> list[Text | str]:
    kind = (" (emulated)" if each.emulated else "") + ("" if each.tested else " (untested)")
    return [
        each.name,
        each.arch,
        topology_declared(each.topology),
        f"{each.free}/{len(each.devices)}",
        str(each.queued_runs),
        each.summary + kind,
    ]


@devices_app.command("quarantine")
def quarantine(
    context: typer.Context,
    name: DeviceName,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="What is wrong with it", show_default=False)],
    as_json: JsonFlag = False,
) -> None:
    """Take a device out of the pool until it is released."""
    session = of(context)
    _changed(context, session.client.quarantine(name, reason), as_json)


@devices_app.command("release")
def release(context: typer.Context, name: DeviceName, as_json: JsonFlag = False) -> None:
    """Put a quarantined device back; a health check comes before its first run."""
    session = of(context)
    _changed(context, session.client.release(name), as_json)


def _changed(context: typer.Context, device: DeviceView, as_json: bool) -> None:
    out = of(context).output
    if as_json:
        out.document(device)
        return
    reason = f" ({one_line(device.health_reason)})" if device.health_reason else ""
    out.line(Text(f"{device.name}: ").append_text(word(device.health)).append(reason))


def topology_declared(topology: Topology) -> str:
    """`24 CPUs: 1 package, 4 L3 domains, 12 cores x 2 threads`."""
    nodes = f", {topology.numa_nodes} NUMA nodes" if topology.numa_nodes > 1 else ""
    threads = f" x {topology.threads_per_core} threads" if topology.threads_per_core > 1 else ""
    return (
        f"{_count(topology.cpus, 'CPU')}: {_count(topology.sockets, 'package')}{nodes}, "
        f"{_count(topology.l3_domains, f'{topology.last_level} domain')}, {_count(topology.cores, 'core')}{threads}"
    )


def topology_measured(topology: MeasuredTopology) -> str:
    return (
        f"{_count(topology.cpus, 'CPU')}: {_count(len(set(topology.package)), 'package')}, "
        f"{_count(len(set(topology.node)), 'NUMA node')}, "
        f"{_count(len(set(topology.l3)), f'{topology.last_level} domain')}, "
        f"{_count(len(set(topology.core)), 'core')}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def plans(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="All about this plan", show_default=False)
    ] = None,
    script: Annotated[
        bool, typer.Option("--script", help="With NAME: print the script that runs on the device")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """List test plans, or show one: scenarios, knobs, settings, parameters, metrics."""
    session = of(context)
    found = session.client.plans()
    if name is None:
        if script:
            raise UsageError("--script needs the NAME of a plan", "write `wqlab plans NAME --script`")
        if as_json:
            session.output.document(found)
            return
        rows = [(view.plan.name, ", ".join(s.name for s in view.plan.scenarios), view.plan.summary) for view in found]
        session.output.table(("NAME", "SCENARIOS", "SUMMARY"), rows)
        return
    chosen = next((view for view in found if view.plan.name == name), None)
    if chosen is None:
        raise UsageError(
            f"the lab has no plan {name!r}", f"it has {', '.join(view.plan.name for view in found) or 'none'}"
        )
    if as_json:
        session.output.document(chosen)
    elif script:
        session.output.text(chosen.script)
    else:
        session.output.lines(described_plan(chosen))


def described_plan(view: PlanView) -> list[Text]:
    """A plan as text."""
    plan = view.plan
    lines = [Text(f"{plan.name}: {one_line(plan.summary)}", style="bold")]
    lines += [Text(f"  scenario {s.name}: {one_line(s.summary)}{_parameters(s.parameters)}") for s in plan.scenarios]
    lines += [Text(f"  knob {axis.name}: {', '.join(axis.values)}") for axis in plan.axes]
    if plan.axes:
        lines.append(Text(f"  reference setting: {plan.reference_setting}"))
    lines += _profile("hardware", plan.hardware) + _profile("emulated devices", plan.emulated)
    for metric in plan.metrics:
        roles = {metric.role_hardware: "hardware", metric.role_emulated: "emulated devices"}
        primary = f", primary on {roles[Role.PRIMARY]}" if Role.PRIMARY in roles else ""
        if metric.role_hardware is metric.role_emulated is Role.PRIMARY:
            primary = ", primary"
        delta = f", delta {metric.delta:g} {'%' if metric.scale == 'ratio' else metric.unit}" if metric.delta else ""
        direction = metric.direction.replace("_", " ")
        lines.append(
            Text(
                f"  metric {metric.name} ({clean(metric.unit)}, {direction}{primary}{delta}): "
                f"{one_line(metric.summary)}"
            )
        )
    return lines


def _profile(device: str, profile: Profile) -> list[Text]:
    r = profile.repetitions
    lines = [
        Text(
            f"  on {device}: {profile.blocks} blocks, {r.warmup} warm-up + {r.untraced} untraced + {r.traced} traced "
            f"repetitions{_parameters(profile.parameters)}"
        )
    ]
    if profile.scenarios:
        lines.append(Text(f"    scenarios: {', '.join(profile.scenarios)}"))
    settings = [setting for setting in profile.settings if setting]
    return lines + ([Text(f"    settings: {'; '.join(settings)}")] if settings else [])


def _parameters(parameters: dict[str, str | int | float]) -> str:
    return (
        f" [{' '.join(f'{name}={one_line(str(value))}' for name, value in parameters.items())}]" if parameters else ""
    )


def trees(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List kernel trees: what --tree can name."""
    session = of(context)
    found = session.client.trees()
    if as_json:
        session.output.document(found)
        return
    rows = []
    for view in found:
        suite = f" of {view.tree.debian_suite}" if view.tree.debian_suite else ""
        origin = view.tree.url or f"Debian package {view.tree.debian_source}{suite}"
        branch = view.tree.branch if view.tree.url else ""
        rows.append((view.tree.name, (view.base_commit or "")[:12], branch, origin, view.tree.summary))
    session.output.table(("NAME", "BASE", "BRANCH", "ORIGIN", "SUMMARY"), rows)


def register(app: typer.Typer) -> None:
    app.add_typer(devices_app)
    app.command("plans")(plans)
    app.command("trees")(trees)
