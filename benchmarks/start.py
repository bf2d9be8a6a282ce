"""Measure how long commands of `wqlab` take to start.

    python benchmarks/start.py [ROUNDS]

Each round starts every command once with --help, and once Python with the libraries that each needs (typer, httpx and
pydantic). Prints the median seconds of CPU and wall time, and the ratio of CPU time to the libraries alone. Aim: 0.5 s
on an idle machine. Import times of one command: python -X importtime .venv/bin/wqlab list --help
"""

import os
import statistics
import subprocess
import sys
import time

from wqlab_client.cli.commands import COMMANDS

LIBRARIES = [sys.executable, "-c", "import typer, httpx, pydantic; pydantic.BaseModel, pydantic.TypeAdapter"]
WQLAB = [sys.executable, "-c", "from wqlab_client.cli import main; main()"]


def start(words: list[str]) -> tuple[float, float]:
    """Return the seconds of CPU and of wall time that a process takes."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, wall


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    measured = {"(libraries)": LIBRARIES, "--help": [*WQLAB, "--help"]}
    measured |= {name: [*WQLAB, name, "--help"] for name in COMMANDS}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in measured}
    for _ in range(rounds):
        for name, words in measured.items():
            times[name].append(start(words))
    medians = {name: [statistics.median(each) for each in zip(*of, strict=True)] for name, of in times.items()}
    for name, (cpu, wall) in medians.items():
        print(f"{name:<14} CPU {cpu:5.2f} s, wall {wall:5.2f} s, ratio {cpu / medians['(libraries)'][0]:4.1f}")


if __name__ == "__main__":
    main()
