"""Texts that all report formats share: kernels, blocks, published figures. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from wqlab_comparison.words import count, metric_name, number
from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.report import Comparison, Report, TargetReport
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.api.submissions import ApplyView
from wqlab_contracts.enums import Arm, Evidence, Question
from wqlab_contracts.messages.looks import why_stopped
from wqlab_contracts.specs import Reference

from . import cells
from .looks_text import METHOD_OF_LOOKS, looks_option
from .model_text import METHOD_OF_MODELS

NOT_EVIDENCE = (
    "Throughput, latency and utilisation from this emulated device are not evidence, because its clock is not that of "
    "real hardware; they are shown as values only. Counts and shares are evidence of the mechanism, and the boots show "
    "that the kernels build, boot and survive."
)
FROM_GOLDEN = "from the same golden system by kexec"
"""How a lab starts each boot."""
METHOD = (
    "n is the number of boots. Each boot gives one value, the median of its repetitions without warm-up repetitions; "
    "the section of each device says how many there were. Timed figures need a warm-up repetition; counts, the only "
    "evidence from an emulated device, need none. Baseline and candidate boot on one device in alternating, shuffled "
    f"blocks, each {FROM_GOLDEN}. A difference is significant if an exact sign-flip test of the "
    "blocks' differences, each limited to 2.5 times their median size, reaches p <= .05, adjusted over its family; "
    "effect and 95 % interval are those of the same test. Figures that are the same whole number in every boot are "
    "counts and need no test."
)
METHOD_OF_COUNTS = (
    "On an instrumented device n is the number of seeds: both boots of a block start directly, without golden system "
    "and network, from the same seed, which shifts memory layout and start times. Equal counts under each seed are "
    "exactly the same; other counts are compared by the same test."
)
"""Description of the method that reports with an instrumented device have in addition to METHOD."""


def block_counts(target: TargetReport) -> str:
    """Return the numbers of completed and discarded blocks.

    Example: `3 of 3 blocks completed; discarded: candidate 1, for failures of the lab 2 (counted against no kernel)`.
    """
    if target.byte_identical:
        return "none: the kernels are byte-identical; `wqlab submit --force` measures anyway"
    parts = [f"{arm} {number_of}" for arm, number_of in sorted(target.discarded.items()) if number_of]
    if target.discarded_by_lab:
        parts.append(f"for failures of the lab {target.discarded_by_lab} (counted against no kernel)")
    rest = f"; discarded: {', '.join(parts)}" if parts else ", none discarded"
    seeds = ", one seed each" if target.plan.is_instrumented else ""
    layouts = f", {target.layouts} layouts of each kernel in turn" if target.layouts > 1 else ""
    stop = f"; {stopped}" if (stopped := why_stopped(target.looked, target.blocks_planned)) else ""
    return f"{target.blocks_completed} of {count(target.blocks_planned, 'block')} completed{seeds}{layouts}{rest}{stop}"


def method_of(targets: Sequence[TargetReport], started: str = FROM_GOLDEN) -> str:
    """Return the description of the statistical method, as far as the report uses it. `started`: how each boot was."""
    parts = [METHOD.replace(FROM_GOLDEN, started)]
    if any(each.plan.is_instrumented for each in targets):
        parts.append(METHOD_OF_COUNTS)
    if any(each.plan.is_modelled for each in targets):
        parts.append(METHOD_OF_MODELS)
    if any(each.looks for each in targets):
        parts.append(METHOD_OF_LOOKS)
    return " ".join(parts)


def repetitions(target: TargetReport) -> str:
    """Return the repetitions of each scenario and setting in a boot: `1 warm-up, 5 untraced, 1 traced repetitions`."""
    planned = target.plan.profile(target.emulated).repetitions
    warmups = f"{planned.warmup}" if planned.warmup_most is None else f"{planned.warmup} to {planned.warmup_most}"
    return f"{warmups} warm-up, {planned.untraced} untraced, {planned.traced} traced repetitions"


def canaries(target: TargetReport) -> list[str]:
    """Return what A/A comparisons have shown of each device of a comparison of kernels, one sentence a record."""
    kernels = any(cell.question is Question.KERNEL for cell in target.comparisons)
    return [f"{record.line}." for record in target.canaries] if kernels else []


def kind(finding: FindingView) -> str:
    """Return the kind of a finding, as in the title of its section: `KERNEL WARNING`."""
    return finding.kind.value.replace("_", " ").upper()


def is_study(report: Report) -> bool:
    """Return True for a settings study, which has no series."""
    return report.submission.request.series is None


def has_values_only(target: TargetReport) -> bool:
    """Return True if the target has measured values that are no evidence."""
    return any(
        cell.evidence is Evidence.NONE and (cell.baseline is not None or cell.candidate is not None)
        for cell in target.comparisons
    )


def kernels(report: Report) -> list[BuildView]:
    """Return the report's builds, baselines first."""
    return sorted(report.submission.builds, key=lambda build: (build.arm or "", build.arch, build.recipe, build.id))


@dataclass(frozen=True)
class Reproducer:
    """Instructions to build kernels of the report outside the lab."""

    needs: str
    """What is needed before the command can run."""
    command: str


def reproducers(report: Report) -> list[Reproducer]:
    """Return one reproducer per command; baseline and candidate differ only in their source and share one."""
    commands: dict[str, list[BuildView]] = {}
    for build in kernels(report):
        if build.reproducer:
            commands.setdefault(build.reproducer, []).append(build)
    return [Reproducer(_needs(report.submission.id, builds), command) for command, builds in commands.items()]


def public_origin(report: Report) -> str:
    """Return the repository or Debian package of the tree; empty if it is a folder of the lab's own machine."""
    builds = kernels(report)
    return builds[0].origin if builds and not builds[0].origin.startswith(("/", "file:")) else ""


def _needs(submission_id: int, builds: Sequence[BuildView]) -> str:
    first = builds[0]
    origin = f" ({first.origin})" if first.origin else ""
    config = next((build for build in builds if build.artifacts), first)
    text = (
        f"To build {_kernel_names(builds)} you need: {first.tree}{origin} at {first.base_commit[:12]} in linux/, its "
        f"configuration in the file config (`wqlab logs {submission_id} --build {config.id} --config -o config`), "
        f"tuxmake, and the compiler above."
    )
    if any(build.arm is Arm.CANDIDATE for build in builds):
        text += " For the candidate, apply the series in linux/ first (git am)."
    return text


def _kernel_names(builds: Sequence[BuildView]) -> str:
    first = builds[0]
    arms = list(dict.fromkeys(str(build.arm) for build in builds if build.arm))
    return f"{'either kernel' if len(arms) > 1 else f'the {arms[0]}' if arms else 'it'} ({first.recipe}, {first.arch})"


def deleted_files(report: Report) -> str:
    """Return what retention has deleted of the submission's files, and when; empty if nothing."""
    submission = report.submission
    found = {
        "the series as mbox": [submission.apply.files_deleted_at] if submission.apply.series_mbox else [],
        "kernels, configurations and build logs": [build.files_deleted_at for build in submission.builds],
        "raw output of the boots": [run.files_deleted_at for run in submission.runs],
        "consoles": [run.consoles_deleted_at for run in submission.runs],
    }
    parts = [
        f"{what} {'was' if what.startswith('the ') else 'were'} deleted by retention on {_date(dates)}"
        for what, given in found.items()
        if (dates := [at for at in given if at is not None])
    ]
    return f"Not downloadable any more: {'; '.join(parts)}. Samples and this report stay." if parts else ""


def _date(dates: Sequence[datetime]) -> str:
    return f"{max(dates).astimezone(UTC):%Y-%m-%d}"


def describe_build(build: BuildView) -> str:
    """Return `6.12.117, x86_64, recipe measure, built in 9 min`; without the time if the build was reused."""
    if build.failure is not None:
        result = "BUILD FAILED"
    elif build.reused or build.duration_s is None:
        result = ""
    else:
        seconds = round(build.duration_s)
        result = f"built in {f'{round(seconds / 60)} min' if seconds >= 120 else f'{seconds} s'}"
    return joined([build.release or "unknown release", build.arch, f"recipe {build.recipe}", result])


def checkpatch_summary(apply: ApplyView) -> str:
    """Return the number of findings by severity, `clean`, or why checkpatch did not check every patch."""
    totals = Counter(one.severity for one in apply.checkpatch)
    found = ", ".join(count(totals[kind], kind) for kind in ("error", "warning", "check") if totals[kind])
    if not apply.checkpatch_skipped:
        return found or "clean"
    return (
        f"{found}; incomplete, because {apply.checkpatch_skipped}"
        if found
        else (f"not run, because {apply.checkpatch_skipped}")
    )


def compilers(builds: Sequence[BuildView]) -> list[str]:
    """Return each compiler's own version text once; with several compilers, prefixed by the arm."""
    known = {build.compiler: build for build in builds if build.compiler}
    return [f"{build.arm}: {name}" if len(known) > 1 and build.arm else name for name, build in known.items()]


def head(report: Report) -> str:
    """Return the first line: `wqlab submission 2, finished 2026-11-21 09:40 UTC, 2 patches on linux-6.12`.

    Of a pair of commits it names both.
    """
    submission = report.submission
    time = submission.finished_at or report.generated_at
    state = "finished" if submission.finished_at else "as of"
    patches = len(submission.apply.patches)
    subject = f"settings of {submission.tree}" if is_study(report) else f"on {submission.tree}"
    if is_local(report):
        return f"wqlab ab, {state} {time.strftime('%Y-%m-%d %H:%M UTC')}"
    pair = submission.request.series.commits if submission.request.series is not None else None
    if pair is not None:
        reverted = f" with {pair.reverted[:12]} reverted" if pair.reverted is not None else ""
        subject = f"{pair.candidate[:12]} of {pair.ref}{reverted} against {pair.baseline[:12]}, {submission.tree}"
    elif patches:
        subject = f"{patches} {'patch' if patches == 1 else 'patches'} on {submission.tree}"
    return f"wqlab submission {submission.id}, {state} {time.strftime('%Y-%m-%d %H:%M UTC')}, {subject}"


def is_local(report: Report) -> bool:
    """Return True for a report of `wqlab ab`, which no lab made: its address is a folder of this host."""
    return report.lab_url.startswith("file:")


def folder(report: Report) -> str:
    """Return the name of the folder that `wqlab ab` made for the report: the last part of its URL."""
    return report.lab_url.rstrip("/").rpartition("/")[2]


def trust(report: Report) -> str:
    """Return the URL of the page that says how far to trust a verdict."""
    return f"{report.lab_url.rstrip('/')}/docs/trust/"


def address(report: Report) -> str:
    """Return the permanent link to this report; a suffix selects another format."""
    if is_local(report):
        return f"{report.lab_url.rstrip('/')}/report"
    return f"{report.lab_url.rstrip('/')}/r/{report.submission.id}"


def api_address(report: Report, path: str) -> str:
    """Return the address of a file of this report in the lab's REST API."""
    return f"{report.lab_url.rstrip('/')}/api/v1/{path}"


def page(report: Report) -> str:
    """Return the address of the page of this report."""
    return f"{address(report)}.html" if is_local(report) else address(report)


def recompute_commands(report: Report) -> list[str]:
    """Return the commands that recompute the verdicts from all samples.

    All targets are compared at once, because p values are adjusted over all comparisons of a submission.
    """
    commands, files = [], []
    references: dict[str, str] = {}
    for target in report.targets:
        if target.values:
            if is_local(report):
                files.append(shlex.quote(f"{folder(report)}/samples.csv"))
            else:
                files.append(f"run{target.run_id}.csv")
                commands.append(f"wqlab samples {target.run_id} -o {files[-1]}")
            references |= {c.plan: c.reference for c in target.comparisons if c.question is Question.SETTING}
    named = references.values() if len(references) == 1 else (f"{plan}:{each}" for plan, each in references.items())
    against = "".join(f" --reference {shlex.quote(reference)}" for reference in named)
    looks = looks_option([target for target in report.targets if target.values])
    return [*commands, f"wqlab compare {' '.join(files)}{against}{looks}"] if files else []


def meanings(target: TargetReport) -> list[tuple[str, str]]:
    """Return name and summary of every metric that has a verdict here, so that readers know what a figure counts."""
    judged = {cell.metric for cell in cells.judged(target.comparisons)}
    return [(metric_name(metric.name), metric.summary) for metric in target.plan.metrics if metric.name in judged]


class Published(NamedTuple):
    """A published figure beside the one measured here."""

    reference: Reference
    published: str
    measured: str

    @property
    def name(self) -> str:
        figure = self.reference
        base = figure.relative_to and f"from {figure.relative_to}"
        return " ".join(filter(None, (figure.scenario, figure.setting, metric_name(figure.metric), base)))


def published(target: TargetReport) -> list[Published]:
    """Return each published figure whose cell was measured here; of two kernels, the baseline is shown."""
    rows = []
    for figure in target.references:
        means = _means(target.comparisons, figure, figure.setting)
        if figure.relative_to is None:
            deviation = "" if figure.stddev is None else f" ±{figure.stddev:g}"
            published_text = f"{figure.mean:g}{deviation}"
            measured = {arm: f"{number(mean)} {target.plan.metric(figure.metric).unit}" for arm, mean in means.items()}
        else:
            bases = _means(target.comparisons, figure, figure.relative_to)
            published_text = f"{figure.mean:+g} %"
            measured = {
                arm: f"{100 * (means[arm] / base - 1):+.4g} %" for arm, base in bases.items() if base and arm in means
            }
        about = (
            cell for cell in target.comparisons if (cell.scenario, cell.metric) == (figure.scenario, figure.metric)
        )
        note = " (no evidence)" if any(cell.evidence is Evidence.NONE for cell in about) else ""
        rows += [Published(figure, published_text, measured[arm] + note) for arm in Arm if arm in measured][:1]
    return rows


def _means(comparisons: Sequence[Comparison], figure: Reference, setting: str) -> dict[Arm, float]:
    """Return the means of the figure's scenario and metric with this setting, by kernel."""
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


def joined(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)
