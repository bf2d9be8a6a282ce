"""A real LAVA server as a second lab: submission to report, jobs canceled in LAVA, and a stopped LAVA."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from worker.tests.backends.trial_lava import TrialLava
from wqlab_contracts.celery_names import lab_queue

from .conftest import EXAMPLE, NOOP, ROOT, SERIES, Lab, comparisons

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]
NAME = "far"
TYPE = "lava-tiny"
CONDITIONS = {
    "irq_affinity": "0",
    "smt": False,
    "transparent_hugepages": "never",
    "ksm": False,
    "start_below_c": 60,
    "cool_s": 1,
    "required": ["irq_affinity", "smt", "ksm"],
}
"""What QEMU's machine can fulfil, and a temperature that it cannot tell."""


@dataclass
class FarLab:
    """Lab host that drives two devices of a LAVA server."""

    lab: Lab
    lava: TrialLava

    def rest(self, token: str) -> httpx.Client:
        headers = {"Authorization": f"Token {token}"}
        return httpx.Client(base_url=f"{self.lava.url}/api/v0.2/", headers=headers, timeout=None)

    def jobs(self, **values: str) -> list[dict[str, Any]]:
        with self.rest(self.lava.token) as api:
            found: list[dict[str, Any]] = api.get("jobs/", params={**values, "ordering": "id"}).json()["results"]
        return found

    def jobs_of(self, submission: int, **values: str) -> list[dict[str, Any]]:
        """Return the LAVA jobs of the submission's only run, the oldest first."""
        runs = self.lab.client().submission(submission).runs
        return [job for job in self.jobs(**values) if any(f" run {run.id} " in job["description"] for run in runs)]

    def running_job_of(self, submission: int) -> int:
        [job] = until(lambda: self.jobs_of(submission, state="Running"))
        return int(job["id"])

    def shown(self) -> dict[str, Any]:
        with httpx.Client(
            headers={"Authorization": f"Bearer {self.lab.environment['WQLAB_TOKEN']}"}, timeout=None
        ) as api:
            labs = api.get(f"{self.lab.url}/api/v1/labs").json()
        return next((dict(each) for each in labs if each["name"] == NAME), {"pool": None})

    def submit(self, *arguments: str, series: str = "noop.mbox") -> int:
        return self.lab.submit("--mbox", str(SERIES / series), "--target", f"xfs-fsync@{TYPE}", *arguments)


def until(condition: Callable[[], Any]) -> Any:
    """Poll until the condition is met; LAVA and a lab host send the test no events."""
    while not (found := condition()):
        time.sleep(0.5)
    return found


@pytest.fixture(scope="module")
def far(lab: Lab) -> Iterator[FarLab]:
    state = Path(lab.environment["WQLAB_STATE"])
    lava = TrialLava(state / "lava", ["qemu-01", "qemu-02"])
    lava.start()
    spec = yaml.safe_load((ROOT / "device-types/tiny.yaml").read_text())
    spec |= {"name": TYPE, "conditions": CONDITIONS}
    spec |= {"units": [{"name": f"qemu-0{n}", "lab": NAME, "backend": "lava"} for n in (1, 2)]}
    (lab.data / f"device-types/{TYPE}.yaml").write_text(yaml.safe_dump(spec))
    worker: subprocess.Popen[bytes] | None = None
    try:
        lava.wait()
        environment = lab.environment | {
            "WQLAB_SERVER_URL": lab.url,
            "WQLAB_WORKER_TOKEN": (state / "keys/worker.token").read_text().strip(),
            "WQLAB_BROKER_URL": f"redis+socket://{state}/run/redis.sock",
            "WQLAB_LAB": NAME,
            "WQLAB_LAVA_URL": lava.url,
            "WQLAB_LAVA_TOKEN": lava.token,
        }
        command = ["celery", "-A", "wqlab_worker.tasks", "worker", "-Q", lab_queue(NAME), "-n", f"{NAME}@%h"]
        command += ["-c", "2", "-l", "INFO", "--without-mingle", "--without-gossip"]
        with (state / "log/far.log").open("ab") as log:
            worker = subprocess.Popen(command, env=environment, cwd=state, stdout=log, stderr=log)
        yield FarLab(lab, lava)
    finally:
        if worker is not None:
            worker.terminate()
            worker.wait()
        (lab.data / f"device-types/{TYPE}.yaml").unlink()
        lava.remove()


@pytest.fixture(scope="module")
def improved(far: FarLab) -> int:
    """Submit a series that takes fewer locks for any device of the LAVA server; return the submission's id."""
    return far.lab.submit(
        *("--mbox", str(EXAMPLE), "--target", f"xfs-fsync@{TYPE}"),
        *("--blocks", "2", "--priority", "80"),
    )


def test_pool_shows_the_states_of_lava(far: FarLab, improved: int) -> None:
    def whole() -> Any:
        shown = far.shown()
        return shown["pool"] and not shown["problem"] and shown["devices"] == 2 and shown

    pool = until(whole)
    assert pool["backend"] == "lava"
    assert pool["pool"]["version"] == "2026.10"
    assert {name: device["device_type"] for name, device in pool["pool"]["devices"].items()} == {
        "qemu-01": "qemu",
        "qemu-02": "qemu",
    }
    assert pool["free"] + pool["busy"] == 2


def test_lava_run_gives_the_same_verdict_as_the_bench(far: FarLab, improved: int) -> None:
    report = far.lab.finish(improved)
    [found] = comparisons(report, metric="locks_per_flush")
    assert (found["verdict"], found["baseline"]["mean"], found["candidate"]["mean"]) == ("improvement", 4, 2)
    [target] = report["targets"]
    assert (target["blocks_completed"], target["discarded"]) == (2, {})
    [job] = far.jobs_of(improved)
    assert (job["health"], job["priority"]) == ("Complete", 80)
    assert job["actual_device"] in {"qemu-01", "qemu-02"}


def test_conditions_of_a_lava_job_are_read_back_and_restored(far: FarLab, improved: int) -> None:
    """Its own job sets them on the device, without a connection to the lab."""
    [target] = far.lab.finish(improved)["targets"]
    facts = target["environment"]["facts"]
    assert re.match(r"0( \([0-9]+ of [0-9]+; the kernel places the others\))?$", facts["irq affinity"])
    assert facts["smt"].startswith("off")
    assert facts["ksm"] == "off (not in this kernel)"
    assert facts["transparent hugepages"] == "never (not in this kernel)"
    assert facts["temperature"] == "not available (wanted below 60 °C)"
    assert re.match(r"[0-9]+ files$", facts["conditions put back"])


def test_job_canceled_in_lava_repeats_only_its_block(far: FarLab) -> None:
    submission = far.submit("--blocks", "2")
    job = far.running_job_of(submission)
    with far.rest(far.lava.other_token) as api:
        api.post(f"jobs/{job}/cancel/").raise_for_status()
    [found] = comparisons(far.lab.finish(submission), metric="locks_per_flush")
    assert found["verdict"] == "equivalent"
    assert [each["health"] for each in far.jobs_of(submission)] == ["Canceled", "Complete"]


def test_canceled_submission_cancels_its_lava_job(far: FarLab) -> None:
    submission = far.submit("--blocks", "3")
    far.running_job_of(submission)
    far.lab.wqlab("cancel", str(submission))
    assert far.lab.finish(submission, codes=(4,))["submission"]["outcome"] == "canceled"
    until(lambda: {job["state"] for job in far.jobs_of(submission)} == {"Finished"})
    assert [job["health"] for job in far.jobs_of(submission)] == ["Canceled"]


def test_run_continues_after_lava_restarts(far: FarLab) -> None:
    """A stopped LAVA blocks no other lab, is shown as unavailable, and its run continues when it is back."""
    submission = far.submit("--blocks", "2")
    far.running_job_of(submission)
    far.lava.stop()
    elsewhere = far.lab.submit(*("--mbox", str(NOOP), "--target", "xfs-fsync@tiny", "--blocks", "2"))
    until(lambda: "does not answer" in far.shown()["problem"])
    assert comparisons(far.lab.finish(elsewhere), metric="locks_per_flush")[0]["verdict"] == "equivalent"
    far.lava.start()
    far.lava.wait()
    [found] = comparisons(far.lab.finish(submission), metric="locks_per_flush")
    assert found["verdict"] == "equivalent"


def test_panic_on_lava_is_a_failure_of_the_candidate(far: FarLab) -> None:
    submission = far.submit("--blocks", "1", series="panics-at-boot.mbox")
    report = far.lab.finish(submission, codes=(3,))
    [target] = report["targets"]
    assert target["outcome"] == "failed"
    assert target["failure"]["kind"] == "kernel"
