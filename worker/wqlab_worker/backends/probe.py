"""Probe a booted kernel with one command on the device, and parse its output. Pure functions."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise

from wqlab_contracts import cpu_layout
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import LastLevel, Topology

from ..build.build_id import build_id_in_notes
from ..measure.device_text import decode_output
from . import machine_facts, temperature
from .condition_commands import NOT_AVAILABLE
from .cpu_model import CPUINFO_PATTERN, cpu_models

_CPU = "/sys/devices/system/cpu"
_SCHEDULER = "/sys/kernel/debug/sched/"
_IDENTITY = ("/proc/cmdline", "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/osrelease")
"""Files that every kernel has."""
_REPORTED_ELSEWHERE = (f"{_SCHEDULER}preempt", "/sys/module/workqueue/parameters/default_affinity_scope")
"""Tunables with a fact of another name."""
_SYSCTLS = (
    "/proc/sys/kernel/sched_*",
    "/proc/sys/kernel/numa_balancing*",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/watchdog*",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/hung_task_timeout_secs",
    "/proc/sys/vm/dirty_*",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/vfs_cache_pressure",
    "/proc/sys/vm/watermark_scale_factor",
    "/proc/sys/vm/zone_reclaim_mode",
    "/proc/sys/net/core/[rw]mem_default",
    "/proc/sys/net/core/rps_default_mask",
)
"""Tunables of the scheduler, of memory write-back and of the network: a series may change their defaults."""
_SCHEDULER_FILES = (
    f"{_SCHEDULER}features",
    f"{_SCHEDULER}*_ns",
    f"{_SCHEDULER}nr_migrate",
    f"{_SCHEDULER}tunable_scaling",
)
_FILES = (
    *_IDENTITY,
    "/proc/version",
    f"{_CPU}/online",
    f"{_CPU}/cpu[0-9]*/topology/core_cpus_list",
    f"{_CPU}/cpu[0-9]*/topology/thread_siblings_list",
    f"{_CPU}/cpu[0-9]*/topology/cluster_cpus_list",
    f"{_CPU}/cpu[0-9]*/topology/physical_package_id",
    f"{_CPU}/cpu[0-9]*/cache/index[23]/shared_cpu_list",
    f"{_CPU}/cpu[0-9]*/cpu_capacity",
    "/sys/devices/system/node/node[0-9]*/cpulist",
    f"{_CPU}/vulnerabilities/*",
    f"{_CPU}/cpu0/cpufreq/scaling_governor",
    f"{_CPU}/cpufreq/boost",
    f"{_CPU}/intel_pstate/no_turbo",
    *temperature.FILES,
    f"{_CPU}/smt/control",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/kernel/debug/sched/preempt",
    "/sys/module/workqueue/parameters/*",
    "/sys/devices/virtual/workqueue/cpumask*",
    *_SCHEDULER_FILES,
    *_SYSCTLS,
    *machine_facts.FILES,
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
_CONFIG = (
    r"^CONFIG_(HZ|PREEMPT_NONE|PREEMPT_VOLUNTARY|PREEMPT|PREEMPT_LAZY|PREEMPT_RT|PREEMPT_DYNAMIC|KASAN|PROVE_LOCKING)="
)
_CLUSTER = "topology/cluster_cpus_list"
_LAST_LEVEL: dict[str, LastLevel] = {
    "cache/index3/shared_cpu_list": "L3",
    "cache/index2/shared_cpu_list": "L2",
    _CLUSTER: "cluster",
}
_CPU_RANGE = LinearPattern(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_CAPACITY = LinearPattern(r"[0-9]{1,4}")
_DYNAMIC = LinearPattern(r"\((\w+)\)")
_CHOSEN = LinearPattern(r"\[(\w+)\]")
_NOTES_MARK = b"\n==notes==\n"

# Few processes: hundreds of `cat`s would take seconds on an emulated device.
COMMAND = (
    f"grep -Hs '' {' '.join(_FILES)}; zcat /proc/config.gz 2>/dev/null | grep -E {shlex.quote(_CONFIG)}; "
    f"grep -E '{CPUINFO_PATTERN}|{machine_facts.MICROCODE_PATTERN}' /proc/cpuinfo; {machine_facts.COMMAND}; "
    "printf '\\n==notes==\\n'; cat /sys/kernel/notes"
)

ANSWER_LIMIT = 8 << 20
"""Longest output in bytes; a device with 512 CPUs prints some hundred thousand."""
CPU_LIMIT = 8192
"""Most CPUs that Linux can be built for (CONFIG_NR_CPUS)."""


class ProbeError(ValueError):
    """The device's output lacks something that every kernel of the lab reports."""


@dataclass(frozen=True)
class Probe:
    """Identity, topology and environment of a booted kernel."""

    boot_id: str
    release: str
    cmdline: str
    build_id_gnu: str
    topology: MeasuredTopology
    environment: dict[str, str]


def parse(answer: bytes) -> Probe:
    """Parse the output of COMMAND. Raises ProbeError, naming what is missing."""
    if len(answer) > ANSWER_LIMIT:
        raise ProbeError(f"the answer is {len(answer)} bytes long, more than {ANSWER_LIMIT}")
    text, mark, notes = answer.partition(_NOTES_MARK)
    if not mark:
        raise ProbeError("the answer was cut off before the kernel's notes")
    files: dict[str, str] = {}
    config: dict[str, str] = {}
    cpuinfo: list[str] = []
    lines, _, table = decode_output(text).partition(f"\n{machine_facts.TABLE_MARK}\n")
    lines, _, schemata = lines.partition(f"\n{machine_facts.RESCTRL_MARK}\n")
    for line in lines.split("\n"):
        if line.startswith("/"):
            name, _, value = line.partition(":")
            files.setdefault(name, value.strip())
        elif line.startswith("CONFIG_"):
            name, _, value = line.partition("=")
            config[name.removeprefix("CONFIG_")] = value
        elif ":" in line:
            cpuinfo.append(line)
    for name in _IDENTITY:
        if not files.get(name):
            raise ProbeError(f"{name} is empty or missing")
    return Probe(
        boot_id=files["/proc/sys/kernel/random/boot_id"],
        release=files["/proc/sys/kernel/osrelease"],
        cmdline=files["/proc/cmdline"],
        build_id_gnu=gnu_build_id(notes),
        topology=topology(files),
        environment={
            **_environment(files, config, cpu_models(cpuinfo)),
            **machine_facts.facts(files, cpuinfo, schemata.split("\n"), table),
        },
    )


def gnu_build_id(notes: bytes) -> str:
    """Return the GNU build id in the kernel's notes. Raises ProbeError if there is none."""
    if found := build_id_in_notes(notes):
        return found
    raise ProbeError("/sys/kernel/notes has no GNU build-id: the kernel was linked without --build-id")


def cpu_list(text: str) -> list[int]:
    """Parse a list of CPUs: `0-2,8` gives [0, 1, 2, 8].

    Raises ProbeError unless the numbers ascend and are below CPU_LIMIT.
    """
    cpus: list[int] = []
    for part in text.split(","):
        if not (part := part.strip()):
            continue
        if not (match := _CPU_RANGE.fullmatch(part)):
            raise ProbeError(f"not a list of CPUs: {part[:80]!r} in {text[:80]!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not (cpus[-1] if cpus else -1) < first <= last < CPU_LIMIT:
            raise ProbeError(f"not an ascending list of CPUs below {CPU_LIMIT}: {part!r} in {text[:80]!r}")
        cpus.extend(range(first, last + 1))
    return cpus


def topology(files: Mapping[str, str]) -> MeasuredTopology:
    """Return the topology from sysfs files (path -> content). Raises ProbeError if no CPU is listed as online.

    Without an L3 cache the last level is L2, else the cluster, else the package, as in the kernel's `cache` scope.
    Clusters are reported where they are neither cores nor L3 domains.
    """
    cpus = cpu_list(files.get(f"{_CPU}/online", ""))
    if not cpus:
        raise ProbeError(f"{_CPU}/online is empty or missing")

    def first_of(cpu: int, *names: str) -> str:
        return next((files[path] for name in names if files.get(path := f"{_CPU}/cpu{cpu}/{name}")), "")

    package = {cpu: first_of(cpu, "topology/physical_package_id") or "0" for cpu in cpus}
    node = {
        cpu: name
        for path, value in files.items()
        if (name := path.removeprefix("/sys/devices/system/node/").removesuffix("/cpulist")) != path
        for cpu in cpu_list(value)
    }
    core = _number(
        first_of(cpu, "topology/core_cpus_list", "topology/thread_siblings_list") or str(cpu) for cpu in cpus
    )
    cluster = _number(first_of(cpu, _CLUSTER) or f"CPU {cpu}" for cpu in cpus)
    # Without clusters in the firmware's tables, the kernel reports each core as a cluster.
    shared = [name for name in _LAST_LEVEL if name != _CLUSTER or len(set(cluster)) < len(set(core))]
    l3 = _number(first_of(cpu, *shared) or f"package {package[cpu]}" for cpu in cpus)
    capacities = [first_of(cpu, "cpu_capacity") for cpu in cpus]
    return MeasuredTopology(
        cpus=len(cpus),
        online=None if cpus == list(range(len(cpus))) else cpus,
        core=core,
        l3=l3,
        last_level=next((_LAST_LEVEL[name] for name in shared if first_of(cpus[0], name)), "package"),
        node=_number(node.get(cpu, "node0") for cpu in cpus),
        package=_number(package[cpu] for cpu in cpus),
        # x86 reports the CPUs that share an L2 cache as a cluster; mostly they are one core.
        cluster=None if cluster in (core, l3, list(range(len(cpus)))) else cluster,
        capacity=[int(each) for each in capacities] if all(map(_CAPACITY.fullmatch, capacities)) else None,
    )


def _number(groups: Iterable[str]) -> list[int]:
    """Number the groups in the order of their first CPU."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(group, len(numbers)) for group in groups]


def topology_differences(measured: MeasuredTopology, declared: Topology) -> list[str]:
    """Describe how the measured topology differs from the declared one; empty if it does not."""
    domains = f"{measured.last_level} domains"
    packages = [measured.package.count(package) for package in range(max(measured.package) + 1)]
    # Before 6.0, arm64 kernels report each cluster of a device tree as a package.
    as_clusters = packages == [cluster.cores * declared.threads_per_core for cluster in declared.clusters]
    expected = {
        "CPUs": (measured.cpus, declared.cpus),
        "packages": (1 if as_clusters else len(packages), declared.sockets),
        domains: (len(set(measured.l3)), declared.l3_domains),
        "NUMA nodes": (len(set(measured.node)), declared.numa_nodes),
        "cores": (len(set(measured.core)), declared.cores),
    }
    other = {domains: f" {declared.last_level} domains"} if measured.last_level != declared.last_level else {}
    found = [
        f"{seen} {what}, declared {declared_number}{other.get(what, '')}"
        for what, (seen, declared_number) in expected.items()
        if seen != declared_number
    ]
    if found:
        return found
    sizes = [measured.l3.count(domain) for domain in range(declared.l3_domains)]
    declared_sizes = [cores * declared.threads_per_core for cores in declared.domain_cores]
    if sizes != declared_sizes:
        found.append(f"{domains} of {_listed(sizes)} CPUs, declared {_listed(declared_sizes)}")
    if len({measured.node.count(node) for node in set(measured.node)}) > 1:
        found.append("NUMA nodes of different sizes")
    found += _capacity_differences(measured, declared)
    if declared.threads_per_core == 2:
        sibling = measured.core[1:].index(measured.core[0]) + 1
        declared_sibling = 1 if declared.numbering == "contiguous" else declared.cpus // 2
        if sibling != declared_sibling:
            first, second = measured.numbers[0], measured.numbers[sibling]
            found.append(f"CPU {first}'s sibling is CPU {second}, declared numbering is {declared.numbering}")
    return found


def _capacity_differences(measured: MeasuredTopology, declared: Topology) -> list[str]:
    """Compare the order of the CPUs' capacities only, since clock speeds scale the kernel's numbers."""
    declared_capacity = cpu_layout.declared_layout(declared).capacity
    if declared_capacity is None:
        return []
    if measured.capacity is None:
        return ["the kernel reports no cpu_capacity, but CPUs of different capacity are declared"]
    seen: dict[int, set[int]] = defaultdict(set)
    for declared_as, capacity in zip(declared_capacity, measured.capacity, strict=True):
        seen[declared_as].add(capacity)
    kinds = [seen[declared_as] for declared_as in sorted(seen)]
    if all(max(weaker) < min(stronger) for weaker, stronger in pairwise(kinds)):
        return []
    return [f"cpu_capacity {_listed(measured.capacity)}, declared {_listed(declared_capacity)}"]


def _listed(numbers: Iterable[int]) -> str:
    """Format CPU capacities with repetitions counted, as in `4x400 4x1024`."""
    runs = [(len(list(run)), number) for number, run in groupby(numbers)]
    return " ".join(f"{length}x{number}" if length > 1 else f"{number}" for length, number in runs)


_PREEMPTION = {
    "PREEMPT_RT": "rt",
    "PREEMPT_LAZY": "lazy",
    "PREEMPT": "full",
    "PREEMPT_VOLUNTARY": "voluntary",
    "PREEMPT_NONE": "none",
}


def _environment(files: Mapping[str, str], config: Mapping[str, str], model: str) -> dict[str, str]:
    facts = {
        "kernel": files.get("/proc/version", ""),
        "cpu model": model,
        "clock source": files.get("/sys/devices/system/clocksource/clocksource0/current_clocksource", ""),
        "governor": files.get(f"{_CPU}/cpu0/cpufreq/scaling_governor", NOT_AVAILABLE),
        "boost": _boost(files),
        "temperature": _temperature(files),
        "smt": files.get(f"{_CPU}/smt/control", ""),
        "HZ": config.get("HZ", ""),
        "preemption": _preemption(files.get("/sys/kernel/debug/sched/preempt", ""), config),
        "default affinity scope": files.get("/sys/module/workqueue/parameters/default_affinity_scope", ""),
        "transparent hugepages": _chosen(files.get("/sys/kernel/mm/transparent_hugepage/enabled", "")),
        "mitigations": _mitigations(files),
    }
    facts |= _tunables(files)
    for option in ("KASAN", "PROVE_LOCKING"):
        if config.get(option) == "y":
            facts[option.lower()] = "y"
    return {name: value for name, value in facts.items() if value}


def _tunables(files: Mapping[str, str]) -> dict[str, str]:
    """Return the tunables whose defaults a series may change: `sysctl vm.dirty_ratio`, `workqueue cpumask`, ..."""
    names = {
        "/proc/sys/": "sysctl ",
        _SCHEDULER: "scheduler ",
        "/sys/module/workqueue/parameters/": "workqueue parameter ",
        "/sys/devices/virtual/workqueue/": "workqueue ",
    }
    facts = {}
    for path, value in files.items():
        for folder, prefix in names.items():
            if path.startswith(folder) and path not in _IDENTITY and path not in _REPORTED_ELSEWHERE:
                name = path.removeprefix(folder)
                facts[prefix + (name.replace("/", ".") if folder == "/proc/sys/" else name)] = value
    return facts


def _boost(files: Mapping[str, str]) -> str:
    known = {"1": "on", "0": "off"}
    if (value := files.get(f"{_CPU}/cpufreq/boost")) is not None:
        return known.get(value, value)
    if (value := files.get(f"{_CPU}/intel_pstate/no_turbo")) is not None:
        return {"1": "off", "0": "on"}.get(value, value)
    return NOT_AVAILABLE


def _temperature(files: Mapping[str, str]) -> str:
    folders = ("/sys/class/thermal/", "/sys/class/hwmon/")
    degrees = temperature.hottest_celsius({path: value for path, value in files.items() if path.startswith(folders)})
    return NOT_AVAILABLE if degrees is None else f"{degrees:.1f} °C"


def _preemption(dynamic: str, config: Mapping[str, str]) -> str:
    if match := _DYNAMIC.search(dynamic):
        return f"{match[1]} (dynamic)"
    return next((name for option, name in _PREEMPTION.items() if config.get(option) == "y"), "")


def _chosen(text: str) -> str:
    match = _CHOSEN.search(text)
    return match[1] if match else text


def _mitigations(files: Mapping[str, str]) -> str:
    """Return `off` if the command line switches mitigations off, else the state of each vulnerability."""
    options = [word for word in files.get("/proc/cmdline", "").split() if word.startswith("mitigations=")]
    if options[-1:] == ["mitigations=off"]:  # the last one takes effect
        return "off (command line)"
    prefix = f"{_CPU}/vulnerabilities/"
    states = {path.removeprefix(prefix): value for path, value in files.items() if path.startswith(prefix)}
    return "; ".join(f"{name}: {value}" for name, value in sorted(states.items()) if value != "Not affected")
