"""Names of LAVA jobs, and cancellation of orphaned ones."""

from __future__ import annotations

from wqlab_contracts.messages import RunJob
from wqlab_worker.backends.lava.job_names import Holder, cancel_orphaned_jobs, job_name, parse_job_holder
from wqlab_worker.backends.lava.lava_client import LavaJob


def test_only_jobs_without_a_lease_are_cancelled(job: RunJob) -> None:
    canceled: list[int] = []

    class Left:
        def user(self) -> str:
            return "wqlab"

        def unfinished(self, user: str) -> list[LavaJob]:
            names = [job_name(job, 3), job_name(job, 4), "somebody's own", "wqlab near run 1 fence 1 on x: p"]
            return [LavaJob(id=n, description=name, state="Running", health="Unknown") for n, name in enumerate(names)]

        def cancel(self, number: int) -> None:
            canceled.append(number)

    assert parse_job_holder(LavaJob(id=1, description=job_name(job, 3), state="Running", health="Unknown")) == Holder(
        "far", 12, 3, "qemu-01"
    )
    assert cancel_orphaned_jobs(Left(), "far", lambda: [(12, 4)]) == [0]  # type: ignore[arg-type]
    assert canceled == [0]
