"""A real LAVA server with two QEMU devices, and the backend for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import httpx

from wqlab_contracts.enums import Arm
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import LavaBoot, RunJob
from wqlab_worker.backends.lava import LavaBackend
from wqlab_worker.backends.lava.lava_client import Lava

from .conftest import ROOT, trivial_job
from .trial_lava import TrialLava

GOLDEN_ONLY = "arguments.split(' wqlab.test=')[0]"
"""Expression for the template that removes the variants' test arguments for the golden system."""


@dataclass
class LavaLab:
    trial: TrialLava
    kernel: Path
    rootfs: Path
    build_id: str
    release: str
    scratch: Path
    device: str = "qemu-01"

    def __post_init__(self) -> None:
        self._fences = count(1)

    def backend(self) -> LavaBackend:
        return LavaBackend(
            url=self.trial.url,
            token=self.trial.token,
            listen="127.0.0.1",
            host="127.0.0.1",
            fence=next(self._fences),
            scratch=self.scratch,
            fetch=lambda artifact: self.kernel,
            files_of=lambda job, kernel: {},
            golden=lambda: {"kernel": self.kernel, "ramdisk": self.rootfs},
        )

    def job(self, blocks: list[list[Arm]], *, run_id: int, seconds: float = 0.0, build_id: str | None = None) -> RunJob:
        data = load_data(ROOT)
        mapping = data.device_types["tiny"].lava
        assert mapping is not None
        template = data.lava_templates["qemu"]
        assert "~ arguments ~" in template
        job = trivial_job(self.kernel, build_id or self.build_id, self.release, blocks, run_id, self.device, seconds)
        lava = LavaBoot(mapping=mapping, template=template.replace("~ arguments ~", f"~ {GOLDEN_ONLY} ~"))
        device = job.device.model_copy(update={"lab": "lava", "backend": "lava", "lava": lava})
        return job.model_copy(update={"device": device})

    def rest(self, token: str | None = None) -> Lava:
        return Lava(self.trial.url, token or self.trial.token)

    def judged(self, definition: str) -> str:
        """Return LAVA's validation message for a job definition."""
        answer = httpx.post(f"{self.trial.url}/api/v0.2/jobs/validate/", json={"definition": definition}, timeout=None)
        return str(answer.json()["message"])

    def assert_released(self) -> None:
        """Assert that the device is idle in LAVA and that this lab has no unfinished job."""
        lava = self.rest()
        assert lava.unfinished(lava.user()) == []
        while next(each for each in lava.devices() if each.hostname == self.device).state != "Idle":
            time.sleep(0.5)
