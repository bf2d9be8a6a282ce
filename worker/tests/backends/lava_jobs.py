"""LAVA jobs for tests: boots, sources and the definition of a job."""

from __future__ import annotations

from typing import Any

import yaml

from wqlab_contracts.enums import PAIR, Arm
from wqlab_contracts.messages import BootKey, LavaBoot, RunJob
from wqlab_worker.backends.lava.job_definition import Definition, Sources, define
from wqlab_worker.backends.lava.job_names import job_name

A, B = Arm.BASELINE, Arm.CANDIDATE
BOOTS = [BootKey(block=0, position=n, arm=arm, attempt=0) for n, arm in enumerate((A, B))]
SOURCES = Sources(
    overlay="http://w/overlay.tar",
    images={"kernel": "http://w/kernel", "ramdisk": "http://w/ramdisk"},
    variants={"baseline": "http://w/kernel-baseline", "candidate": "http://w/kernel-candidate"},
    results={
        f"b{block}-{position}-{arm.value}-{attempt}": f"http://10.0.2.2:1/s{position}"
        for block in range(3)
        for position in range(3)
        for arm in PAIR
        for attempt in range(3)
    },
    callback="http://w/callback",
)


def defined(job: RunJob, **mapping: Any) -> tuple[Definition, dict[str, Any]]:
    lava = job.device.lava
    assert lava is not None
    template = mapping.pop("template", lava.template)
    changed = LavaBoot(mapping=lava.mapping.model_copy(update=mapping), template=template)
    job = job.model_copy(update={"device": job.device.model_copy(update={"lava": changed})})
    definition = define(job, BOOTS, ["t0", "t1"], SOURCES, job_name(job, 3))
    return definition, yaml.safe_load(definition.text)


def kinds(document: dict[str, Any]) -> list[str]:
    return [next(iter(action)) for action in document["actions"]]
