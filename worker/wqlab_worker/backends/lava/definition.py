"""A run's boots -> the definition of one LAVA job. Pure.

The template of the device type's boot method brings the device to the golden system; what follows is the same on all: a
kexec into the variant, and one test that measures the whole boot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jinja2
import yaml

from wqlab_contracts.messages import BootKey, LavaBoot, RunJob

from ...measure.script_calls import calls
from ..base import kexec_options
from .package import boot_name

PATIENCE = 2
"""So many times its timeout may a boot take: LAVA does not see whether the console still moves."""
STEP_S = 120
"""What a test may take beside the plan's script: verification, packing and sending."""
LEAST_S = 30

Phase = Literal["deploy", "golden", "kexec", "test"]


class TemplateError(ValueError):
    """The boot method's template is no list of LAVA's actions; the text names it and what is wrong."""


@dataclass(frozen=True)
class Sources:
    """Where LAVA and the device find what they need."""

    overlay: str
    images: Mapping[str, str]
    """What the device type does not name itself."""
    variants: Mapping[str, str]
    """Arm -> URL of its kernel image, for devices that cannot kexec."""
    results: str
    """As the device sees it."""
    callback: str


@dataclass(frozen=True)
class Definition:
    text: str
    stages: list[tuple[int, Phase]]
    """Of each of the job's actions in their order: to which boot (from 0) it belongs, and what it does for it."""
    tokens: list[str]
    """Of each boot: what is on its kernel's command line."""


def define(job: RunJob, boots: Sequence[BootKey], tokens: Sequence[str], sources: Sources, name: str) -> Definition:
    """Raises TemplateError."""
    lava = job.device.lava
    assert lava is not None  # noqa: S101 - the backend was chosen by it
    mapping, boot = lava.mapping, job.device.boot
    actions: list[dict[str, Any]] = []
    stages: list[tuple[int, Phase]] = []
    for number, (key, token) in enumerate(zip(boots, tokens, strict=True)):
        way = _way_to_kernel(lava, job, key, token, sources, first=number == 0)
        for action in way:
            actions.append(action)
            last = action is way[-1]
            stages.append((number, ("golden" if mapping.kexec else "kexec") if last else "deploy"))
        if mapping.kexec:
            limit_s = boot.variant_timeout_s * PATIENCE
            actions.append(_kexec(key, variant_arguments(job, token), kexec_options(job.device), limit_s))
            stages.append((number, "kexec"))
        actions.append(_test(job, key, sources.results))
        stages.append((number, "test"))
    limits = [_limit(action) for action in actions]
    definition = {
        "job_name": name,
        "device_type": mapping.device_type,
        "device": job.device.name,
        **({"tags": mapping.tags} if mapping.tags else {}),
        "priority": job.priority,
        "visibility": "public",
        "timeouts": {
            "job": {"seconds": sum(limits) + STEP_S},
            "action": {"seconds": max(limits)},
            # Of silence on the console: a workload says nothing while it runs.
            "connection": {"seconds": max(limits)},
            "queue": {"seconds": mapping.timeouts.queue},
        },
        "context": {"extra_kernel_args": golden_arguments(job), **mapping.context},
        "metadata": {"wqlab.run": str(job.run_id), "wqlab.plan": job.plan.name},
        "notify": {
            "criteria": {"status": "finished"},
            "callbacks": [{"url": sources.callback, "method": "POST", "dataset": "minimal", "content-type": "json"}],
        },
        "actions": actions,
    }
    return Definition(yaml.safe_dump(definition, sort_keys=False, width=1000), stages, list(tokens))


def golden_arguments(job: RunJob) -> str:
    boot = job.device.boot
    words = [f"console={boot.console_device},{boot.console_speed}", "panic=-1", "retain_initrd", boot.kernel_arguments]
    return " ".join(word for word in words if word)


def variant_arguments(job: RunJob, token: str) -> str:
    """The device type's own arguments come last and win."""
    boot = job.device.boot
    words = [
        f"console={boot.console_device},{boot.console_speed}",
        "panic=0",  # stay dead after a panic: its report must not be followed by a golden boot
        "printk.devkmsg=on",  # what LAVA is told goes through the kernel's log, unlimited
        f"wqlab.token={token}",
        boot.kernel_arguments,
    ]
    return " ".join(word for word in words if word)


def _way_to_kernel(
    lava: LavaBoot, job: RunJob, key: BootKey, token: str, sources: Sources, *, first: bool
) -> list[dict[str, Any]]:
    """Deploy and boot, as the template says."""
    mapping = lava.mapping
    where = f"device-types/lava/{mapping.boot}.yaml.jinja2"
    images = {**sources.images, **mapping.images}
    if not mapping.kexec:
        images["kernel"] = sources.variants[key.arm.value]
    environment = jinja2.Environment(  # noqa: S701 - makes YAML, and quotes by `tojson`
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    try:
        text = environment.from_string(lava.template).render(
            mapping=mapping,
            images=_Images(images),
            overlay=sources.overlay,
            arguments=golden_arguments(job) if mapping.kexec else variant_arguments(job, token),
            prompt="root@golden#" if mapping.kexec else "root@variant#",
            boot_timeout=(job.device.boot.golden_timeout_s if mapping.kexec else job.device.boot.variant_timeout_s)
            * PATIENCE,
            first=first,
        )
        actions = yaml.safe_load(text)
    except (jinja2.TemplateError, yaml.YAMLError) as error:
        raise TemplateError(f"{where}: {error}") from error
    kinds = [next(iter(action), "") for action in actions] if _are_actions(actions) else []
    if kinds not in (["boot"], ["deploy", "boot"]) or (first and kinds[0] != "deploy"):
        raise TemplateError(f"{where}: gives {kinds or 'no list of actions'}, not a deploy (the first time) and a boot")
    return list(actions)


def _are_actions(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and len(item) == 1 for item in value)


class _Images(dict[str, str]):
    """In templates: `images.dtb` is false where there is none; kernel and ramdisk must be there."""

    def __getattr__(self, name: str) -> str:
        if name in ("kernel", "ramdisk") and name not in self:
            raise jinja2.UndefinedError(f"images has no {name}: name its URL in the device type's lava.images")
        return self.get(name, "")


def _kexec(key: BootKey, arguments: str, options: Sequence[str], limit_s: int) -> dict[str, Any]:
    return {
        "boot": {
            "timeout": {"seconds": limit_s},
            "method": "kexec",
            "command": "/lab/jump",
            "kernel": key.arm.value,
            "options": [f"--command-line='{arguments}'", *options],
            "boot_message": "Starting new kernel",
            "prompts": ["root@variant#"],
        }
    }


def _test(job: RunJob, key: BootKey, results: str) -> dict[str, Any]:
    name = boot_name(key)
    limit = sum(call.limit_s for call in calls(job, key.block))
    return {
        "test": {
            "timeout": {"seconds": round(limit) + STEP_S},
            "definitions": [
                {
                    "from": "inline",
                    "name": name,
                    "path": "inline/measure.yaml",
                    "lava-signal": "kmsg",
                    "repository": {
                        "metadata": {
                            "format": "Lava-Test Test Definition 1.0",
                            "name": "wqlab",
                            "description": f"{job.plan.name}, block {key.block + 1}, {key.arm.value}",
                        },
                        "run": {"steps": [f"/lab/measure {name} {key.block} {key.arm.value} {results}"]},
                    },
                }
            ],
        }
    }


def _limit(action: Mapping[str, Any]) -> int:
    body = next(iter(action.values()))
    return max(LEAST_S, int(body.get("timeout", {}).get("seconds", 0)))
