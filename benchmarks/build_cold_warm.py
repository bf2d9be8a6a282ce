"""Measure kernel build times: cold; with a series, from the base's objects; and with it, by the compiler cache alone.

The last two must give the same kernel.

    python benchmarks/build_cold_warm.py [--tree linux-6.12] [--series kernels/examples/flush-lock-runs.mbox]

Uses a separate cache folder without the lab's builds; preparing the tree's mirror and files is not counted. The aim:
cold at most 540 s on two idle cores, the patched build at most a quarter of it. Prints JSON; needs about 4 GiB and an
otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import ApplyJob, BuildResult, MboxSeries, Series
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.build.build_kernel import build
from wqlab_worker.build.kept_builds import build_folder
from wqlab_worker.build.prepare import ProgressLine, kernel_job, prepare_tree
from wqlab_worker.workspace import Workspace, remove_tree

REPOSITORY = Path(__file__).parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", help="default: the default tree")
    parser.add_argument("--series", type=Path, default=REPOSITORY / "kernels/examples/flush-lock-runs.mbox")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    chosen = parser.parse_args()
    data = load_data(REPOSITORY)
    progress = ProgressLine(sys.stderr)
    with tempfile.TemporaryDirectory(prefix="wqlab-benchmark-", dir=os.environ.get("WQLAB_CACHE")) as folder:
        workspace = replace(Workspace(Path(folder)), jobs=chosen.jobs)
        source = prepare_tree(data, chosen.tree or data.default_tree, workspace, progress)
        with checked_out(source, workspace, progress):
            pass
        cold_job = kernel_job(data, source, "measure", "x86_64", True)
        cold = passed(build(cold_job, workspace, progress))
        series = Series(mbox=MboxSeries(text=chosen.series.read_text()))
        applied = apply(ApplyJob(submission_id=0, tree=source.tree, series=series), workspace, progress)
        if applied.candidate is None:
            sys.exit(f"the series does not apply: {applied.failure}")
        candidate = kernel_job(data, applied.candidate, "measure", "x86_64", True)
        patched_job = candidate.model_copy(update={"trusted": False})
        patched = passed(build(patched_job, workspace, progress))
        remove_tree(build_folder(workspace, patched_job.key))
        remove_tree(workspace.objects)
        from_nothing = passed(build(patched_job, workspace, progress))
    progress.close()
    print(
        json.dumps(
            {
                "jobs": chosen.jobs,
                "load_average": os.getloadavg(),
                "cold_s": cold.duration_s,
                "cold_ccache": cold.ccache,
                "patched_s": patched.duration_s,
                "patched_ccache": patched.ccache,
                "from_nothing_s": from_nothing.duration_s,
                "from_nothing_ccache": from_nothing.ccache,
                "same_kernel": same_kernel(patched, from_nothing),
                "ratio": round(patched.duration_s / cold.duration_s, 3),
            },
            indent=1,
        )
    )
    return 0 if patched.duration_s * 4 <= cold.duration_s and same_kernel(patched, from_nothing) else 1


def same_kernel(one: BuildResult, other: BuildResult) -> bool:
    """Return True if image, vmlinux with its debug information, and modules are equal byte for byte."""
    kinds = {ArtifactKind.KERNEL, ArtifactKind.VMLINUX, ArtifactKind.MODULE}
    hashes = ({(a.kind, a.name, a.sha256) for a in result.artifacts if a.kind in kinds} for result in (one, other))
    return next(hashes) == next(hashes)


def passed(result: BuildResult) -> BuildResult:
    if result.outcome is not Outcome.PASSED:
        sys.exit(f"the build failed: {result.failure}")
    return result


if __name__ == "__main__":
    sys.exit(main())
