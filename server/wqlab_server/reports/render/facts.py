"""What every format says in the same words: systems, topologies, kernels, blocks, failures. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from wqlab_comparison.words import count, is_evidence, number
from wqlab_contracts.api.report import AttemptView, Comparison, Report, TargetReport
from wqlab_contracts.api.submissions import BuildView, FindingView
from wqlab_contracts.enums import Arm, Evidence, Question, Role
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import Reference, Topology

NOT_EVIDENCE = (
    "Throughput, latency and utilisation from this emulated device are no evidence for or against anything: its clock "
    "is not hardware. They are given as values only. What it does show is mechanism: counts, shares, and that the "
    "kernels build, boot and survive."
)
METHOD = (
    "n counts boots: every boot is one value, the median of its repetitions. Warm-up repetitions are never in it; "
    "each device above says how many there were. Clocked figures need one; counts, all the evidence from an emulated "
    "device, need none. Baseline and candidate boot in alternating, shuffled blocks on one device, each from the same "
    "golden system by kexec. A difference counts when a paired t test (adjusted over its family) and an exact "
    "sign-flip test both reach .05; figures that are the same whole number in every boot are counts, and need no test."
)


_CHECKED = {
    "cpu model": "CPU model",
    "preemption": "preemption",
    "HZ": "HZ",
    "clock source": "clock",
    "mitigations": "mitigations",
    "governor": "governor",
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
    "kasan": "KASAN",
    "prove_locking": "lockdep",
}
"""Facts that a reader checks before believing a figure, and what they are called there; plans record more."""
_OF_THE_LAB = "wqlab."
"""How the kernel arguments begin with which the lab knows its boot again and gets at it: nothing to repeat."""


@dataclass(frozen=True)
class Platform:
    """One target's device as its kernel saw it."""

    topology: str
    mismatch: str


def platform(target: TargetReport) -> Platform:
    """The measured topology, and how it differs from the declared one; empty texts where nothing booted."""
    measured = target.environment.topology if target.environment else None
    if measured is None:
        return Platform(f"{declared(target.declared_topology)} (declared; no kernel reported one)", "")
    text = topology(measured)
    expected = declared(target.declared_topology)
    return Platform(text, "" if _sizes(text) == _sizes(expected) else f"declared as {expected}")


def topology(measured: MeasuredTopology) -> str:
    """`2 packages, 2 NUMA nodes, 2 L3 domains of 16 CPUs, SMT siblings adjacent`."""
    of = _from_to(list(Counter(measured.l3).values()))
    domains = count(len(set(measured.l3)), f"{measured.last_level} domain")
    return (
        f"{_shared(len(set(measured.package)), len(set(measured.node)))}, {domains} of {of} CPUs{_siblings(measured)}"
        f"{_capacities(measured)}"
    )


def declared(wanted: Topology) -> str:
    of = _from_to([cores * wanted.threads_per_core for cores in wanted.domain_cores])
    domains = count(wanted.l3_domains, f"{wanted.last_level} domain")
    return f"{_shared(wanted.sockets, wanted.numa_nodes)}, {domains} of {of} CPUs"


def _shared(packages: int, nodes: int) -> str:
    return f"{count(packages, 'package')}, {count(nodes, 'NUMA node')}"


def _from_to(sizes: Sequence[int]) -> str:
    least, most = min(sizes, default=0), max(sizes, default=0)
    return f"{least}" if least == most else f"{least} to {most}"


def system(target: TargetReport) -> list[tuple[str, str]]:
    """Name and value of what decides whether two systems compare, in the order in which one asks."""
    if target.environment is None:
        return []
    known = {"kernel": _per_arm(target.environment.release)}
    known |= {shown: target.environment.facts.get(name, "") for name, shown in _CHECKED.items()}
    known["fio"] = known["fio"].removeprefix("fio-")
    return [(name, value) for name, value in known.items() if value]


def cmdlines(target: TargetReport) -> dict[str, str]:
    """What to call it -> a kernel command line without the lab's own arguments; arms that have the same share one."""
    lines = target.environment.cmdline if target.environment else {}
    arms: dict[str, list[str]] = {}
    for arm, line in lines.items():
        arms.setdefault(" ".join(word for word in line.split() if not _is_the_labs(word)), []).append(arm)
    without = any(_is_the_labs(word) for line in lines.values() for word in line.split())
    note = ", without the lab's own wqlab.* words" if without else ""
    of = {1: "", 2: " of both"} if len(arms) == 1 else {1: " of the {}"}
    return {f"Kernel command line{of[len(of_arms)].format(*of_arms)}{note}": line for line, of_arms in arms.items()}


def _is_the_labs(argument: str) -> bool:
    return argument.startswith(_OF_THE_LAB)


def _per_arm(values: dict[Arm, str]) -> str:
    """`6.12.117`, or `baseline 6.12.117, candidate 6.12.117-wq` where they differ."""
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{arm} {value}" for arm, value in values.items())


def discards(target: TargetReport) -> str:
    """`3 of 3 blocks completed; discarded and repeated: candidate 1`."""
    arms = ", ".join(f"{arm} {number_of}" for arm, number_of in sorted(target.discarded.items()) if number_of)
    rest = f"; discarded: {arms}" if arms else ", none discarded"
    return f"{target.blocks_completed} of {count(target.blocks_planned, 'block')} completed{rest}"


def repetitions(target: TargetReport) -> str:
    """`1 warm-up, 5 untraced, 1 traced repetitions`: what one boot runs of each scenario and setting."""
    planned = target.plan.profile(target.emulated).repetitions
    return f"{planned.warmup} warm-up, {planned.untraced} untraced, {planned.traced} traced repetitions"


def is_study(report: Report) -> bool:
    return report.submission.request.series is None


def place(finding: FindingView) -> str:
    """`candidate, block 1, attempt 2`: people count from one."""
    return f"{finding.arm}, block {finding.block + 1}, attempt {finding.attempt + 1}"


def where(attempt: AttemptView) -> str:
    """`xfs-fsync on xeon-1, block 1, candidate, attempt 2`. A lost device has no block; its attempts start at one.
    An apply or a build: `build 7 by host/12, attempt 1`."""
    if attempt.what != "run":
        what = f"build {attempt.build_id}" if attempt.build_id else attempt.what
        return f"{what}{f' by {attempt.device}' if attempt.device else ''}, attempt {attempt.attempt}"
    parts = [f"{attempt.plan} on {attempt.device or attempt.device_type}"]
    if attempt.block is not None:
        parts += [f"block {attempt.block + 1}", attempt.arm or ""]
    return joined([*parts, f"attempt {attempt.attempt + (attempt.block is not None)}"])


def has_values_only(target: TargetReport) -> bool:
    return any(
        cell.evidence is Evidence.NONE and (cell.baseline is not None or cell.candidate is not None)
        for cell in target.comparisons
    )


def kernels(report: Report) -> list[BuildView]:
    """The builds that played a part, baseline first."""
    return sorted(report.submission.builds, key=lambda build: (build.arm or "", build.arch, build.recipe, build.id))


@dataclass(frozen=True)
class Reproducer:
    """How to build kernels of the report outside the lab."""

    needs: str
    """What has to be there before the command runs."""
    command: str


def reproducers(report: Report) -> list[Reproducer]:
    """One per command: baseline and candidate differ in their source only."""
    commands: dict[str, list[BuildView]] = {}
    for build in kernels(report):
        if build.reproducer:
            commands.setdefault(build.reproducer, []).append(build)
    return [Reproducer(_needs(report.submission.id, builds), command) for command, builds in commands.items()]


def _needs(submission_id: int, builds: Sequence[BuildView]) -> str:
    first = builds[0]
    origin = f" ({first.origin})" if first.origin else ""
    config = next((build for build in builds if build.artifacts), first)
    text = (
        f"To build {_kernel_names(builds)}: {first.tree}{origin} at {first.base_commit[:12]} in linux/, its "
        f"configuration beside it (`wqlab logs {submission_id} --build {config.id} --config -o config`), tuxmake, and "
        f"the compiler above."
    )
    if any(build.arm is Arm.CANDIDATE for build in builds):
        text += " For the candidate apply the series in linux/ first (git am)."
    return text


def _kernel_names(builds: Sequence[BuildView]) -> str:
    first = builds[0]
    arms = list(dict.fromkeys(str(build.arm) for build in builds if build.arm))
    return f"{'either kernel' if len(arms) > 1 else f'the {arms[0]}' if arms else 'it'} ({first.recipe}, {first.arch})"


def built(build: BuildView) -> str:
    """`6.12.117, x86_64, recipe measure, built in 9 min`; a build that was there already took no time."""
    if build.failure is not None:
        how = "DOES NOT BUILD"
    elif build.reused or build.duration_s is None:
        how = ""
    else:
        seconds = round(build.duration_s)
        how = f"built in {f'{round(seconds / 60)} min' if seconds >= 120 else f'{seconds} s'}"
    return joined([build.release or "unknown release", build.arch, f"recipe {build.recipe}", how])


def compilers(builds: Sequence[BuildView]) -> list[str]:
    """Each compiler once, as its own words; with the arm where the arms' differ."""
    known = {build.compiler: build for build in builds if build.compiler}
    return [f"{build.arm}: {name}" if len(known) > 1 and build.arm else name for name, build in known.items()]


def head(report: Report) -> str:
    """`wqlab submission 2, finished 2026-11-21 09:40 UTC, 2 patches on linux-6.12`."""
    submission = report.submission
    when = submission.finished_at or report.generated_at
    state = "finished" if submission.finished_at else "as of"
    patches = len(submission.apply.patches)
    what = f"settings of {submission.tree}" if is_study(report) else f"on {submission.tree}"
    if patches:
        what = f"{patches} {'patch' if patches == 1 else 'patches'} on {submission.tree}"
    return f"wqlab submission {submission.id}, {state} {when.strftime('%Y-%m-%d %H:%M UTC')}, {what}"


def address(report: Report) -> str:
    """The link for a mail: the lab answers it with this report for ever, with a suffix in another format."""
    return f"{report.lab_url.rstrip('/')}/r/{report.submission.id}"


def live_page(report: Report) -> str:
    """Where the lab shows it with everything that needs a script."""
    return f"{report.lab_url.rstrip('/')}/submissions/{report.submission.id}/report"


def recomputing(report: Report) -> list[str]:
    """Commands that compute the verdicts again, from every sample: of all targets at once, because a p is adjusted over
    everything that a submission asked."""
    commands, files = [], []
    references: dict[str, str] = {}
    for target in report.targets:
        if target.values:
            files.append(f"run{target.run_id}.csv")
            commands.append(f"wqlab samples {target.run_id} -o {files[-1]}")
            references |= {c.plan: c.reference for c in target.comparisons if c.question is Question.SETTING}
    named = references.values() if len(references) == 1 else (f"{plan}:{each}" for plan, each in references.items())
    against = "".join(f" --reference {shlex.quote(reference)}" for reference in named)
    return [*commands, f"wqlab compare {' '.join(files)}{against}"] if files else []


def meanings(target: TargetReport) -> list[tuple[str, str]]:
    """Name and summary of every metric that is judged here: a figure is worth no more than what it counts."""
    judged = {c.metric for c in target.comparisons if is_evidence(c) and c.role is not Role.EXPLANATORY}
    return [(metric.name, metric.summary) for metric in target.plan.metrics if metric.name in judged]


class Published(NamedTuple):
    """A figure that was published, and what came out here."""

    reference: Reference
    published: str
    measured: str

    @property
    def name(self) -> str:
        figure = self.reference
        words = (figure.scenario, figure.setting, figure.metric, figure.relative_to and f"from {figure.relative_to}")
        return " ".join(word for word in words if word)


def published(target: TargetReport) -> list[Published]:
    """Each published figure whose cell was measured here; of two kernels, on the baseline."""
    rows = []
    for figure in target.references:
        means = _means(target.comparisons, figure, figure.setting)
        if figure.relative_to is None:
            deviation = "" if figure.stddev is None else f" ±{figure.stddev:g}"
            said = f"{figure.mean:g}{deviation}"
            here = {arm: f"{number(mean)} {target.plan.metric(figure.metric).unit}" for arm, mean in means.items()}
        else:
            bases = _means(target.comparisons, figure, figure.relative_to)
            said = f"{figure.mean:+g} %"
            here = {
                arm: f"{100 * (means[arm] / base - 1):+.4g} %" for arm, base in bases.items() if base and arm in means
            }
        cells = (
            cell for cell in target.comparisons if (cell.scenario, cell.metric) == (figure.scenario, figure.metric)
        )
        worth = " (no evidence)" if any(cell.evidence is Evidence.NONE for cell in cells) else ""
        rows += [Published(figure, said, here[arm] + worth) for arm in Arm if arm in here][:1]
    return rows


def _means(comparisons: Sequence[Comparison], figure: Reference, setting: str) -> dict[Arm, float]:
    """Of the figure's scenario and metric with this setting, on each kernel."""
    means: dict[Arm, float] = {}
    for cell in comparisons:
        if (cell.scenario, cell.metric) != (figure.scenario, figure.metric):
            continue
        if cell.question is Question.KERNEL:
            found = {Arm.BASELINE: cell.baseline, Arm.CANDIDATE: cell.candidate} if cell.setting == setting else {}
        else:
            sides = {cell.reference: cell.baseline, cell.setting: cell.candidate}
            found = {cell.kernel or Arm.BASELINE: sides.get(setting)}
        means |= {arm: summary.mean for arm, summary in found.items() if summary is not None}
    return means


def _siblings(measured: MeasuredTopology) -> str:
    per_core = Counter(zip(measured.package, measured.l3, measured.core, strict=True))
    if not per_core or max(per_core.values()) == 1:
        return ", no SMT"
    cores = list(zip(measured.package, measured.l3, measured.core, strict=True))
    if cores[0] == cores[1]:
        return ", SMT siblings adjacent"
    half = len(cores) // 2
    apart = measured.numbers[half] - measured.numbers[0]
    return f", SMT siblings at +{apart}" if cores[0] == cores[half] else ""


def _capacities(measured: MeasuredTopology) -> str:
    """`, capacity 4x400 4x1024` of a device whose CPUs differ."""
    if measured.capacity is None or len(set(measured.capacity)) == 1:
        return ""
    runs = [(len(list(run)), capacity) for capacity, run in groupby(measured.capacity)]
    return ", capacity " + " ".join(f"{length}x{capacity}" for length, capacity in runs)


def _sizes(text: str) -> list[str]:
    return text.split(", ")[:3]


def lines_of(text: str, most: int) -> list[str]:
    """The last `most` lines of an excerpt; a first line says how many are left out."""
    lines = text.splitlines()
    return lines if len(lines) <= most else [f"[{len(lines) - most} lines before]", *lines[-most:]]


def joined(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)
