"""LAVA backend with a real LAVA server, and without a server."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from wqlab_contracts.enums import Arm, ErrorKind, Outcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BlockFinished, BootVerified, LavaBoot, RunJob
from wqlab_lab.paths import free_port
from wqlab_worker.backends.lava import LavaBackend
from wqlab_worker.backends.lava.job_definition import define
from wqlab_worker.backends.lava.job_names import cancel_orphaned_jobs
from wqlab_worker.backends.lava.pool_report import read_pool

from .conftest import ROOT, Golden, RecordingSink, lasting, trivial_job
from .lava_jobs import BOOTS, SOURCES
from .lavalab import LavaLab

pytestmark = pytest.mark.device


def with_mapping(job: RunJob, **changes: object) -> RunJob:
    lava = job.device.lava
    assert lava is not None
    changed = LavaBoot(mapping=lava.mapping.model_copy(update=changes), template=lava.template)
    return job.model_copy(update={"device": job.device.model_copy(update={"lava": changed})})


def test_unreachable_lava_is_an_infrastructure_failure(golden: Golden) -> None:
    backend = LavaBackend(
        url=f"http://127.0.0.1:{free_port(0)}", token="t", listen="127.0.0.1", host="127.0.0.1", fence=1,
        scratch=golden.published.parent, fetch=lambda artifact: golden.kernel, files_of=lambda job, kernel: {},
        golden=lambda: {},
    )  # fmt: skip
    job = trivial_job(golden.kernel, golden.built.build_id_gnu, "6", [[Arm.BASELINE]], 301, "qemu-01", 0)
    result = backend.execute(job, job.blocks, RecordingSink(), lasting())
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "does not answer" in result.failure.summary
    assert not result.device_suspect, "the state of the device is unknown"


@pytest.mark.nightly
@pytest.mark.parametrize("kexec", [True, False])
@pytest.mark.parametrize("boot", sorted(load_data(ROOT).lava_templates))
def test_lava_accepts_the_job_of_every_template(lava_lab: LavaLab, boot: str, kexec: bool) -> None:
    images = {"kernel": "http://g/kernel", "ramdisk": "http://g/ramdisk.gz", "dtb": "http://g/device.dtb"}
    job = with_mapping(
        lava_lab.job([[Arm.BASELINE, Arm.CANDIDATE]], run_id=302),
        boot=boot, kexec=kexec, images=images, ramdisk_compression="gz", tags=["any"],
    )  # fmt: skip
    lava = job.device.lava
    assert lava is not None
    lava = LavaBoot(mapping=lava.mapping, template=load_data(ROOT).lava_templates[boot])
    job = job.model_copy(update={"device": job.device.model_copy(update={"lava": lava})})
    definition = define(job, BOOTS, ["t0", "t1"], SOURCES, "any name").text
    assert lava_lab.judged(definition) == "Job valid."
    assert "invalid" in lava_lab.judged(definition.replace("job_name:", "jobname:"))


@pytest.mark.nightly
def test_each_variant_is_deployed_without_kexec(lava_lab: LavaLab) -> None:
    job = with_mapping(lava_lab.job([[Arm.CANDIDATE, Arm.BASELINE]], run_id=305), kexec=False)
    sink = RecordingSink()
    assert lava_lab.backend().execute(job, job.blocks, sink, lasting()).outcome is Outcome.PASSED
    lava_lab.assert_released()
    assert [event.block for event in sink.of(BlockFinished)] == [0]
    verified = sink.of(BootVerified)
    assert len({event.kernel_boot_id for event in verified}) == 2
    assert [event.golden_s for event in verified] == [0, 0], "there is no golden system"


@pytest.mark.nightly
def test_results_go_through_lava_without_a_network_to_the_worker(lava_lab: LavaLab) -> None:
    # No host has the address 10.0.2.99 in QEMU's user network.
    job = with_mapping(lava_lab.job([[Arm.BASELINE]], run_id=303), worker_host="10.0.2.99")
    sink = RecordingSink()
    assert lava_lab.backend().execute(job, job.blocks, sink, lasting()).outcome is Outcome.PASSED
    lava_lab.assert_released()
    assert [event.block for event in sink.of(BlockFinished)] == [0]


@pytest.mark.nightly
def test_job_with_expired_lease_is_cancelled(lava_lab: LavaLab) -> None:
    job = lava_lab.job([[Arm.BASELINE]], run_id=304)
    lava = lava_lab.rest()
    sources = replace(SOURCES, images={"kernel": "http://127.0.0.1:9/k", "ramdisk": "http://127.0.0.1:9/r"})
    text = define(job, BOOTS, ["t0", "t1"], sources, "wqlab lava run 304 fence 7 on qemu-01: trivial").text
    number = lava.submit(text)
    assert cancel_orphaned_jobs(lava, "lava", lambda: [(304, 7)]) == [], "a live lease protects its job"
    pool = read_pool(lava_lab.trial.url, lava_lab.trial.token, "lava", list)
    assert (pool.problem, sorted(pool.devices)) == ("", ["qemu-01", "qemu-02"])
    while not (job_now := lava.job(number)).finished:
        time.sleep(0.5)
    assert job_now.health in {"Canceled", "Incomplete"}
    lava_lab.assert_released()
