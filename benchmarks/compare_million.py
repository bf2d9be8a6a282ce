"""Measure the time to compare 1,000,000 samples.

    python benchmarks/compare_million.py [--rows 1000000]

The samples are about a year of a lab: 4 device types, 3 scenarios, 6 settings, 12 metrics, 16 blocks of two boots, one
warm-up and enough repetitions to reach the number of rows. Reads the CSV as `wqlab compare` does and compares kernels
and settings. Aim: under 5 s.
"""

import argparse
import io
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from wqlab_comparison import Samples, compare, read_csv, write_csv

AIM_S = 5.0
DEVICE_TYPES, SCENARIOS, SETTINGS, METRICS, BLOCKS, ARMS = 4, 3, 6, 12, 16, 2


def samples(rows: int) -> Samples:
    boots = DEVICE_TYPES * SCENARIOS * SETTINGS * METRICS * BLOCKS * ARMS
    shape = (DEVICE_TYPES, BLOCKS, ARMS, SCENARIOS, SETTINGS, -(-rows // boots), METRICS)
    device, block, arm, scenario, setting, repetition, metric = (axis.ravel()[:rows] for axis in np.indices(shape))
    rng = np.random.default_rng(2026)
    value = 1000 * np.exp(rng.normal(0, 0.01, len(block)) + 0.01 * arm * (metric == 0))

    def named(stem: str, numbers: np.ndarray) -> list[str]:
        return [f"{stem}{number}" for number in numbers.tolist()]

    return Samples.from_columns(
        device_type=named("type-", device),
        device=named("unit-", device),
        plan="dm-crypt-affinity",
        scenario=named("scenario-", scenario),
        setting=named("scope=", setting),
        block=block,
        position=arm,
        arm=[("baseline", "candidate")[number] for number in arm.tolist()],
        boot=named("", (device * BLOCKS + block) * ARMS + arm),
        repetition=repetition,
        warmup=repetition == 0,
        metric=named("metric-", metric),
        unit="MiB/s",
        scale="ratio",
        direction="higher_is_better",
        role=[("primary", "secondary", "explanatory")[min(number, 2)] for number in metric.tolist()],
        evidence="performance",
        delta=None,
        value=value,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.csv"
        text = io.StringIO()
        write_csv(samples(rows), text)
        path.write_text(text.getvalue())
        size = path.stat().st_size / 2**20
        start, cpu = time.perf_counter(), time.process_time()
        table = read_csv(path)
        read = time.perf_counter()
        found = compare(table, references="scope=0")
        end, cpu = time.perf_counter(), time.process_time() - cpu
    print(f"{len(table):,} samples ({size:.0f} MiB of CSV), {len(found):,} comparisons")
    print(f"read    {read - start:6.2f} s\ncompare {end - read:6.2f} s")
    print(f"total   {end - start:6.2f} s, of it {cpu:.2f} s on a CPU (aim: under {AIM_S:g} s)")
    return 0 if end - start < AIM_S else 1


if __name__ == "__main__":
    sys.exit(main())
