"""Measure what docs/trust.md says: false claims between equal kernels, power, and boots that looks save.

    python benchmarks/trust.py simulated [--sets 400]
    python benchmarks/trust.py equal FILE.csv... [--blocks 6]
    python benchmarks/trust.py looks FILE.csv... --reference SETTING

`simulated` draws runs of equal kernels, and runs with an effect, at the floors that were measured on each class of
devices, and judges them with the shipped code. `equal` takes exported samples of one kernel: consecutive boots of an
arm and setting become the two arms of an A/A comparison of real boots. `looks` cuts a settings study into runs of 16
blocks, in the order in which they were measured, and replays each with looks. All print Markdown.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "comparison/tests"))

from noise_shapes import SHAPES
from sequential_runs import rates, run

from wqlab_comparison import significance
from wqlab_comparison.boots import MetricFacts, boot_table, setting_pairs
from wqlab_comparison.canaries import Canary, false_positives, floor, wilson
from wqlab_comparison.csvfile import read_csv
from wqlab_comparison.looks import LOOKS
from wqlab_comparison.samples import Samples
from wqlab_contracts.enums import Arm, Direction, Evidence, Role, Scale

FLOORS = {
    "hardware (assumed: none was at hand)": (0.3, 0.6, 1.5),
    "instrumented": (0.29, 0.92, 4.9),
    "emulated, shares in points": (8.2,),
}
"""Class of devices -> standard deviations between boots."""
BLOCKS = (6, 8, 10, 16)
EFFECTS = (0.5, 1.0, 2.0, 3.0)
"""Effects in units of the floor."""
_SHAPES = ("normal", "t3", "outliers")


def simulated(sets: int) -> None:
    print("| class of devices | floor | A/A comparisons | false claims | 95 % interval |\n|---|---|---|---|---|")
    hits = total = 0
    for number, (name, floors) in enumerate(FLOORS.items()):
        for place, deviation in enumerate(floors):
            called = 0
            for shape in _SHAPES:
                canaries = list(
                    _drawn(np.random.default_rng([number, place, len(shape)]), shape, sets // 3 + 1, deviation)
                )
                called += false_positives(canaries).called
            count = len(_SHAPES) * (sets // 3 + 1)
            hits, total = hits + called, total + count
            _rate_row(f"{name} | {deviation:g}", called, count)
    _rate_row("all |", hits, total)
    print(f"\n| noise | effect in floors | {' | '.join(f'{n} blocks' for n in BLOCKS)} |")
    print("|---|---|" + "---|" * len(BLOCKS))
    for shape in _SHAPES:
        for effect in EFFECTS:
            rng = np.random.default_rng(1)
            cells = []
            for blocks in BLOCKS:
                boots = _scaled(shape, rng, sets, blocks)
                d = boots[..., 1] - boots[..., 0] + effect
                cells.append(
                    f"{100 * np.mean([significance.sign_flip(each) <= significance.ALPHA for each in d]):.0f} %"
                )
            print(f"| {shape} | {effect:g} | {' | '.join(cells)} |")
    print("\n| floor 0.67 % | mean blocks of 16 with looks 6, 10, 16 | boots saved | claims |\n|---|---|---|---|")
    for effect in (0.0, 0.5, 1.0, 3.0):
        boots = SHAPES["normal"](np.random.default_rng(2), sets, LOOKS[-1])
        d = boots[..., 1] - boots[..., 0] + effect
        claimed, _, mean, _ = rates(iter(d[:, None, :]))
        saved = 100 * (1 - mean / LOOKS[-1])
        print(f"| effect {effect:g} % | {mean:.1f} | {saved:.0f} % | {100 * claimed:.1f} % |")


def _scaled(shape: str, rng: np.random.Generator, sets: int, blocks: int) -> np.ndarray:
    """Return boots whose robust standard deviation is 1, shape (sets, blocks, 2)."""
    many = SHAPES[shape](np.random.default_rng(0), 2000, 6)
    size = np.median(np.abs(many[..., 1] - many[..., 0])) / 0.6745 / np.sqrt(2)
    boots: np.ndarray = SHAPES[shape](rng, sets, blocks) / size
    return boots


def _drawn(rng: np.random.Generator, shape: str, sets: int, deviation: float) -> Iterator[Canary]:
    """Yield A/A comparisons with the least number of blocks for a verdict."""
    facts = MetricFacts("%", Scale.DIFFERENCE, Direction.LOWER_IS_BETTER, Role.PRIMARY, Evidence.PERFORMANCE, None)
    for number, boots in enumerate(deviation * _scaled(shape, rng, sets, BLOCKS[0]) + 50):
        yield Canary(number, "share", facts, boots[:, 0].tolist(), boots[:, 1].tolist())


def _rate_row(name: str, called: int, count: int) -> None:
    low, high = wilson(called, count)
    print(f"| {name} | {count} | {called} ({100 * called / count:.1f} %) | {100 * low:.1f} to {100 * high:.1f} % |")


def equal(samples: list[Samples], blocks: int) -> None:
    by_metric: dict[str, list[Canary]] = defaultdict(list)
    groups = boots = 0
    for file, each in enumerate(samples):
        table = boot_table(each)
        of_file = 0
        for cell, values in table.cells.items():
            facts = table.facts(cell)
            if facts.role is Role.EXPLANATORY or facts.evidence is Evidence.NONE:
                continue
            for arm in Arm:
                ordered = [
                    value for boot, value in sorted(values.items(), key=lambda item: item[0].block) if boot.arm is arm
                ]
                pairs = list(zip(ordered[::2], ordered[1::2], strict=False))
                parts = [pairs[at : at + blocks] for at in range(0, len(pairs) - blocks + 1, blocks)]
                of_file = max(of_file, len(parts))
                for number, part in enumerate(parts):
                    by_metric[f"{cell.plan} {cell.metric}"].append(
                        Canary(
                            (file, arm, number),
                            cell.metric,
                            facts,
                            [a for a, _ in part],
                            [b for _, b in part],
                            cell.scenario,
                        )
                    )
        groups += of_file
        boots += 2 * blocks * of_file
    noun = "group" if groups == 1 else "groups"
    print(f"{groups} independent {noun} of {blocks} pairs of boots, {boots} boots\n")
    print("| plan and metric | comparisons | constant, listed apart | called different | 95 % interval | floor |")
    print("|---|---|---|---|---|---|")
    for name, canaries in [*sorted(by_metric.items()), ("all", [each for of in by_metric.values() for each in of])]:
        found = false_positives(canaries)
        low, high = found.interval or (0.0, 0.0)
        size = floor(canaries) if name != "all" else None
        interval = f"{100 * low:.1f} to {100 * high:.1f} %" if found.interval else ""
        deviation = f"{size.deviation:.3g}" if size else ""
        print(f"| {name} | {found.comparisons} | {found.constant} | {found.called} | {interval} | {deviation} |")


def looks(samples: list[Samples], reference: str) -> None:
    print("| plan, scenario, metric | setting | runs | effects | ended after | saved |\n|---|---|---|---|---|---|")
    most, used, planned = LOOKS[-1], 0, 0
    rows: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for each in samples:
        table = boot_table(each)
        for cell, values in table.cells.items():
            facts = table.facts(cell)
            base = table.cells.get(cell._replace(setting=reference))
            if cell.setting == reference or base is None or facts.role is not Role.PRIMARY:
                continue
            pairs = setting_pairs(base, values, Arm.BASELINE)
            for at in range(0, len(pairs.reference) - most + 1, most):
                a, b = (np.array(side[at : at + most]) for side in (pairs.reference, pairs.candidate))
                d = 100 * np.log(b / a) if facts.scale is Scale.RATIO else b - a
                row = (f"{cell.plan}, {cell.scenario}, {cell.metric}", cell.setting)
                rows[row].append((float(np.mean(d)), run(d[None, :]).blocks))
    for (name, setting), runs in rows.items():
        effects, stopped = zip(*runs, strict=True)
        used, planned = used + sum(stopped), planned + most * len(runs)
        counts = ", ".join(f"{stopped.count(number)} at {number}" for number in sorted(set(stopped)))
        print(
            f"| {name} | {setting} | {len(runs)} | {min(effects):.3g} to {max(effects):.3g} | {counts} "
            f"| {100 * (1 - sum(stopped) / (most * len(runs))):.0f} % |"
        )
    if planned:
        print(f"| all | | | | {used} of {planned} | {100 * (1 - used / planned):.0f} % |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("simulated").add_argument("--sets", type=int, default=400)
    for name in ("equal", "looks"):
        added = commands.add_parser(name)
        added.add_argument("files", type=Path, nargs="+")
        if name == "equal":
            added.add_argument("--blocks", type=int, default=6)
        else:
            added.add_argument("--reference", required=True)
    given = parser.parse_args()
    if given.command == "simulated":
        simulated(given.sets)
        return
    samples = [read_csv(path) for path in given.files]
    if given.command == "equal":
        equal(samples, given.blocks)
    else:
        looks(samples, given.reference)


if __name__ == "__main__":
    main()
