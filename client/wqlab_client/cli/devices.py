"""`wqlab devices`: list devices and device types, quarantine and release devices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import DeviceHealth

from ..calls.lab import LabCalls
from ..display import utc_now
from ..formatting import one_line, rough_duration, word
from .session import JsonFlag, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.canaries import CanaryMetric, CanaryRecord
    from wqlab_contracts.api.devices import DeviceTypeView, DeviceView
    from wqlab_contracts.messages import MeasuredTopology
    from wqlab_contracts.specs import Topology

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
    device_type: Annotated[
        str | None, typer.Option("--type", metavar="NAME", help="List only devices of this type")
    ] = None,
    health: Annotated[DeviceHealth | None, typer.Option(help="List only devices with this health")] = None,
    as_json: JsonFlag = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    session = session_of(context)
    matching = [
        device
        for device in session.calls(LabCalls).devices()
        if device_type in {None, device.device_type} and health in {None, device.health}
    ]
    if as_json:
        session.output.document(matching)
        return
    if not matching:
        session.output.note("no device matches" if device_type or health else "the lab has no devices")
        return
    now = utc_now()
    session.output.table(
        ("NAME", "TYPE", "LAB", "HEALTH", "CHECKED", "ACTIVITY", "REASON"),
        [_device_row(device, now) for device in matching],
    )


def _device_row(device: DeviceView, now: datetime) -> list[Text | str]:
    checked = (
        f"{rough_duration((now - device.health_checked_at).total_seconds())} ago"
        if device.health_checked_at
        else "never"
    )
    activity = (
        f"run {device.lease.run_id}" if device.lease else "unavailable" if device.away else device.elsewhere or "idle"
    )
    reason = device.health_reason or device.away
    return [device.name, device.device_type, device.lab, word(device.health), checked, activity, reason]


@devices_app.command("show")
def show_device(context: typer.Context, name: DeviceName, as_json: JsonFlag = False) -> None:
    """Show one device: health, lease, and the topology measured in its last boot."""
    session = session_of(context)
    device = session.calls(LabCalls).device(name)
    if as_json:
        session.output.document(device)
        return
    now = utc_now()
    lines = [Text(f"{device.name}: {device.device_type} in lab {device.lab}, ").append_text(word(device.health))]
    if device.health_reason:
        lines.append(Text(f"  reason: {one_line(device.health_reason)}"))
    if device.away:
        lines.append(Text(f"  unavailable: {one_line(device.away)}"))
    if device.health_checked_at:
        lines.append(Text(f"  checked {rough_duration((now - device.health_checked_at).total_seconds())} ago"))
    if device.lease:
        left = rough_duration((device.lease.expires_at - now).total_seconds())
        lines.append(
            Text(
                f"  leased to run {device.lease.run_id} by {one_line(device.lease.holder)}, "
                f"fence {device.lease.fence}, {left} left"
            )
        )
    measured = format_measured_topology(device.measured_topology) if device.measured_topology else "not measured yet"
    lines.append(Text(f"  topology: {measured}"))
    session.output.lines(lines)


@devices_app.command("canaries")
def canaries(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only this device", show_default=False)] = None,
    plan: Annotated[str | None, typer.Option("--plan", metavar="NAME", help="Only this plan")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what A/A comparisons say of devices: noise floor, false positive rate, and the smallest effects found."""
    from wqlab_comparison.canaries import BLOCKS  # numpy and scipy take a second to import, which other commands avoid

    session = session_of(context)
    records = session.calls(LabCalls).canaries(name, plan)
    if as_json:
        session.output.document(records)
        return
    if not records:
        session.output.note("no A/A comparison has finished yet; they run on idle devices if the lab allows it")
        return
    session.output.lines([Text(f"{one_line(record.line)}.") for record in records])
    session.output.table(
        ("DEVICE", "PLAN", "ARMS", "METRIC", "FLOOR", *(f"{blocks} BLOCKS" for blocks in BLOCKS), "CALLED DIFFERENT"),
        [_canary_row(record, metric, BLOCKS) for record in records for metric in record.metrics],
    )


def _canary_row(record: CanaryRecord, metric: CanaryMetric, sizes_shown: Sequence[int]) -> list[Text | str]:
    from wqlab_comparison.canary_words import floor_text

    sizes = {each.blocks: each.effect for each in metric.effects}
    effects = [
        "any" if metric.floor is None else "none" if (size := sizes.get(blocks)) is None else f"{size:.3g}"
        for blocks in sizes_shown
    ]
    rate = metric.false_positives
    called = f"{rate.called_different} of {rate.comparisons}" if rate.comparisons else "no noise"
    return [
        *(record.device, record.plan, record.kind.replace("_", " "), metric.metric, floor_text(metric)),
        *effects,
        called,
    ]


@devices_app.command("types")
def device_types(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the device types, which --target names after the @."""
    session = session_of(context)
    types = session.calls(LabCalls).device_types()
    if as_json:
        session.output.document(types)
        return
    for problem in sorted({problem for device_type in types for problem in device_type.problems}):
        session.output.warn(problem)
    rows = [_type_row(device_type) for device_type in types]
    session.output.table(("NAME", "ARCH", "TOPOLOGY", "FREE", "QUEUED", "SUMMARY"), rows)


def _tested(device_type: DeviceTypeView) -> str:
    """Return what is known of the lab on such machines, after a space; empty if it has run on one."""
    if device_type.tested:
        return ""
    if device_type.rehearsed is None:
        return " (untested)"
    return f" (rehearsed {device_type.rehearsed.on}, never run on such a machine)"


def _type_row(device_type: DeviceTypeView) -> list[Text | str]:
    kind = (" (emulated)" if device_type.emulated else "") + _tested(device_type)
    return [
        device_type.name,
        device_type.arch,
        format_declared_topology(device_type.topology),
        f"{device_type.free}/{len(device_type.devices)}",
        str(device_type.queued_runs),
        device_type.summary + kind,
    ]


@devices_app.command("quarantine")
def quarantine(
    context: typer.Context,
    name: DeviceName,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason for the quarantine", show_default=False)],
    as_json: JsonFlag = False,
) -> None:
    """Take a device out of the pool until it is released."""
    session = session_of(context)
    _print_health(context, session.calls(LabCalls).quarantine(name, reason), as_json)


@devices_app.command("release")
def release(context: typer.Context, name: DeviceName, as_json: JsonFlag = False) -> None:
    """Put a quarantined device back into the pool; a health check precedes its first run."""
    session = session_of(context)
    _print_health(context, session.calls(LabCalls).release(name), as_json)


def _print_health(context: typer.Context, device: DeviceView, as_json: bool) -> None:
    out = session_of(context).output
    if as_json:
        out.document(device)
        return
    reason = f" ({one_line(device.health_reason)})" if device.health_reason else ""
    out.line(Text(f"{device.name}: ").append_text(word(device.health)).append(reason))


def format_declared_topology(topology: Topology) -> str:
    """Format a device type's topology: `24 CPUs: 1 package, 4 L3 domains, 12 cores x 2 threads`."""
    nodes = f", {topology.numa_nodes} NUMA nodes" if topology.numa_nodes > 1 else ""
    threads = f" x {topology.threads_per_core} threads" if topology.threads_per_core > 1 else ""
    return (
        f"{_count(topology.cpus, 'CPU')}: {_count(topology.sockets, 'package')}{nodes}, "
        f"{_count(topology.l3_domains, f'{topology.last_level} domain')}, {_count(topology.cores, 'core')}{threads}"
    )


def format_measured_topology(topology: MeasuredTopology) -> str:
    """Format a device's measured topology: `24 CPUs: 1 package, 1 NUMA node, 4 L3 domains, 12 cores`."""
    return (
        f"{_count(topology.cpus, 'CPU')}: {_count(len(set(topology.package)), 'package')}, "
        f"{_count(len(set(topology.node)), 'NUMA node')}, "
        f"{_count(len(set(topology.l3)), f'{topology.last_level} domain')}, "
        f"{_count(len(set(topology.core)), 'core')}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def register(app: typer.Typer) -> None:
    app.add_typer(devices_app)
