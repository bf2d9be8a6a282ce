"""Measure which counts and shares depend on how QEMU lets the CPUs of a device take turns.

    python benchmarks/emulator_modes.py OUTPUT [PLAN[:SCENARIO,...]...]       # as the lab's user, without a lab

Runs plans with one kernel on an emulated device with four L3 domains of two CPUs: once with all CPUs on one host
thread, as the lab runs them, and once with a host thread for each CPU. The parameters are those of the end-to-end
tests. Whatever differs between the two is no property of the kernel. Writes a row for each mode, boot and cell to
OUTPUT (CSV) when a plan has ended; plans and scenarios that it has are not run again. Prints, for each metric that is
judged on emulated devices, the largest difference of a scenario and setting between the modes, with the standard
deviation of boots in one mode. `emulator_delta` of a metric in plan.yaml is that difference, rounded up.
"""

from __future__ import annotations

import csv
import math
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from scenarios.conftest import NOOP, make_data, running_lab, write_device_type

from wqlab_contracts.api.runs import SampleRow
from wqlab_contracts.enums import MetricClass, Role, Scale
from wqlab_contracts.loading import load_data
from wqlab_contracts.specs import TestPlan

ROOT = Path(__file__).resolve().parents[1]
DEVICE = "eight"
LAYOUT = (2, 2, 2, 1, 2, "contiguous")
BOOTS = 2
UNITS = {"turns": 2, "parallel": 1}
"""Devices of each mode. One whose CPUs take turns needs one core of the host."""
COLUMNS = ("mode", "plan", "scenario", "setting", "metric", "value")
PARALLEL = """#!{python}
from wqlab_bench import cli, qemu

qemu.accelerator_arguments = lambda accelerator: ["-accel", f"tcg,thread=multi,tb-size={{qemu.TRANSLATED_MIB}}"]
cli.main()
"""
"""Replacement of `wqlab-bench` whose devices have a host thread for each CPU."""

Cell = tuple[str, str, str, str]
"""Plan, scenario, setting and metric."""


@dataclass(frozen=True)
class Wanted:
    """Scenarios of a plan; all of its emulated profile if none is named."""

    plan: TestPlan
    scenarios: tuple[str, ...]

    @classmethod
    def parse(cls, plans: Mapping[str, TestPlan], text: str) -> Wanted:
        plan, _, scenarios = text.partition(":")
        return cls(plans[plan], tuple(scenarios.split(",")) if scenarios else ())

    def without(self, cells: Sequence[Cell]) -> Wanted | None:
        """Return what is left of it when some cells were measured; None if nothing is."""
        known = {scenario for plan, scenario, _, _ in cells if plan == self.plan.name}
        left = tuple(scenario for scenario in self.scenarios if scenario not in known)
        return Wanted(self.plan, left) if left or (not self.scenarios and not known) else None

    @property
    def arguments(self) -> list[str]:
        """Arguments that submit a study of the plan's settings or, of a plan that lists one, two equal kernels."""
        target = ["--target", f"{self.plan.name}@{DEVICE}"]
        for scenario in self.scenarios:
            target += ["--scenario", scenario]
        if any(setting != self.plan.reference_setting for setting in self.plan.profile(emulated=True).settings):
            return ["--settings-only", "--blocks", str(BOOTS), *target]
        return ["--mbox", str(NOOP), "--blocks", str(math.ceil(BOOTS / 2)), *target]


class Values:
    """The value of each boot, the median of its repetitions, by mode and cell; kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.of: dict[str, dict[Cell, list[float]]] = {mode: defaultdict(list) for mode in UNITS}
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    cell = row["plan"], row["scenario"], row["setting"], row["metric"]
                    self.of[row["mode"]][cell].append(float(row["value"]))

    def add(self, mode: str, plan: str, rows: Sequence[SampleRow]) -> None:
        boots: dict[tuple[Cell, int], list[float]] = defaultdict(list)
        for row in rows:
            boots[(plan, row.scenario, row.setting, row.metric), row.boot_id].append(row.value)
        for (cell, _), repetitions in boots.items():
            self.of[mode][cell].append(median(repetitions))
        new = self.path.with_suffix(".new")
        with new.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for each, cells in self.of.items():
                writer.writerows((each, *cell, value) for cell, boots in cells.items() for value in boots)
        new.replace(self.path)


def is_judged(metric_class: MetricClass, role: Role) -> bool:
    return metric_class is MetricClass.MECHANISM and role is not Role.EXPLANATORY


def run(wanted: Sequence[Wanted], mode: str, values: Values) -> None:
    """Run plans in one mode, and add their values as each ends."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wqlab-modes-", dir="/tmp") as folder:
        settings = {}
        if mode == "parallel":
            program = Path(folder) / "bin/wqlab-bench"
            program.parent.mkdir()
            program.write_text(PARALLEL.format(python=sys.executable))
            program.chmod(0o755)
            settings["PATH"] = f"{program.parent}:{os.environ['PATH']}"
        state = Path(folder) / "lab"
        state.mkdir()
        data = make_data(state)
        write_device_type(data, DEVICE, LAYOUT, units=UNITS[mode])
        with running_lab(state, data, settings) as lab:
            submitted = [(each.plan.name, lab.submit(*each.arguments)) for each in wanted]
            for plan, number in submitted:
                report = lab.finish(number, codes=(0, 1, 3, 4))
                runs = {target["run_id"] for target in report["targets"] if target["run_id"] is not None}
                rows = [row for run_id in runs for row in lab.client().samples(run_id) if not row.warmup]
                values.add(mode, plan, rows)
                print(f"{time.monotonic() - started:4.0f} s: {mode}: {plan}: {len(rows)} samples", flush=True)


def difference(scale: Scale, one: Sequence[float], other: Sequence[float]) -> float:
    """Return how far the means of two modes are apart: percent for `ratio`, else the metric's unit."""
    a, b = mean(one), mean(other)
    if scale is Scale.DIFFERENCE:
        return abs(b - a)
    return 100 * abs(math.expm1(math.log(b / a))) if a > 0 and b > 0 else math.nan


def main() -> None:
    output, *names = sys.argv[1:]
    known = load_data(ROOT).plans
    judged = [
        name
        for name, plan in known.items()
        if any(is_judged(metric.metric_class, metric.role_emulated) for metric in plan.metrics)
    ]
    wanted = [Wanted.parse(known, name) for name in names or judged]
    values = Values(Path(output))
    for mode in UNITS:
        left = [part for each in wanted if (part := each.without(list(values.of[mode])))]
        if left:
            run(left, mode, values)
    print_differences(list({each.plan.name: each.plan for each in wanted}.values()), values)


def print_differences(plans: Sequence[TestPlan], values: Values) -> None:
    """Print the largest difference of each metric that is judged on emulated devices."""
    turns, parallel = values.of["turns"], values.of["parallel"]
    for plan in plans:
        for metric in plan.metrics:
            cells = [cell for cell in turns if cell[0] == plan.name and cell[3] == metric.name and cell in parallel]
            if not cells or not is_judged(metric.metric_class, metric.role_emulated):
                continue
            differences = {cell: difference(metric.scale, turns[cell], parallel[cell]) for cell in cells}
            worst = max(cells, key=lambda cell: differences[cell])
            spread = max(
                (stdev(of[cell]) for of in (turns, parallel) for cell in cells if len(of[cell]) > 1), default=0.0
            )
            print(
                f"{plan.name} {metric.name}: {differences[worst]:.2f} in {worst[1]} {worst[2]}"
                f" ({mean(turns[worst]):.4g} and {mean(parallel[worst]):.4g}), sd of boots up to {spread:.3g}, "
                f"threshold {metric.delta}",
                flush=True,
            )


if __name__ == "__main__":
    main()
