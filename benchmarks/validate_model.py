"""Compare effects on modelled devices with the published ones of published.yaml: their signs, sizes and intervals.

    python benchmarks/validate_model.py FOLDER [--seeds N] [--layouts N] [--report] [DEVICE_TYPE...]

Run it as the lab's user. It needs no lab, but the emulator of `make model`. Builds Linux 7.3, and the same with wakeups
of workers inside the pool's lock, each in several layouts, and boots both with each seed on the modelled device of each
table. Samples of finished blocks are kept in FOLDER, by a hash of all that they depend on, so that a run which was
stopped goes on. `--report` boots nothing. Prints Markdown. Ends with 1 if testplans/validation.yaml
says anything else.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import yaml

from wqlab_bench import rootfs
from wqlab_bench.instrument import build_plugin
from wqlab_bench.model import build_qemu
from wqlab_comparison import Samples, compare, read_csv, words
from wqlab_comparison.csvfile import COLUMNS
from wqlab_comparison.published import Outcome, counts, judge, score
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import Arm, ArtifactKind, Question, RunPurpose
from wqlab_contracts.enums import Outcome as RunOutcome
from wqlab_contracts.loading import DataFolder, load_data
from wqlab_contracts.messages import ApplyJob, BlockFinished, BlockPlan, BootKey, BuildResult, Kernel, RunEvent, RunJob
from wqlab_contracts.messages import Samples as SamplesEvent
from wqlab_contracts.messages.submission import MboxSeries, Series
from wqlab_contracts.specs import DeviceType, Name, TestPlan
from wqlab_contracts.specs.base import Strict
from wqlab_contracts.specs.cost_profile import cost_profile_hash
from wqlab_contracts.specs.validation import Validation
from wqlab_contracts.validation_file import read_validations
from wqlab_server.lab.service import device_facts
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.instrumented import InstrumentedBackend
from wqlab_worker.build.modules import files_for_device
from wqlab_worker.build.prepare import ProgressLine, kernel_job, prepare_kernel
from wqlab_worker.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
PLAN, TREE, RECIPE, LAYOUTS = "queue-rate", "linux-7.3", "measure", 4
SERIES = ROOT / "kernels/examples/wake-inside-lock.mbox"
ARMS = {"inside": Arm.BASELINE, "outside": Arm.CANDIDATE}
"""Kernels of the tables. The publications' *before* is the series here, because 7.3 is what they call *after*."""
SEEDS = 6
"""Fewest with which a comparison has an interval."""


class Table(Strict):
    """One published table, and where the model runs it."""

    name: str
    question: Literal["kernel", "setting"]
    source: str
    machine: str
    scale: str
    device_type: Name
    scenario: Name
    kernel: Literal["inside", "outside"] | None = None
    relative_to: str = ""
    control: dict[str, float]
    """Metric -> largest published change where nothing should change."""
    weakness: str
    cells: dict[str, dict[str, float]]
    """Metric -> scope -> published change in percent."""

    @property
    def arms(self) -> set[Arm]:
        return set(ARMS.values()) if self.kernel is None else {ARMS[self.kernel]}

    @property
    def scopes(self) -> set[str]:
        return {
            *(scope for cells in self.cells.values() for scope in cells),
            *([self.relative_to] if self.kernel else []),
        }


@dataclass(frozen=True)
class Machine:
    """What is booted on one device type: all that its tables need."""

    device_type: DeviceType
    tables: Sequence[Table]

    def job(self, data: DataFolder, kernels: Mapping[Arm, list[Kernel]], seeds: int) -> RunJob:
        scenarios = sorted({table.scenario for table in self.tables})
        plan = data.plans[PLAN].on(self.device_type).with_scenarios(scenarios)
        scopes = {scope for table in self.tables for scope in table.scopes}
        settings = [setting for setting in plan.emulated.settings if setting.removeprefix("scope=") in scopes]
        arms = sorted({arm for table in self.tables for arm in table.arms})
        return RunJob(
            run_id=1,
            purpose=RunPurpose.MEASURE,
            device=device_facts(data, self.device_type, self.device_type.units[0]),
            plan=plan,
            profile=plan.emulated.model_copy(update={"settings": settings, "blocks": seeds}),
            files=data.plan_files(PLAN),
            kernels={arm: kernels[arm][0] for arm in arms},
            layouts={arm: kernels[arm] for arm in arms},
            blocks=[BlockPlan(block=block, arms=arms[:: -1 if block % 2 else 1]) for block in range(seeds)],
            seed=1,
        )


@dataclass
class Kept:
    """`EventSink` that appends the samples of each finished block to a file."""

    file: Path
    plan: TestPlan
    device_type: str
    pending: list[SamplesEvent] = field(default_factory=list)

    @cached_property
    def metrics(self) -> dict[str, tuple[str, ...]]:
        return {
            each.name: (
                each.name, each.unit, each.scale.value, each.direction.value, each.role(True).value,
                each.evidence(True).value, "" if each.delta is None else repr(each.delta), "",
            )
            for each in self.plan.metrics
        }  # fmt: skip

    def blocks(self) -> set[int]:
        return set(read_csv(self.file).block.tolist()) if self.file.exists() else set()

    def event(self, event: RunEvent) -> None:
        if isinstance(event, SamplesEvent):
            self.pending.append(event)
        elif isinstance(event, BlockFinished):
            done = [
                each for each in self.pending if each.boot.block == event.block and each.boot.attempt == event.attempt
            ]
            self.pending = [each for each in self.pending if each.boot.block != event.block]
            self._append(done)
            print(f"{self.device_type}: block {event.block} finished", file=sys.stderr, flush=True)

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        return

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        return

    def _append(self, events: Sequence[SamplesEvent]) -> None:
        new = not self.file.exists()
        with self.file.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(COLUMNS)
            writer.writerows(
                (
                    *(self.device_type, f"{self.device_type}-1", PLAN, sample.scenario, sample.setting),
                    *(event.boot.block, event.boot.position, event.boot.arm.value),
                    *(f"{event.boot.block}-{event.boot.arm.value}", sample.repetition, int(sample.warmup)),
                    *(*self.metrics[sample.metric], repr(sample.value)),
                )
                for event in events
                for sample in event.samples
                if sample.metric in self.metrics
            )


# --- boots --------------------------------------------------------------------------------------------------------


def build_kernels(data: DataFolder, workspace: Workspace, layouts: int) -> dict[Arm, list[Kernel]]:
    """Build both kernels, each in all layouts. Raises JobError, and SystemExit if the series is refused."""
    progress = ProgressLine(sys.stderr)
    series = Series(mbox=MboxSeries(text=SERIES.read_text()))
    applied = apply(ApplyJob(submission_id=0, tree=data.trees[TREE], series=series), workspace, progress)
    if applied.failure is not None or applied.baseline is None or applied.candidate is None:
        raise SystemExit(f"{SERIES.name}: {applied.failure}")
    sources = {Arm.CANDIDATE: applied.baseline, Arm.BASELINE: applied.candidate}
    kernels = {}
    for arm, source in sources.items():
        # A build of one layout keeps its objects, of which the others are linked.
        for number in dict.fromkeys((1, layouts)) if arm is Arm.CANDIDATE else (layouts,):
            built = prepare_kernel(kernel_job(data, source, RECIPE, "x86_64", True, number), workspace, progress)
        kernels[arm] = list(_layouts(built, data.plans[PLAN].modules))
    progress.close()
    return kernels


def _layouts(built: BuildResult, modules: Sequence[str]) -> list[Kernel]:
    artifacts = {each.name: each for each in built.artifacts}
    first = Kernel(
        recipe=RECIPE,
        build_id_gnu=built.build_id_gnu,
        release=built.release,
        image=artifacts["kernel"],
        vmlinux=artifacts["vmlinux"],
        modules={name: artifacts[f"{name}.ko"] for name in modules},
    )
    found = [first]
    for layout in built.layouts:
        linked = {each.kind: each for each in layout.artifacts}
        image, vmlinux = linked[ArtifactKind.KERNEL], linked[ArtifactKind.VMLINUX]
        found.append(first.model_copy(update={"build_id_gnu": layout.build_id_gnu, "image": image, "vmlinux": vmlinux}))
    return found


def boot_missing(machine: Machine, job: RunJob, folder: Path, workspace: Workspace, *, report: bool) -> Path:
    """Boot the blocks of which no samples are kept, unless `report`. Return the file of the samples."""
    program = build_qemu.find_program(workspace.cache, job.device.arch)
    plugin = build_plugin.plugin(workspace.cache, job.device.arch, program)
    # A boot does not depend on how many there are, so more seeds can be added to those of an earlier run.
    depends = job.model_dump(mode="json", exclude={"blocks": True, "profile": {"blocks"}}) | {
        "emulator": [program.parent.name, build_plugin.sha256(plugin)]
    }
    digest = hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:12]
    kept = Kept(folder / f"{machine.device_type.name}-{digest}.csv", job.plan, machine.device_type.name)
    done = kept.blocks()
    remaining = [plan for plan in job.blocks if plan.block not in done]
    if report or not remaining:
        return kept.file
    backend = InstrumentedBackend(
        cache=workspace.cache,
        scratch=folder / "scratch",
        rootfs=lambda: rootfs.build(workspace.cache),
        fetch=workspace.path_of,
        files_of=lambda of_run, kernel: files_for_device(of_run.plan.modules, kernel, workspace.path_of),
    )
    started = time.monotonic()
    result = backend.execute(job, remaining, kept, Stop())
    seconds = time.monotonic() - started
    print(f"{machine.device_type.name}: {len(remaining)} blocks in {seconds:.0f} s", file=sys.stderr, flush=True)
    if result.outcome is not RunOutcome.PASSED:
        print(f"{machine.device_type.name}: {result.failure}", file=sys.stderr, flush=True)
    return kept.file


# --- judgement ----------------------------------------------------------------------------------------------------


def find(found: Sequence[Comparison], table: Table, metric: str, scope: str) -> Comparison | None:
    """Return the comparison of a cell; None if it was not measured."""
    for each in found:
        of_cell = (each.device_type, each.scenario, each.setting, each.metric)
        if of_cell != (table.device_type, table.scenario, f"scope={scope}", metric) or each.effect is None:
            continue
        if table.kernel is None and each.question is Question.KERNEL:
            return each
        if table.kernel is not None and each.question is Question.SETTING and each.kernel in {None, ARMS[table.kernel]}:
            return each
    return None


class Row(NamedTuple):
    """The result of a cell, and the row that the printed table has for it."""

    metric: str
    outcome: Outcome
    counts: bool
    text: str


def rows_of(table: Table, found: Sequence[Comparison]) -> list[Row]:
    rows = []
    for metric, cells in table.cells.items():
        for scope, published in cells.items():
            comparison = find(found, table, metric, scope)
            effect = comparison.effect if comparison else None
            control = table.control[metric]
            outcome = judge(published, control, effect, comparison.ci95 if comparison else None)
            figure = f"{words.signed(effect)} {words.ci(comparison)}" if comparison and effect is not None else ""
            what = f"{scope} : {table.relative_to}" if table.kernel else scope
            cell = f"| {table.name} | {metric} | {what} | {words.signed(published)} | {figure} | {outcome} |"
            rows.append(Row(metric, outcome, counts(published, control), cell))
    return rows


def print_report(machines: Sequence[Machine], found: Sequence[Comparison], data: DataFolder) -> int:
    """Print all cells and scores. Return 1 if testplans/validation.yaml claims more than was found, or other cells."""
    outcomes: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    print("| table | metric | scope | published, % | modelled, % (95 % interval) | |\n|---|---|---|---|---|---|")
    for machine in machines:
        costs = data.costs_of(machine.device_type)
        assert costs is not None
        for table in machine.tables:
            for row in rows_of(table, found):
                print(row.text)
                of_metric = outcomes[costs.name, cost_profile_hash(costs), row.metric]
                of_metric += [row.outcome] if row.counts else []
    print("\n| table | published on; modelled at | weakness of the table |\n|---|---|---|")
    for table in (table for machine in machines for table in machine.tables):
        print(f"| {table.name} | {table.machine}; {table.scale} | {table.weakness} |")
    print("\n| profile | metric | signs right | sizes within a factor of two | aim |\n|---|---|---|---|---|")
    status = 0
    for (profile, sha256, metric), each in outcomes.items():
        found_here = score(each)
        print(
            f"| {profile} | {metric} | {found_here.signs} of {found_here.of} | {found_here.sizes} of {found_here.of} |"
            f" {'holds' if found_here.holds else 'missed'} |"
        )
        stated = _stated(sha256, metric)
        cells = (found_here.signs, found_here.of)
        # More can be withheld than the aim asks for, and what has no row is withheld.
        if stated is not None and (
            (stated.cells.right, stated.cells.of) != cells or (stated.validated and not found_here.holds)
        ):
            print(f"testplans/validation.yaml has {stated} for {profile} {metric}", file=sys.stderr)
            status = 1
    return status


def _stated(sha256: str, metric: str) -> Validation | None:
    rows = [each for each in read_validations(ROOT)[0] if (each.sha256, each.plan) == (sha256, PLAN)]
    return next((each for each in rows if metric in (each.metrics or [metric])), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--layouts", type=int, default=LAYOUTS, help="links of each kernel, of which the seeds take turns"
    )
    parser.add_argument("--report", action="store_true", help="boot nothing; print what is there")
    parser.add_argument("device_types", nargs="*", metavar="DEVICE_TYPE", help="default: those of all tables")
    arguments = parser.parse_intermixed_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("WQLAB_CACHE", str(Path.home() / ".cache/wqlab"))
    data = load_data(ROOT)
    tables = [
        Table(**each) for each in yaml.safe_load((Path(__file__).parent / "published.yaml").read_text())["tables"]
    ]
    names = list(dict.fromkeys(table.device_type for table in tables))
    machines = [
        Machine(data.device_type(name), [table for table in tables if table.device_type == name])
        for name in names
        if name in (arguments.device_types or names)
    ]
    with Workspace.from_environment().session() as workspace:
        kernels = build_kernels(data, workspace, arguments.layouts)
        files = [
            boot_missing(
                each, each.job(data, kernels, arguments.seeds), arguments.folder, workspace, report=arguments.report
            )
            for each in machines
        ]
    samples = [read_csv(file) for file in files if file.exists()]
    found = compare(Samples.concatenate(samples), references="scope=cache") if samples else []
    return print_report(machines, found, data)


if __name__ == "__main__":
    sys.exit(main())
