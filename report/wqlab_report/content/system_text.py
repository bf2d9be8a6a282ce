"""Texts of a device's system and topology, and of what differs between its boots. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from wqlab_comparison.words import count
from wqlab_contracts.api.report import EnvironmentDifference, Report, TargetReport
from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import Topology

from ..parts.environment_facts import LAB_ARGUMENT_PREFIX, MEASURED_PREFIXES

MAX_OPTIONS = 12
"""Most configuration options listed above the figures."""

_SYSTEM_FACTS = {
    "cpu model": "CPU model",
    "machine": "machine",
    "firmware": "firmware",
    "microcode": "microcode",
    "memory": "memory",
    "preemption": "preemption",
    "HZ": "HZ",
    "clock source": "clock",
    "mitigations": "mitigations",
    "frequency driver": "cpufreq",
    "governor": "governor",
    "boost": "boost",
    "idle states": "idle states",
    "throttled": "throttled",
    "memory errors": "ECC errors",
    "smt": "SMT",
    "default affinity scope": "wq scope",
    "workqueue": "workqueue",
    "cache_pods": "cache pods",
    "crypto_driver": "crypto",
    "dm_table": "dm table",
    "emulator": "emulator",
    "disk": "disk",
    "fio": "fio",
    "scale": "scale",
    "endpoints": "endpoints",
    "hardware counters": "counters",
    "user processes": "processes",
    "kasan": "KASAN",
    "prove_locking": "lockdep",
}
"""Facts about the system that a reader needs to judge a figure, with their names in the report; plans record more."""
MAIN_FACTS = ("cpu model", "emulator", "clock source", "governor", "smt", "mitigations", "preemption", "disk")
"""Facts about the system that a database has beside each figure."""
_EVIDENCE = {
    "hardware": "real hardware",
    "emulated": "emulated by QEMU: counts and shares of what the kernel did are evidence, speed is not. Throughput and "
    "latency were left out",
    "instrumented": "instrumented QEMU: instructions and cache line transfers were counted exactly, n counts seeds. "
    "There are no times; throughput and latency were left out",
    "modelled": "modelled in QEMU: n counts seeds. Instructions and cache line transfers were counted exactly; times "
    "follow from stated costs and were left out",
}


@dataclass(frozen=True)
class Platform:
    """A target's device as its kernel reported it."""

    topology: str
    mismatch: str
    """How the topology differs from the declared one; empty if it does not."""


def platform(target: TargetReport) -> Platform:
    """Return the measured topology and how it differs from the declared one; the declared one if nothing booted."""
    measured = target.environment.topology if target.environment else None
    if measured is None:
        return Platform(f"{declared(target.declared_topology)} (declared; no kernel reported a topology)", "")
    text = topology(measured)
    expected = declared(target.declared_topology)
    return Platform(text, "" if _sizes(text) == _sizes(expected) else f"declared as {expected}")


def topology_sizes(target: TargetReport) -> Mapping[str, str | int]:
    """Return the sizes of the measured topology; of the declared one if nothing booted."""
    measured = target.environment.topology if target.environment else None
    if measured is None:
        declared = target.declared_topology
        return {
            "source": "declared",
            "cpus": declared.cpus,
            "packages": declared.sockets,
            "numa_nodes": declared.numa_nodes,
            "last_level_domains": declared.l3_domains,
            "last_level": declared.last_level,
        }
    return {
        "source": "reported by the kernel",
        "cpus": measured.cpus,
        "cores": len(set(measured.core)),
        "packages": len(set(measured.package)),
        "numa_nodes": len(set(measured.node)),
        "last_level_domains": len(set(measured.l3)),
        "last_level": measured.last_level,
    }


def kind(target: TargetReport) -> str:
    """Return the kind of device: `hardware`, `emulated`, `instrumented` or `modelled`."""
    if target.plan.is_modelled:
        return "modelled"
    return "instrumented" if target.plan.is_instrumented else "emulated" if target.emulated else "hardware"


def what_is_evidence(target: TargetReport) -> str:
    """Return what the figures of the target's kind of device are evidence of."""
    return _EVIDENCE[kind(target)]


def topology(measured: MeasuredTopology) -> str:
    """Describe a measured topology: `2 packages, 2 NUMA nodes, 2 L3 domains of 16 CPUs, SMT siblings adjacent`."""
    sizes = _range(list(Counter(measured.l3).values()))
    domains = count(len(set(measured.l3)), f"{measured.last_level} domain")
    packages = _packages_and_nodes(len(set(measured.package)), len(set(measured.node)))
    return f"{packages}, {domains} of {sizes} CPUs{_siblings(measured)}{_capacities(measured)}"


def declared(topology: Topology) -> str:
    """Describe a declared topology: `2 packages, 2 NUMA nodes, 2 L3 domains of 16 CPUs`."""
    sizes = _range([cores * topology.threads_per_core for cores in topology.domain_cores])
    domains = count(topology.l3_domains, f"{topology.last_level} domain")
    return f"{_packages_and_nodes(topology.sockets, topology.numa_nodes)}, {domains} of {sizes} CPUs"


def _packages_and_nodes(packages: int, nodes: int) -> str:
    return f"{count(packages, 'package')}, {count(nodes, 'NUMA node')}"


def _range(sizes: Sequence[int]) -> str:
    least, most = min(sizes, default=0), max(sizes, default=0)
    return f"{least}" if least == most else f"{least} to {most}"


def system(target: TargetReport) -> list[tuple[str, str]]:
    """Return name and value of the facts that decide whether two systems are comparable, most important first.

    Facts that differ between the arms are left out: `differences` has them.
    """
    if target.environment is None:
        return []
    differing = {each.name for each in target.environment.differences}
    facts = {name: value for name, value in target.environment.facts.items() if name not in differing}
    known = {"kernel": _per_arm(target.environment.release)}
    known |= {shown: facts.get(name, "") for name, shown in _SYSTEM_FACTS.items()}
    known["fio"] = known["fio"].removeprefix("fio-")
    known |= {name: value for name, value in sorted(facts.items()) if name.startswith(MEASURED_PREFIXES)}
    return [(name, value) for name, value in known.items() if value]


def differences(target: TargetReport) -> list[EnvironmentDifference]:
    """Return the facts that differ between the arms, with the configuration options last and cut to MAX_OPTIONS."""
    found = target.environment.differences if target.environment else []
    options = [each for each in found if each.name.startswith("CONFIG_")]
    others = [each for each in found if each not in options]
    return [*others, *options[:MAX_OPTIONS]]


def differences_left_out(target: TargetReport) -> str:
    """Return `and 12 more configuration options, listed under Kernels`, or an empty text."""
    left_out = len(target.environment.differences if target.environment else []) - len(differences(target))
    return f"and {count(left_out, 'more configuration option')}, listed under Kernels" if left_out else ""


def per_arm(difference: EnvironmentDifference) -> str:
    return f"baseline {difference.baseline}, candidate {difference.candidate}"


def configuration_note(report: Report) -> str:
    """Return that both kernels have the same options, or that this was not compared; empty if they differ."""
    if report.config_diff:
        return ""
    if report.config_compared:
        return "both kernels have the same options"
    return "configurations not compared: not both are available"


def cmdlines(target: TargetReport) -> dict[str, str]:
    """Return the kernel command lines without the lab's own arguments, by title; arms with equal lines share one."""
    lines = target.environment.cmdline if target.environment else {}
    arms: dict[str, list[str]] = {}
    for arm, line in lines.items():
        arms.setdefault(" ".join(word for word in line.split() if not _is_lab_argument(word)), []).append(arm)
    has_lab_arguments = any(_is_lab_argument(word) for line in lines.values() for word in line.split())
    note = ", without the lab's own wqlab.* arguments" if has_lab_arguments else ""
    suffix = {1: "", 2: " of both kernels"} if len(arms) == 1 else {1: " of the {}"}
    return {f"Kernel command line{suffix[len(names)].format(*names)}{note}": line for line, names in arms.items()}


def _is_lab_argument(argument: str) -> bool:
    return argument.startswith(LAB_ARGUMENT_PREFIX)


def _per_arm(values: dict[Arm, str]) -> str:
    """Return `6.12.117`, or `baseline 6.12.117, candidate 6.12.117-wq` if the arms differ."""
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{arm} {value}" for arm, value in values.items())


def _siblings(measured: MeasuredTopology) -> str:
    per_core = Counter(zip(measured.package, measured.l3, measured.core, strict=True))
    if not per_core or max(per_core.values()) == 1:
        return ", no SMT"
    cores = list(zip(measured.package, measured.l3, measured.core, strict=True))
    if cores[0] == cores[1]:
        return ", SMT siblings adjacent"
    half = len(cores) // 2
    distance = measured.numbers[half] - measured.numbers[0]
    return f", SMT siblings at +{distance}" if cores[0] == cores[half] else ""


def _capacities(measured: MeasuredTopology) -> str:
    """Return `, capacity 4x400 4x1024` for a device whose CPUs differ, else an empty text."""
    if measured.capacity is None or len(set(measured.capacity)) == 1:
        return ""
    runs = [(len(list(run)), capacity) for capacity, run in groupby(measured.capacity)]
    return ", capacity " + " ".join(f"{length}x{capacity}" for length, capacity in runs)


def _sizes(text: str) -> list[str]:
    return text.split(", ")[:3]
