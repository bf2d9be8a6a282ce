"""Compare the same four boots (A, B, B, A) of one device by labgrid and by LAVA.

    python benchmarks/backends.py [ROUNDS]       # beside a running lab (`make up`), as the lab's user

Both boot the lab's golden kernel under QEMU of this machine with the same CPUs, memory and accelerator, kexec the same
image and run xfs-fsync with the same parameters. Rounds alternate (LAVA, labgrid, labgrid, LAVA), so that other load of
the machine affects both. Prints seconds, and the ratio of LAVA to labgrid.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median

import httpx

from wqlab_contracts.enums import Arm, ArtifactKind, Outcome, RunPurpose
from wqlab_contracts.loading import DataFolder, load_data
from wqlab_contracts.messages import (
    Artifact,
    BlockPlan,
    BootFinished,
    BootKey,
    BootVerified,
    BuildResult,
    DeviceFacts,
    Kernel,
    LavaBoot,
    RunEvent,
    RunJob,
)
from wqlab_contracts.specs import Backend as BackendName
from wqlab_lab.lava import TrialLava
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.interface import Backend
from wqlab_worker.backends.labgrid import LabgridBackend
from wqlab_worker.backends.lava import LavaBackend
from wqlab_worker.claims.runs import golden_images
from wqlab_worker.claims.server import sha256_of

ROOT = Path(__file__).resolve().parents[1]
BOOTS = [Arm.BASELINE, Arm.CANDIDATE, Arm.CANDIDATE, Arm.BASELINE]
LIMIT_S = 1800.0


@dataclass
class TimedEvents:
    """`EventSink` that records times."""

    began: float = field(default_factory=time.monotonic)
    first_console_s: float | None = None
    verified: list[BootVerified] = field(default_factory=list)
    finished: list[BootFinished] = field(default_factory=list)
    job_url: str = ""

    def event(self, event: RunEvent) -> None:
        if isinstance(event, BootVerified):
            self.verified.append(event)
            self.job_url = event.environment.get("LAVA job", "")
        if isinstance(event, BootFinished):
            self.finished.append(event)

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        if self.first_console_s is None:
            self.first_console_s = time.monotonic() - self.began

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        return


def job_of(data: DataFolder, kernel: Path, device: str, backend: BackendName, run: int) -> RunJob:
    built = BuildResult.model_validate_json((kernel.parent / "result.json").read_text())
    kind, plan = data.device_types["tiny"], data.plans["xfs-fsync"]
    image = Artifact(sha256=sha256_of(kernel), size=kernel.stat().st_size, kind=ArtifactKind.KERNEL, name="kernel")
    variant = Kernel(recipe="measure", build_id_gnu=built.build_id_gnu, release=built.release, image=image)
    lava = kind.lava
    assert lava is not None
    return RunJob(
        run_id=run,
        purpose=RunPurpose.MEASURE,
        device=DeviceFacts(
            name=device,
            device_type=kind.name,
            # A separate lab: the running one releases devices that sessions hold without a lease.
            lab="benchmark",
            arch=kind.arch,
            topology=kind.topology,
            boot=kind.boot.model_copy(update={"kernel_arguments": kind.kernel_arguments}),
            emulated=True,
            backend=backend,
            lava=LavaBoot(mapping=lava, template=data.lava_templates[lava.boot]) if backend == "lava" else None,
        ),
        plan=plan,
        # Small enough for the memory of both devices: LAVA's device holds its overlay twice.
        profile=plan.emulated.model_copy(update={"parameters": {**plan.emulated.parameters, "jobs": 8, "mounts": 2}}),
        files=data.plan_files(plan.name),
        kernels=dict.fromkeys(BOOTS, variant),
        blocks=[BlockPlan(block=0, arms=BOOTS)],
        seed=1,
    )


def measure(backend: Backend, job: RunJob, held_s: Callable[[TimedEvents, float], float]) -> dict[str, float]:
    stop, story = Stop(), TimedEvents()
    stop.extend(time.monotonic() + LIMIT_S)
    result = backend.execute(job, job.blocks, story, stop)
    if result.outcome is not Outcome.PASSED or story.first_console_s is None:
        raise SystemExit(f"{job.device.name}: {result.failure}")
    return {
        "device held": held_s(story, time.monotonic() - story.began),
        "submit to first console line": story.first_console_s,
        "golden system, a boot": median(boot.golden_s for boot in story.verified),
        "kexec to variant, a boot": median(boot.kexec_s for boot in story.verified),
        "workload, a boot": median(boot.workload_s for boot in story.finished),
        "overhead, a boot": median(boot.overhead_s for boot in story.finished),
    }


def held_by_lava(lava: TrialLava) -> Callable[[TimedEvents, float], float]:
    def seconds(story: TimedEvents, _wall: float) -> float:
        number = story.job_url.rpartition("/")[2]
        headers = {"Authorization": f"Token {lava.token}"}
        job = httpx.get(f"{lava.url}/api/v0.2/jobs/{number}/", headers=headers).json()
        return (datetime.fromisoformat(job["end_time"]) - datetime.fromisoformat(job["start_time"])).total_seconds()

    return seconds


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    state, cache = Path(os.environ["WQLAB_STATE"]), Path(os.environ["WQLAB_CACHE"])
    if not (state / "bench/bench.json").exists():
        print("no lab is running; start one with `make up`", file=sys.stderr)
        return 2
    data, images = load_data(ROOT), golden_images(state, "x86_64")
    kernel = images["kernel"]
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    os.environ["WQLAB_LAVA_OWN_QEMU"] = "1"
    with tempfile.TemporaryDirectory(prefix="wqlab-backends-", dir=cache) as folder:
        lava = TrialLava(Path(folder) / "lava", ["bench-1"])
        try:
            lava.start()
            lava.wait()
            for number, name in enumerate(["lava", "labgrid", "labgrid", "lava"] * rounds, start=1):
                backend: Backend
                if name == "lava":
                    backend = LavaBackend(
                        url=lava.url, token=lava.token, listen="127.0.0.1", host="127.0.0.1", fence=number,
                        scratch=Path(folder), fetch=lambda artifact: kernel, files_of=lambda job, kernel: {},
                        golden=lambda: images,
                    )  # fmt: skip
                    job = job_of(data, kernel, "bench-1", "lava", 900_000 + number)
                    found = measure(backend, job, held_by_lava(lava))
                else:
                    backend = LabgridBackend(
                        coordinator=f"127.0.0.1:{(state / 'run/coordinator.port').read_text()}", state=state,
                        ssh_key=state / "keys/lab_ed25519", logs=Path(folder) / "sessions", fence=number,
                        fetch=lambda artifact: kernel,
                    )  # fmt: skip
                    job = job_of(data, kernel, "tiny-1", "labgrid", 900_000 + number)
                    found = measure(backend, job, lambda story, wall: wall)
                print(f"{name:8}", json.dumps({what: round(seconds, 1) for what, seconds in found.items()}), flush=True)
                for what, seconds in found.items():
                    figures[what][name].append(seconds)
        finally:
            lava.remove()
    print(f"\n{'seconds, medians':32}{'labgrid':>10}{'LAVA':>10}{'ratio':>8}")
    for what, of in figures.items():
        here, there = median(of["labgrid"]), median(of["lava"])
        print(f"{what:32}{here:10.1f}{there:10.1f}{there / here if here else float('nan'):8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
