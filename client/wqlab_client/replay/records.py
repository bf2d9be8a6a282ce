"""Read the records of a bundle's runs, and check that they fit together and to the report."""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wqlab_comparison import Samples, SamplesError, read_csv, words
from wqlab_comparison.questions import facts_of
from wqlab_comparison.runs import RecordedRun, recorded_run
from wqlab_contracts.bundle import RUN_RECORD, SAMPLES, RunRecord, console_name
from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, Evidence, FindingKind

from .archive import MODEL_BYTES, SAMPLES_BYTES, Bundle, BundleError
from .checks import Check, Result, from_problems

if TYPE_CHECKING:
    from wqlab_contracts.api.builds import BuildView
    from wqlab_contracts.api.report import Report, TargetReport
    from wqlab_contracts.api.runs import FindingView

_RUN = re.compile(rf"runs/([1-9][0-9]{{0,17}})/{re.escape(RUN_RECORD)}")
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffd]")
_NOT_ON_CONSOLE = {FindingKind.HANG, FindingKind.WRONG_RESULT}


@dataclass(frozen=True)
class Run:
    """A run of the bundle, with its samples and its part of the report."""

    record: RunRecord
    samples: Samples | None
    reported: TargetReport

    @property
    def target(self) -> str:
        return f"{self.record.plan.name} on {self.record.device_type}"

    @property
    def measured(self) -> bool:
        """Return True if the lab compared the run's figures."""
        record = self.record
        return record.compared and record.figures and not record.byte_identical

    @property
    def lab_discards(self) -> set[tuple[int, int]]:
        """(block, attempt) of each block that was discarded without counting against an arm."""
        return {(each.block, each.attempt) for each in self.record.attempts if not each.finished and each.arm is None}

    @property
    def _not_validated(self) -> dict[str, str]:
        """Return modelled metric -> why the lab withheld its verdicts. What it has validated is no part of a bundle."""
        found: dict[str, str] = {}
        for each in self.reported.comparisons:
            if each.evidence is Evidence.MODELLED:
                found[each.metric] = found.get(each.metric, "") or each.not_validated
        return found

    @property
    def recorded(self) -> RecordedRun:
        floors = {(each.scenario, each.setting, each.metric): each.floor for each in self.reported.noise_floors}
        not_exercised = self.reported.ran.not_exercised if self.reported.ran else ""
        return recorded_run(self.record, self._not_validated, floors, not_exercised)


def read_runs(bundle: Bundle, report: Report) -> list[Run]:
    """Return the runs in the order in which the lab compares them."""
    ids = sorted(int(match[1]) for name in bundle.names if (match := _RUN.fullmatch(name)))
    reported = {target.run_id: target for target in report.targets}
    if set(ids) != reported.keys():
        raise BundleError(bundle.path, f"it has the runs {ids}, its report the runs {sorted(reported)}")
    if len(ids) > len(report.submission.request.targets):
        raise BundleError(bundle.path, f"it has {len(ids)} runs, more than targets were requested")
    for file, limit in ((RUN_RECORD, MODEL_BYTES), (SAMPLES, SAMPLES_BYTES)):
        bundle.check_size([f"runs/{run_id}/{file}" for run_id in ids], limit)
    runs = []
    for run_id in ids:
        record = bundle.model(f"runs/{run_id}/{RUN_RECORD}", RunRecord)
        if record.run_id != run_id:
            raise BundleError(bundle.path, f"runs/{run_id}/{RUN_RECORD} is of run {record.run_id}")
        if not 0 <= record.target < len(report.submission.request.targets):
            raise BundleError(bundle.path, f"run {run_id} is of target {record.target + 1}, which was not requested")
        runs.append(Run(record, _read_samples(bundle, run_id), reported[run_id]))
    targets = Counter((run.record.plan.name, run.record.device_type) for run in runs)
    if repeated := [target for target, number in targets.items() if number > 1]:
        raise BundleError(bundle.path, f"two of its runs are {repeated[0][0]} on {repeated[0][1]}")
    return sorted(runs, key=lambda run: (run.record.target, run.record.run_id))


def _read_samples(bundle: Bundle, run_id: int) -> Samples | None:
    name = f"runs/{run_id}/{SAMPLES}"
    with tempfile.TemporaryDirectory(prefix="wqlab-replay-") as folder:
        path = Path(folder, SAMPLES)
        bundle.extract(name, path, SAMPLES_BYTES)
        with path.open("rb") as file:
            if file.readline(10_000) and not file.readline(10_000):
                return None  # the header alone
        try:
            return read_csv(path)
        except SamplesError as error:
            raise BundleError(bundle.path, str(error).replace(str(path), name)) from None


def check_records(run: Run, builds: Sequence[BuildView]) -> Iterator[Check]:
    """Check that blocks, boots, samples and the report's builds fit together."""
    yield _check_plan(run)
    yield _check_blocks(run)
    yield _check_boots(run)
    yield _check_kernels(run, builds)
    yield _check_metrics(run)


def _check_plan(run: Run) -> Check:
    record, reported = run.record, run.reported
    problems = ["the report shows another plan than the record"] if reported.plan != record.plan else []
    pairs = [
        ("device type", reported.device_type, record.device_type),
        ("emulated", reported.emulated, record.emulated),
        ("byte-identical", reported.byte_identical, record.byte_identical),
        ("planned blocks", reported.blocks_planned, len(record.blocks)),
        ("looks", reported.looks, record.looks),
    ]
    problems += [f"{name}: report says {one}, record says {other}" for name, one, other in pairs if one != other]
    blocks = words.count(len(record.blocks), "block")
    return from_problems(run.target, "plan", problems, f"{blocks}, seed {record.seed}")


def _check_blocks(run: Run) -> Check:
    """Check that boots are valid exactly if their block finished, and that finished blocks have the planned boots."""
    record = run.record
    finished = {(each.block, each.attempt) for each in record.attempts if each.finished}
    problems = [
        f"boot {boot.id} (block {boot.block + 1}, attempt {boot.attempt + 1}) is{'' if boot.valid else ' not'} valid, "
        f"but its block was {'discarded' if boot.valid else 'finished'}"
        for boot in record.boots
        if boot.valid is not ((boot.block, boot.attempt) in finished)
    ]
    booted: dict[tuple[int, int], list[Arm]] = defaultdict(list)
    for boot in sorted(record.boots, key=lambda boot: boot.position):
        booted[boot.block, boot.attempt].append(boot.arm)
    for block, attempt in sorted(finished):
        planned = record.blocks[block] if 0 <= block < len(record.blocks) else []
        if booted[block, attempt] != planned:
            arms, others = ", ".join(booted[block, attempt]) or "none", ", ".join(planned) or "none"
            problems.append(f"block {block + 1} has the boots {arms}, planned were {others}")
    times = Counter(block for block, _ in finished)
    problems += [f"block {block + 1} finished {number} times" for block, number in times.items() if number > 1]
    discarded = Counter(each.arm for each in record.attempts if not each.finished and each.arm is not None)
    if dict(discarded) != run.reported.discarded:
        problems.append(f"report says discarded {_by_arm(run.reported.discarded)}, records give {_by_arm(discarded)}")
    by_lab = [each.failure for each in record.attempts if not each.finished and each.arm is None and each.failure]
    count = sum(failure.kind is not ErrorKind.CANCELED for failure in by_lab)
    if count != run.reported.discarded_by_lab:
        problems.append(
            f"report says {run.reported.discarded_by_lab} blocks discarded by the lab, records give {count}"
        )
    if run.reported.looked != record.looked:
        problems.append("the report lists other looks than the record")
    stopped = next((look.blocks for look in record.looked if look.stops), None)
    if stopped is not None and len(times) > stopped:
        problems.append(f"a look stopped the run at {stopped} blocks, but {len(times)} are finished")
    text = f"{len(finished)} finished, {sum(not each.finished for each in record.attempts)} discarded"
    return from_problems(run.target, "blocks", problems, text)


def _by_arm(blocks: Mapping[Arm, int]) -> str:
    return ", ".join(f"{blocks[arm]} of {arm}" for arm in Arm if blocks.get(arm)) or "none"


def _check_boots(run: Run) -> Check:
    """Check that every sample belongs to a valid boot of the same block, arm and device."""
    boots = {
        str(boot.id): (boot.block, boot.position, boot.arm.value, boot.device)
        for boot in run.record.boots
        if boot.valid
    }
    samples = run.samples
    problems: list[str] = []
    if samples is not None:
        rows = zip(
            (samples.boot.words[code] for code in samples.boot.codes.tolist()),
            samples.block.tolist(),
            samples.position.tolist(),
            (samples.arm.words[code] for code in samples.arm.codes.tolist()),
            (samples.device.words[code] for code in samples.device.codes.tolist()),
            strict=True,
        )
        for name, *place in sorted(set(rows)):
            if name not in boots:
                problems.append(f"samples of boot {name}, which is not a valid boot")
            elif tuple(place) != boots[name]:
                problems.append(f"samples of boot {name} give {place}, its record {list(boots[name])}")
    return from_problems(run.target, "boots", problems, f"{len(boots)} valid of {len(run.record.boots)}")


def _check_kernels(run: Run, builds: Sequence[BuildView]) -> Check:
    """Check that every valid boot reported the GNU build-id of a build of its arm."""
    problems = []
    if run.record.byte_identical:
        return _check_identical_images(run, builds)
    kernels = {
        arm: {
            known
            for each in builds
            if (each.arm, each.recipe) == (arm, run.record.recipe)
            for known in (each.build_id_gnu, *each.layout_build_ids)
        }
        for arm in Arm
    }
    for boot in run.record.boots:
        known = kernels[boot.arm]
        if boot.valid and boot.build_id_gnu not in known:
            problems.append(
                f"boot {boot.id} ran {boot.build_id_gnu}, the {boot.arm} is {', '.join(sorted(known)) or 'none'}"
            )
    return from_problems(run.target, "kernels", problems, "each boot ran the kernel of its arm")


def _check_identical_images(run: Run, builds: Sequence[BuildView]) -> Check:
    images = {
        (each.arm, artifact.sha256)
        for each in builds
        for artifact in each.artifacts
        if each.recipe == run.record.recipe and artifact.kind is ArtifactKind.KERNEL
    }
    hashes = {arm: {sha256 for owner, sha256 in images if owner is arm} for arm in Arm}
    problems = [] if hashes[Arm.BASELINE] & hashes[Arm.CANDIDATE] else ["the images of the two arms differ"]
    return from_problems(run.target, "kernels", problems, "both arms have the same image")


def _check_metrics(run: Run) -> Check:
    """Check that the samples describe each metric (role, evidence, delta ...) as the plan does."""
    samples, record = run.samples, run.record
    problems: list[str] = []
    if samples is not None:
        expected = {metric.name: facts_of(metric, record.emulated) for metric in record.plan.metrics}
        columns = (
            *(samples.metric, samples.unit, samples.scale, samples.direction, samples.role, samples.evidence),
            *(samples.delta, samples.emulator_delta),
        )
        described = {
            tuple(words)
            for words in zip(
                *([column.words[code] for code in column.codes.tolist()] for column in columns),
                *(
                    [column.words[code] for code in column.codes.tolist()]
                    for column in (samples.plan, samples.device_type)
                ),
                strict=True,
            )
        }
        for metric, unit, scale, direction, role, evidence, *deltas, plan, device_type in sorted(described):
            if (plan, device_type) != (record.plan.name, record.device_type):
                problems.append(f"samples of {plan} on {device_type}")
                continue
            facts = expected.get(metric)
            given = (unit, scale, direction, role, evidence, *(float(each) if each else None for each in deltas))
            planned = facts and (
                *(facts.unit, facts.scale, facts.direction, facts.role, facts.evidence),
                *(facts.delta, facts.emulator_delta),
            )
            if given != planned:
                problems.append(f"{metric} is described as {given}, in the plan as {planned}")
    return from_problems(run.target, "metrics", problems, f"{len(record.plan.metrics)} as in the plan")


def check_findings(bundle: Bundle, run: Run) -> Iterator[Check]:
    """Check that the report lists the recorded findings, and that each is on the console of its boot."""
    if run.reported.findings != run.record.findings:
        yield Check(run.target, "findings", Result.DIFFERS, "the report lists other findings than the records")
    by_boot: dict[tuple[int, int, Arm], list[FindingView]] = defaultdict(list)
    for finding in run.record.findings:
        by_boot[finding.block, finding.attempt, finding.arm].append(finding)
    for place, findings in by_boot.items():
        boots = [boot for boot in run.record.boots if (boot.block, boot.attempt, boot.arm) == place]
        names = [console_name(boot.block, boot.position, boot.arm, boot.attempt) for boot in boots]
        text = "\n".join(_console_text(bundle, run.record.run_id, name) for name in names)
        whole = bool(text) and not any(boot.console_truncated for boot in boots)
        yield from (_check_finding(run, finding, text, whole) for finding in findings)


def _check_finding(run: Run, finding: FindingView, console: str, whole: bool) -> Check:
    """Look for a finding's title on the console. `whole`: the console was stored completely."""
    subject = f"{finding.kind.replace('_', ' ')} in block {finding.block + 1} {finding.arm}"
    if finding.kind in _NOT_ON_CONSOLE:
        return Check(run.target, subject, Result.UNCHECKED, "the lab's observation; no console shows it")
    if finding.title in console:
        return Check(run.target, subject, Result.AGREES, f"on the console: {finding.title}")
    if not whole:
        return Check(run.target, subject, Result.UNCHECKED, "the boot's console is missing or was cut off")
    return Check(run.target, subject, Result.DIFFERS, f"not on the boot's console: {finding.title}")


def _console_text(bundle: Bundle, run_id: int, name: str) -> str:
    path = f"runs/{run_id}/consoles/{name}"
    if path not in bundle.manifest.files:
        return ""
    text = bundle.content(path, MODEL_BYTES).decode("utf-8", errors="replace")
    return _CONTROL.sub("", _ANSI.sub("", text))
