"""Repeat the measurements of a bundle in a lab of one's own, and compare the evidence of both reports.

The lab builds both kernels from source and boots them on its emulated devices, so nothing of the bundle's kernels or
samples is used. Figures of real hardware are not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wqlab_contracts.api.report import Comparison, Report, TargetReport
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.bundle import REPORT, SERIES, plain_path
from wqlab_contracts.enums import Evidence, Role, Verdict
from wqlab_contracts.mails import mbox
from wqlab_contracts.messages import MboxSeries, Series, Target
from wqlab_contracts.specs import GeneratedTopology, Topology

from ..client import Client
from ..errors import LabUnavailable, UsageError
from .archive import Bundle
from .checks import Check, Result
from .records import Run, read_runs

if TYPE_CHECKING:
    from wqlab_contracts.api.devices import DeviceTypeView
    from wqlab_contracts.api.plans import PlanView

START_A_LAB = (
    "start one on this machine: `make setup` and `make up` in a checkout of wqlab, then set WQLAB_URL and WQLAB_TOKEN "
    "as `make up` prints them"
)
_UNDECIDED = {Verdict.INCONCLUSIVE, Verdict.UNSUPPORTED, Verdict.NO_EVIDENCE, None}


@dataclass(frozen=True)
class Repetition:
    """The submission that repeats a bundle, and the parts that it leaves out or changes."""

    request: SubmissionRequest
    notes: Sequence[Check]


def plan_repetition(bundle: Bundle, lab: Client, blocks: int | None) -> Repetition:
    """Return the submission for `lab` that repeats what it can. `blocks`: number per target, by default the bundle's.

    Raises UsageError if the lab cannot be reached, lacks the tree, or can repeat no target.
    """
    report = bundle.model(REPORT, Report)
    request = report.submission.request
    try:
        trees = {view.tree.name: view for view in lab.trees()}
        types = {view.name: view for view in lab.device_types()}
        plans = {view.plan.name: view for view in lab.plans(files=True)}
    except LabUnavailable as error:
        raise UsageError(f"--run: {error.summary}", START_A_LAB) from None
    if request.tree not in trees:
        raise UsageError(
            f"--run: the lab at {lab.url} has no tree {request.tree}; it has {', '.join(sorted(trees)) or 'none'}",
            "add the tree to its kernels/trees.yaml",
        )
    notes: list[Check] = []
    targets: list[Target] = []
    for run in read_runs(bundle, report):
        record = run.record
        topology = emulated_topology(record.device_type, types)
        if not record.emulated:
            reason = "measured on hardware; only emulated devices are repeated"
        elif topology is None:
            reason = f"the lab has no emulated device type {record.device_type}"
        elif topology != record.topology:
            reason = f"the lab's {record.device_type} has another topology"
        elif record.plan.name not in plans:
            reason = f"the lab has no plan {record.plan.name}"
        else:
            notes += _plan_notes(bundle, run, plans[record.plan.name])
            targets.append(request.targets[record.target])
            continue
        notes.append(Check(run.target, "not repeated", Result.UNCHECKED, reason))
    if not targets:
        raise UsageError("--run: no target can be repeated: " + "; ".join(note.text for note in notes), START_A_LAB)
    base = report.submission.apply.base_commit
    if request.series is None and base and trees[request.tree].base_commit not in {base, None}:
        head = (trees[request.tree].base_commit or "")[:12]
        text = f"the bundle's kernel is {base[:12]}, the lab's tree is at {head}"
        notes.append(Check("", "base commit", Result.UNCHECKED, text))
    series = None if request.series is None else Series(mbox=MboxSeries(text=_series(bundle, base)))
    repeated = SubmissionRequest(
        series=series,
        tree=request.tree,
        targets=targets,
        blocks=blocks or request.blocks,
        repetitions=request.repetitions,
        looks=None if blocks else request.looks,
        recipe=request.recipe,
        force=request.force,
    )
    return Repetition(repeated, notes)


def emulated_topology(name: str, types: Mapping[str, DeviceTypeView]) -> Topology | None:
    """Return the topology of an emulated device type, or None if the lab has no such type and cannot generate it.

    A generated type is missing from `types` until the lab has used it once.
    """
    if (known := types.get(name)) is not None:
        return known.topology if known.emulated else None
    generated = GeneratedTopology.parse(name)
    return None if generated is None or generated.problem() else generated.device_type("repeat").topology


def _series(bundle: Bundle, base: str | None) -> str:
    """Return the series with a `base-commit` line, by which the lab applies it to the same commit."""
    text = bundle.content(SERIES).decode("utf-8", errors="replace")
    if base is None or mbox.base_commit([text]):
        return text
    return f"{text.rstrip()}\n\nbase-commit: {base}\n"


def _plan_notes(bundle: Bundle, run: Run, known: PlanView) -> list[Check]:
    folder = f"runs/{run.record.run_id}/scripts/"
    theirs = {name.removeprefix(folder): bundle.content(name) for name in bundle.names if name.startswith(folder)}
    texts = {known.plan.script: known.script, **known.files} | ({"README.md": known.readme} if known.readme else {})
    own = {plain_path(name): text.encode() for name, text in texts.items()}
    changed = sorted(name for name in theirs.keys() | own.keys() if theirs.get(name) != own.get(name))
    if known.plan == run.record.plan and not changed:
        return []
    what = f"its files {', '.join(changed)} differ" if changed else "its plan.yaml differs"
    return [Check(run.target, "plan", Result.UNCHECKED, f"the lab's version is used; {what} from the bundle's")]


def compare_evidence(reported: Report, repeated: Report) -> list[Check]:
    """Compare the verdicts of everything that is evidence on an emulated device, of targets that both reports have."""
    own = {(target.plan.name, target.device_type): target for target in repeated.targets}
    checks: list[Check] = []
    one, other = reported.submission.apply.base_commit, repeated.submission.apply.base_commit
    if one and other and one != other:
        text = f"the bundle's kernels are based on {one[:12]}, the repeated ones on {other[:12]}"
        checks.append(Check("", "base commit", Result.UNCHECKED, text))
    for target in reported.targets:
        if again := own.get((target.plan.name, target.device_type)):
            checks += _compare_targets(target, again)
    return checks


def _compare_targets(target: TargetReport, again: TargetReport) -> list[Check]:
    name = f"{target.plan.name} on {target.device_type}"
    if Verdict.FAILED in {target.verdict, again.verdict}:
        same = target.verdict is again.verdict
        text = f"in the bundle: {target.headline}; repeated: {again.headline}"
        return [Check(name, "verdict", Result.AGREES if same else Result.DIFFERS, text)]
    own = {_key(each): each for each in again.comparisons}
    return [
        _compare_cells(name, each, own[_key(each)])
        for each in target.comparisons
        if each.evidence is Evidence.MECHANISM and each.role is not Role.EXPLANATORY and _key(each) in own
    ]


def _compare_cells(name: str, reported: Comparison, repeated: Comparison) -> Check:
    verdicts = {reported.verdict, repeated.verdict}
    result = Result.AGREES if len(verdicts) == 1 else Result.UNCHECKED if verdicts & _UNDECIDED else Result.DIFFERS
    subject = " ".join(filter(None, (reported.scenario, reported.setting, reported.metric)))
    return Check(name, subject, result, f"in the bundle {_figures(reported)}; repeated {_figures(repeated)}")


def _figures(of: Comparison) -> str:
    verdict = of.verdict.replace("_", " ") if of.verdict else "not judged"
    if of.baseline is None or of.candidate is None:
        return verdict
    return f"{verdict} ({of.baseline.mean:.4g} -> {of.candidate.mean:.4g} {of.unit}, n={of.candidate.n})"


def _key(of: Comparison) -> tuple[object, ...]:
    return of.question, of.kernel, of.reference, of.scenario, of.setting, of.metric
