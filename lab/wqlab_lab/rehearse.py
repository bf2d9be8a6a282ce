"""Start a lab whose devices are rehearsal machines: QEMU behind the daemons of the machines in docs/hardware."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import httpx

from .lifecycle import Lab, LabError
from .paths import ADMIN, LabPaths
from .prepare import prepare_pages

NAME = "rehearsal"
"""Suffix of the lab's state folder. A rehearsal has its own database, so that it never mixes with hardware results."""
RECIPE = "measure-hardware"
ARM64_MACHINES = {"chromebook"}
NOTICE = (
    "Rehearsal: these machines are emulated behind the protocols of real ones. Their figures are no evidence of "
    "hardware performance."
)

KNOWN_TIMEOUT_S = 600.0
"""Time limit until the server knows the machines: the lab's worker tells it of them, on a busy host after minutes."""


def rehearsal_lab(paths: LabPaths, report: Callable[[str], None]) -> Lab:
    """Return the lab of the rehearsal machines, beside the lab of `paths`, with a data folder of its own."""
    own = paths.named(NAME)
    return Lab(replace(own, data=own.rehearsal / "data"), report)


def start(lab: Lab, repository: LabPaths, machines: Sequence[str], *, pages: bool = True) -> None:
    """Build the golden system, write the machines' files and start the lab. Raises LabError.

    `repository` has the data folder from which the lab's own is made. Without `pages`, the web pages must exist.
    """
    os.environ["WQLAB_NOTICE"] = NOTICE
    if lab.running():
        raise LabError("a rehearsal is running; stop it with `make stop-rehearsal`")
    lab.paths.create()
    lab.paths.rehearsal.mkdir(exist_ok=True)
    if pages:
        prepare_pages(lab.paths)
    lab.report(f"golden kernel (recipe `{RECIPE}`; the first build takes 10 minutes or more)")
    environment = {**lab.paths.environment(), "WQLAB_DATA_DIR": str(repository.data), "WQLAB_LAB": "local"}

    def output(command: list[str]) -> str:
        return subprocess.run(
            command, check=True, text=True, stdout=subprocess.PIPE, stderr=sys.stderr, env=environment
        ).stdout

    prepare = ["python", "-m", "wqlab_worker.build.prepare", "kernel", "--recipe", RECIPE]
    golden = {}
    for arch in architectures(machines):
        kernel = json.loads(output([*prepare, "--arch", arch]))
        rootfs = output(["wqlab-bench", "rootfs", "--arch", arch]).strip()
        golden[arch] = {"kernel": kernel["image"], "rootfs": rootfs, "key": kernel["key"]}
    lab.paths.golden.write_text(json.dumps(golden))
    lab.make_keys()
    lab.report(f"rehearsal machines {', '.join(machines)}")
    programs = output(
        [
            "wqlab-rehearsal", "prepare", *machines, "--repository", str(repository.data),
            "--folder", str(lab.paths.rehearsal), "--golden", str(lab.paths.golden),
        ]
    )  # fmt: skip
    lab.paths.rehearsal_programs.write_text(programs)
    lab.up()
    await_devices(lab.paths)


def _devices(paths: LabPaths) -> list[str]:
    names: list[str] = json.loads(paths.rehearsal_programs.read_text())["devices"]
    return names


def await_devices(paths: LabPaths) -> None:
    """Wait until each machine is registered with the server. Raises LabError after KNOWN_TIMEOUT_S."""
    missing = set(_devices(paths))
    deadline = time.monotonic() + KNOWN_TIMEOUT_S
    headers = {"Authorization": f"Bearer {paths.token(ADMIN)}"}
    with httpx.Client(base_url=paths.url, headers=headers, timeout=30, trust_env=False) as api:
        while missing:
            missing = {name for name in missing if not _is_known(api, name)}
            if missing and time.monotonic() > deadline:
                names = ", ".join(sorted(missing))
                raise LabError(f"the lab's worker did not announce {names} in {KNOWN_TIMEOUT_S:.0f} s")
            if missing:
                time.sleep(0.5)  # no event tells of a device outside the lab


def _is_known(api: httpx.Client, device: str) -> bool:
    try:
        return api.get(f"/api/v1/devices/{device}").is_success
    except httpx.TransportError:
        return False


def architectures(machines: Sequence[str]) -> list[str]:
    """Return the architectures of the golden systems that the lab needs: the bench always wants one for x86-64."""
    return ["x86_64", "arm64"] if ARM64_MACHINES & set(machines) else ["x86_64"]


def usage(paths: LabPaths) -> str:
    """Return the text that says how a person uses the rehearsal lab."""
    devices = _devices(paths)
    checks = "\n".join(f"    .venv/bin/wqlab device check {device}" for device in devices)
    return f"""
{NOTICE}

The lab runs at {paths.url}

    export WQLAB_URL={paths.url}
    export WQLAB_TOKEN={paths.token("admin")}
{checks}

Addresses of the machines: {paths.data}/device-types/addresses.env
`make stop-rehearsal` stops this lab and removes {paths.state}."""
