"""The plan that `wqlab plans new NAME` creates runs on an emulated device as it is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from wqlab_client.new_plan import create
from wqlab_contracts.enums import Arm, Outcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootFinished, Sample, Samples

from .conftest import ROOT, DeviceLab, RecordingSink, lasting

pytestmark = pytest.mark.device
NAME = "futex-wake"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the checkout's data and worker with a new plan; the device sessions use this worker."""
    unused = shutil.ignore_patterns("__pycache__")
    for name in ("testplans", "device-types", "kernels", "intake", "worker"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=unused)
    create(tmp_path, NAME)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "worker"), os.environ.get("PYTHONPATH", "")]))
    return tmp_path


def test_new_plan_measures_as_created(device_lab: DeviceLab, checkout: Path) -> None:
    data = load_data(checkout)
    plan = data.plans[NAME]
    device_lab.faults("tiny-1")
    job = device_lab.job([[Arm.BASELINE]], run_id=120)
    job = job.model_copy(update={"plan": plan, "profile": plan.emulated, "files": data.plan_files(NAME)})
    sink = RecordingSink()
    result = device_lab.backend().execute(job, job.blocks, sink, lasting())
    assert result.outcome is Outcome.PASSED, result.failure
    [finished] = sink.of(BootFinished)
    assert finished.outcome is Outcome.PASSED
    samples: list[Sample] = [sample for event in sink.of(Samples) for sample in event.samples]
    assert [(sample.metric, sample.warmup) for sample in samples] == [
        ("waits_per_refresh", True),
        ("waits_per_refresh", False),
    ]
    # A refresh waits for the work items of two CPUs, unless they have ended before it looks.
    assert all(0 < sample.value <= 3 for sample in samples), samples
