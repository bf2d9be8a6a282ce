"""Write the definition of one LAVA job for the boots of a run. Pure functions.

The template of the device type's boot method boots the golden system. The rest is the same for all device types: kexec
into the variant, and one test that measures the whole boot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jinja2
import yaml

from wqlab_contracts.messages import BootKey, LavaBoot, RunJob

from ...measure.script_calls import calls
from ..interface import kexec_options
from .job_archives import boot_name

SLOW_BOOT_FACTOR = 2
"""A boot may take its timeout times this factor, because LAVA cannot tell a slow boot from a hang."""
TEST_OVERHEAD_S = 120
"""Seconds that a test may take beside the plan's script: to verify, pack and send."""
MIN_ACTION_S = 30
"""Shortest time counted for an action."""

Phase = Literal["deploy", "golden", "kexec", "test"]


class TemplateError(ValueError):
    """The boot method's template does not give a list of LAVA actions; the text names the template and the error."""


@dataclass(frozen=True)
class Sources:
    """URLs at which LAVA and the device find their files and send results."""

    overlay: str
    images: Mapping[str, str]
    """URLs of the images that the device type does not name itself."""
    variants: Mapping[str, str]
    """Arm -> URL of its kernel image, for devices that cannot kexec."""
    results: Mapping[str, str]
    """Name of each boot -> URL for its results, as the device reaches it."""
    callback: str


@dataclass(frozen=True)
class Definition:
    """Definition of a LAVA job and the meaning of its actions."""

    text: str
    stages: list[tuple[int, Phase]]
    """For each action in order: the boot (from 0) that it belongs to, and its phase."""
    tokens: list[str]
    """Token of each boot, from its kernel command line."""


def define(job: RunJob, boots: Sequence[BootKey], tokens: Sequence[str], sources: Sources, name: str) -> Definition:
    """Write the definition of a job that makes `boots` in order. Raises TemplateError."""
    lava = job.device.lava
    assert lava is not None  # noqa: S101 - the backend was chosen by it
    mapping, boot = lava.mapping, job.device.boot
    actions: list[dict[str, Any]] = []
    stages: list[tuple[int, Phase]] = []
    for number, (key, token) in enumerate(zip(boots, tokens, strict=True)):
        boot_actions = _boot_actions(lava, job, key, token, sources, first=number == 0)
        for action in boot_actions:
            actions.append(action)
            last = action is boot_actions[-1]
            stages.append((number, ("golden" if mapping.kexec else "kexec") if last else "deploy"))
        if mapping.kexec:
            limit_s = boot.variant_timeout_s * SLOW_BOOT_FACTOR
            actions.append(_kexec(key, variant_arguments(job, token), kexec_options(job.device), limit_s))
            stages.append((number, "kexec"))
        actions.append(_test(job, key, sources.results[boot_name(key)]))
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
            "job": {"seconds": sum(limits) + TEST_OVERHEAD_S},
            "action": {"seconds": max(limits)},
            # Limit of silence on the console: a workload prints nothing while it runs.
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


def cooling_s(job: RunJob) -> int:
    """Return the longest time that a boot may wait until its device is cool, in seconds."""
    conditions = job.device.conditions
    return 0 if conditions.start_below_c is None else conditions.cool_s


def golden_arguments(job: RunJob) -> str:
    """Return the kernel arguments of the golden system."""
    boot = job.device.boot
    words = [f"console={boot.console_device},{boot.console_speed}", "panic=-1", "retain_initrd", boot.kernel_arguments]
    return " ".join(word for word in words if word)


def variant_arguments(job: RunJob, token: str) -> str:
    """Return the kernel arguments of a variant. The device type's arguments come last and take precedence."""
    boot = job.device.boot
    words = [
        f"console={boot.console_device},{boot.console_speed}",
        "panic=0",  # stop after a panic: a golden boot must not follow its report
        "printk.devkmsg=on",  # test results reach LAVA through the kernel's log, without a rate limit
        f"wqlab.token={token}",
        boot.kernel_arguments,
    ]
    return " ".join(word for word in words if word)


def _boot_actions(
    lava: LavaBoot, job: RunJob, key: BootKey, token: str, sources: Sources, *, first: bool
) -> list[dict[str, Any]]:
    """Render the template into the actions that deploy and boot."""
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
            * SLOW_BOOT_FACTOR,
            first=first,
        )
        actions = yaml.safe_load(text)
    except (jinja2.TemplateError, yaml.YAMLError) as error:
        raise TemplateError(f"{where}: {error}") from error
    kinds = [next(iter(action), "") for action in actions] if _are_actions(actions) else []
    if kinds not in (["boot"], ["deploy", "boot"]) or (first and kinds[0] != "deploy"):
        raise TemplateError(
            f"{where}: gives {kinds or 'no list of actions'}; expected a boot, with a deploy before the first one"
        )
    return list(actions)


def _are_actions(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and len(item) == 1 for item in value)


class _Images(dict[str, str]):
    """Images by name, for templates: `images.dtb` is false if there is none; kernel and ramdisk are required."""

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
    limit = sum(call.limit_s for call in calls(job, key.block)) + cooling_s(job)
    return {
        "test": {
            "timeout": {"seconds": round(limit) + TEST_OVERHEAD_S},
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
    return max(MIN_ACTION_S, int(body.get("timeout", {}).get("seconds", 0)))
